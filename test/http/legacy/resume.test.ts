// A stream that is cut and resumed (2025-11-25 basic/transports "Resumability and Redelivery"): at every byte, while
// the call runs and after it has ended, each message arrives once and in order.

import t from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../../kit/acme-gateway.ts'
import { legacyClient, type LegacyClient } from '../../kit/client.ts'
import { listenEvents, postEvents, readEvents } from '../../kit/events.ts'
import { until } from '../../kit/until.ts'

const progress = (steps: number) => ({ name: 'progress', arguments: { steps }, _meta: { progressToken: 'p' } })
/** What a message is, for comparison. */
const gist = (message: { id?: unknown; params?: { progress?: number } }): unknown =>
  message.params?.progress ?? message.id

/** What a client knows that was cut after so many bytes. */
const knownAfter = (text: string, bytes: number) => readEvents(text.slice(0, bytes))
const messagesOf = (events: ReturnType<typeof readEvents>): unknown[] =>
  events.flatMap(({ message }) => (message === undefined ? [] : [gist(message)]))

async function caller(
  t: Parameters<typeof acmeGateway>[0],
  revision = '2025-11-25'
): Promise<{ acme: AcmeGateway; client: LegacyClient }> {
  const acme = await acmeGateway(t)
  return { acme, client: await legacyClient(acme.url(), keyOf.ada, revision) }
}

/** The stream of a call that goes on, after its first progress. */
async function begun(acme: AcmeGateway, client: LegacyClient) {
  const stream = await postEvents(acme.url(), client, 'the call', 'tools/call', {
    name: 'slow',
    _meta: { progressToken: 'p' }
  })
  await stream.next('progress', (message) => gist(message) === 0)
  return stream
}

t.test('cut at every byte of a stream that has ended meanwhile', async (t) => {
  const { acme, client } = await caller(t)
  const whole = (await client.request('tools/call', progress(3), { id: 'the call' })).text
  const all = [1, 2, 3, 'the call']
  t.same(messagesOf(readEvents(whole)), all)
  const wrong: unknown[] = []
  let resumed = 0
  for (let bytes = 0; bytes < whole.length; bytes++) {
    const known = knownAfter(whole, bytes)
    const last = known.findLast(({ id }) => id !== undefined)?.id
    if (last === undefined) continue // Cut before it was told where to come back to.
    resumed++
    const rest = await listenEvents(acme.url(), client, last)
    await rest.ended
    const had = [...messagesOf(known), ...rest.messages().map(gist)]
    if (rest.status !== 200 || JSON.stringify(had) !== JSON.stringify(all))
      wrong.push({ bytes, status: rest.status, had })
  }
  t.same(wrong, [])
  const last = acme.log.findLast(({ msg }) => msg === 'request')
  t.match(last, { method: 'GET', status: 200, replayed: 1 }, 'its line says that the answer was left')
  t.ok(acme.log.some(({ msg, replayed }) => msg === 'request' && replayed === 4))
  t.ok(resumed > 500, `${resumed} positions`)
  t.equal(acme.upstream.server.calls('progress'), 1, 'nothing is executed twice')
})

t.test('cut at every byte of what a running call has sent: the missed, then what comes, then the end', async (t) => {
  const { acme, client } = await caller(t)
  const first = await begun(acme, client)
  const text = first.text()
  const known = (bytes: number) => knownAfter(text, bytes)
  first.cut()

  // One call, resumed again and again from every place where a client may have lost it.
  const wrong: unknown[] = []
  let place = 0
  for (let bytes = 0; bytes < text.length; bytes++) {
    const last = known(bytes).findLast(({ id }) => id !== undefined)?.id
    if (last === undefined) continue
    place = bytes
    const rest = await listenEvents(acme.url(), client, last)
    const missed = messagesOf(known(bytes)).length === 0 ? [0] : []
    await until('the missed', () => rest.messages().length >= missed.length && rest.lastId() !== undefined)
    if (JSON.stringify(rest.messages().map(gist)) !== JSON.stringify(missed) || rest.closed)
      wrong.push({ bytes, had: rest.messages() })
    rest.cut()
  }
  t.same(wrong, [])
  t.ok(place > 100, `${place} positions`)

  const last = known(place).findLast(({ id }) => id !== undefined)?.id
  const rest = await listenEvents(acme.url(), client, last)
  acme.upstream.server.release()
  await rest.ended
  t.same([...messagesOf(known(place)), ...rest.messages().map(gist)], [0, 'the call'])
  t.equal(acme.upstream.server.calls('slow'), 1)
  t.notOk(
    acme.upstream.seen.some(({ message }) => message?.['method'] === 'notifications/cancelled'),
    'a broken connection is no cancellation'
  )
})

t.test('it works for the earlier revisions too, from their first message on', async (t) => {
  for (const revision of ['2025-03-26', '2025-06-18']) {
    const { acme, client } = await caller(t, revision)
    const stream = await begun(acme, client)
    stream.cut()
    const rest = await listenEvents(acme.url(), client, stream.lastId())
    acme.upstream.server.release()
    await rest.ended
    t.same(rest.messages().map(gist), ['the call'])
  }
})

t.test('answered while nobody is connected: the client finds it when it comes back', async (t) => {
  const { acme, client } = await caller(t)
  const stream = await begun(acme, client)
  stream.cut()
  await stream.ended
  const other = await client.request('tools/call', { name: 'release' })
  t.equal(other.status, 200)
  await until('the call is over', async () => (await client.request('ping')).status === 200)
  const rest = await listenEvents(acme.url(), client, stream.events()[0]?.id)
  await rest.ended
  t.same(rest.messages().map(gist), [0, 'the call'])
})

t.test('of two that resume one stream at once, one wins', async (t) => {
  const { acme, client } = await caller(t)
  const stream = await begun(acme, client)
  const last = stream.lastId()
  const rivals = await Promise.all(Array.from({ length: 8 }, () => listenEvents(acme.url(), client, last)))
  await stream.ended
  await until('one is left', () => rivals.filter(({ closed }) => !closed).length === 1)
  acme.upstream.server.release()
  await Promise.all(rivals.map(({ ended }) => ended))
  t.equal(rivals.filter((rival) => rival.messages().some(({ id }) => id === 'the call')).length, 1, 'never broadcast')
})

t.test(
  'a stream of which the client has everything is over: it is not kept waiting, and does not come back',
  async (t) => {
    const { acme, client } = await caller(t)
    const refused = await postEvents(acme.url(), client, 'refused', 'tools/call', {
      name: 'slow',
      _meta: { progressToken: 'p' }
    })
    await refused.next('progress', (message) => gist(message) === 0)
    await client.notify('notifications/cancelled', { requestId: 'refused' })
    await refused.ended
    const rest = await listenEvents(acme.url(), client, refused.lastId())
    t.equal(rest.status, 204, 'clients come back for a stream that ended without a result')
    t.equal(
      (await listenEvents(acme.url(), client, refused.events()[0]?.id)).status,
      200,
      'for what they missed they are welcome'
    )
  }
)

t.test('3 MB that were missed reach a client that reads them', async (t) => {
  const { acme, client } = await caller(t)
  await client.request('tools/call', { name: 'echo' })
  await until('the upstream can be heard', () => acme.upstream.allListening())
  const stream = await listenEvents(acme.url(), client)
  await until('it is primed', () => stream.lastId())
  stream.cut()
  await stream.ended
  const text = 'x'.repeat(300_000)
  for (let n = 0; n < 10; n++)
    acme.upstream.broadcast({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'error', data: `${n}${text}` }
    })
  const resumed = await listenEvents(acme.url(), client, stream.lastId())
  await until('all ten', () => resumed.messages().length === 10)
  t.same(
    resumed.messages().map(({ params }) => params.data[0]),
    '0123456789'.split('')
  )
  t.notOk(resumed.closed)
  resumed.cut()
})
