// Streams and the processes behind them: what one has begun, another one on the same store can finish telling; nothing
// is lost in a drain.

import t, { type Test } from 'tap'
import { join } from 'node:path'
import { acmeGateway, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { capableClient, callUntilServerRequest, isServerRequest } from '../kit/server-request.ts'
import { legacyClient } from '../kit/client.ts'
import { listenEvents, postEvents } from '../kit/events.ts'
import { redis } from '../kit/redis.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

const slow = { name: 'slow', _meta: { progressToken: 'p' } }
const gist = (message: { id?: unknown; params?: { progress?: number } }): unknown =>
  message.params?.progress ?? message.id

/** Gateways of one configuration, begun one after the other or side by side. */
async function gateways(
  t: Test,
  store: string,
  limits = {}
): Promise<{ begin(): Promise<AcmeGateway>; upstream: Awaited<ReturnType<typeof startUpstream>> }> {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  return {
    upstream,
    begin: () =>
      acmeGateway(t, {
        store,
        limits,
        upstreams: { up: { url: upstream.url } },
        endpoints: { default: { upstreams: ['up'], prefix: '' } }
      })
  }
}

t.test("after a restart on the same file: what was missed, and the session's own stream goes on", async (t) => {
  const { begin, upstream } = await gateways(t, `file:${join(t.testdir(), 'store.db')}`)
  const first = await begin()
  const client = await legacyClient(first.url(), keyOf.ada)
  const own = await listenEvents(first.url(), client)
  const call = await postEvents(first.url(), client, 'the call', 'tools/call', slow)
  await call.next('progress', (message) => gist(message) === 0)
  call.cut()
  upstream.server.release()
  await client.request('tools/call', { name: 'progress', arguments: { steps: 1 } })
  await first.close()
  await own.ended
  t.equal(own.events().at(-1)?.retry, 3000, 'listeners are told to come back, a little later')

  const second = await begin()
  const rest = await listenEvents(second.url(), client, call.events()[0]?.id)
  await rest.ended
  t.same(rest.messages().map(gist), [0, 'the call'])
  const again = await listenEvents(second.url(), client, own.lastId())
  t.equal(again.status, 200)
  const after = await legacyClient(second.url(), keyOf.ada)
  await after.request('tools/list')
  await until('the upstream can be heard', () => upstream.streams() > 0)
  const listed = await postEvents(second.url(), client, 'again', 'tools/call', {
    name: 'grow',
    arguments: { name: 'grown' }
  })
  await listed.ended
  await again.next('the change', ({ method }) => method === 'notifications/tools/list_changed')
  again.cut()
})

t.test('at another process on the same Redis, while the call runs here', async (t) => {
  const { begin, upstream } = await gateways(t, (await redis(t)).url)
  const [here, there] = [await begin(), await begin()]
  const client = await legacyClient(here.url(), keyOf.ada)
  const call = await postEvents(here.url(), client, 'the call', 'tools/call', slow)
  await call.next('progress', (message) => gist(message) === 0)
  const [prime] = call.events()
  call.cut()
  const first = await listenEvents(there.url(), client, prime?.id)
  await first.ended
  t.same(first.messages().map(gist), [0])
  t.equal(first.events().at(-1)?.retry, 1000, 'the rest is for the next time')
  upstream.server.release()
  let last = first.lastId()
  const had: unknown[] = []
  await until('the answer is there', async () => {
    const next = await listenEvents(there.url(), client, last)
    await next.ended
    last = next.lastId() ?? last
    had.push(...next.messages().map(gist))
    return had.length > 0
  })
  t.same(had, ['the call'])
  t.equal((await listenEvents(there.url(), client, last)).status, 204, 'and that was all')
  t.equal(upstream.server.calls('slow'), 1)

  // Two gateways, two users, one Redis: the proof is of the session.
  const other = await legacyClient(there.url(), keyOf.bob)
  t.equal((await listenEvents(there.url(), other, prime?.id)).status, 400)
})

t.test(
  'a drain lets streamed calls end on their streams, ends server requests, and closes what only listens',
  async (t) => {
    const { begin, upstream } = await gateways(t, 'memory:', { drainMs: 600_000 })
    const acme = await begin()
    const [client, asked] = [await legacyClient(acme.url(), keyOf.ada), await capableClient(acme.url(), keyOf.bob)]
    const own = await listenEvents(acme.url(), client)
    await until('it is primed', () => own.lastId())
    const call = await postEvents(acme.url(), client, 'the call', 'tools/call', slow)
    await call.next('progress', (message) => gist(message) === 0)
    const asking = await callUntilServerRequest(acme.url(), asked, 'elicit')
    const resumed = await (async () => {
      call.cut()
      return await listenEvents(acme.url(), client, call.lastId())
    })()

    const closed = acme.close()
    await own.ended
    t.same([own.events().at(-1)?.retry, own.messages()], [3000, []])
    t.match(
      await asking.result(),
      { error: { code: 503 } },
      'the server need not wait for an answer that cannot come in any more'
    )
    await asking.stream.ended
    t.match(
      asking.stream.messages().find((message) => !isServerRequest(message)),
      { method: 'notifications/cancelled', params: { requestId: asking.serverRequest['id'] } }
    )
    t.notOk(resumed.closed)
    upstream.server.release()
    await resumed.ended
    t.same(resumed.messages().map(gist), ['the call'], 'also on a connection that came back for it')
    await closed
  }
)

t.test('a drain that is over ends streamed calls with what is known of them', async (t) => {
  const { begin } = await gateways(t, 'memory:', { drainMs: 100 })
  const acme = await begin()
  const client = await legacyClient(acme.url(), keyOf.ada)
  const call = await postEvents(acme.url(), client, 'the call', 'tools/call', slow)
  await call.next('progress', (message) => gist(message) === 0)
  await acme.close()
  await call.ended
  t.match(call.messages().at(-1), { id: 'the call', error: { data: { reason: 'shutting_down', outcome: 'unknown' } } })
})

t.test('a session that ends says so on the streams of its calls', async (t) => {
  const { begin } = await gateways(t, 'memory:')
  const acme = await begin()
  const client = await legacyClient(acme.url(), keyOf.ada)
  const own = await listenEvents(acme.url(), client)
  const call = await postEvents(acme.url(), client, 'the call', 'tools/call', slow)
  await call.next('progress', (message) => gist(message) === 0)
  t.equal((await client.end()).status, 204)
  await Promise.all([call.ended, own.ended])
  t.match(call.messages().at(-1), {
    id: 'the call',
    error: { data: { reason: 'session_unknown', outcome: 'unknown' } }
  })
  t.equal((await listenEvents(acme.url(), client, call.lastId())).status, 404)
})
