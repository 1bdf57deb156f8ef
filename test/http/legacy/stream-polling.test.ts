// Streams that the gateway closes and the client comes back to: limits.streamMs (2025-11-25 basic/transports, polling;
// SEP-1699).

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpError, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient } from '../../kit/client.ts'
import { listenEvents, postEvents } from '../../kit/events.ts'
import { until } from '../../kit/until.ts'

const slow = { name: 'slow', _meta: { progressToken: 'p' } }

t.test(
  'the connection is closed after its time, with when and where to come back; the rest is there then',
  async (t) => {
    const acme = await acmeGateway(t, { limits: { streamMs: 300 } })
    const client = await legacyClient(acme.url(), keyOf.ada)
    const first = await postEvents(acme.url(), client, 'the call', 'tools/call', slow)
    await first.ended
    const last = first.events().at(-1)
    t.same([last?.retry, last?.message], [1000, undefined])
    t.equal(last?.id, first.events().at(-2)?.id, 'the place is that of the last message')
    t.equal(first.messages().length, 1)

    const second = await listenEvents(acme.url(), client, last?.id)
    await second.ended
    t.same(second.messages(), [], 'nothing new')
    t.equal(second.events().at(-1)?.retry, 1000, 'so once more')

    let next = await listenEvents(acme.url(), client, second.lastId())
    acme.upstream.server.release()
    const heard: unknown[] = []
    await until('the answer', async () => {
      await next.ended
      heard.push(...next.messages().map(({ id }) => id))
      // Its time was over first.
      if (heard.length === 0) next = await listenEvents(acme.url(), client, next.lastId())
      return heard.length > 0
    })
    t.same(heard, ['the call'])
    t.equal(acme.upstream.server.calls('slow'), 1)
  }
)

t.test('a client of an earlier revision could not come back, and is not sent away', async (t) => {
  const acme = await acmeGateway(t, { limits: { streamMs: 1 } })
  const [old, client] = [
    await legacyClient(acme.url(), keyOf.ada, '2025-06-18'),
    await legacyClient(acme.url(), keyOf.ada)
  ]
  for (let n = 0; n < 8; n++) await client.request('tools/call', { name: 'echo' })
  const stream = await postEvents(acme.url(), old, 'old', 'tools/call', slow)
  const other = await postEvents(acme.url(), client, 'new', 'tools/call', slow)
  await other.ended
  t.notOk(stream.closed)
  acme.upstream.server.release()
  t.equal((await stream.next('the answer', ({ id }) => id === 'old')).result.content[0].text, 'slow is done')
})

/** The client of the SDK, and what its GETs were answered with. */
async function sdk(t: Test, url: string): Promise<{ client: Client; gets: number[]; errors: Error[] }> {
  const client = new Client({ name: 'sdk', version: '1' })
  const gets: number[] = []
  const errors: Error[] = []
  // A member of the SDK, not an event target.
  client.onerror = (error) => errors.push(error) // eslint-disable-line unicorn/prefer-add-event-listener
  t.teardown(() => client.close())
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: { authorization: `Bearer ${keyOf.ada}` } },
      async fetch(target, init) {
        const response = await fetch(target, init)
        if (init?.method === 'GET') gets.push(response.status)
        return response
      }
    })
  )
  await until('it listens', () => gets.length === 1)
  return { client, gets, errors }
}

t.test("the SDK's client polls without its caller noticing", async (t) => {
  const acme = await acmeGateway(t, { limits: { streamMs: 100 } })
  const { client, gets, errors } = await sdk(t, acme.url())
  const progress: number[] = []
  const answer = client.callTool({ name: 'slow' }, undefined, {
    onprogress: (report) => progress.push(report.progress)
  })
  await until('it has come back twice', () => gets.length >= 3)
  acme.upstream.server.release()
  t.same((await answer).content, [{ type: 'text', text: 'slow is done' }])
  t.same(progress, [0])
  t.same(
    gets.filter((status) => status !== 200),
    []
  )
  t.same(errors, [])
})

t.test(
  "the SDK's client comes back for a stream that ended with an error, finds that it is over, and keeps the stream it listens on",
  async (t) => {
    const acme = await acmeGateway(t)
    const { client, gets, errors } = await sdk(t, acme.url())
    await t.rejects(client.callTool({ name: 'slow' }, undefined, { onprogress: () => acme.upstream.cut() }), McpError)
    await until('it has come back', () => gets.length === 2)
    t.same(gets, [200, 204])
    let changes = 0
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      changes++
    })
    await until('the server is heard again', async () => {
      await client.callTool({ name: 'grow' })
      return changes > 0
    })
    t.same(gets, [200, 204], 'by the stream that was there from the beginning')
    t.same(errors, [])
  }
)
