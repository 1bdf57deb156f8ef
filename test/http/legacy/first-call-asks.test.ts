// A server that asks its client on the GET stream of the session, in the first call already: what it asks before the
// stream is open is lost. So the first call waits until the server has answered for the stream.

import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { legacyClient } from '../../kit/client.ts'
import { gateway, key } from '../../kit/gateway.ts'
import { allCapabilities, callUntilServerRequest, post } from '../../kit/server-request.ts'
import { startStateful } from '../../kit/stateful-server.ts'
import { until } from '../../kit/until.ts'

/** Long enough for a call to overtake the stream. */
const slowMs = 300

const slow = await startStateful(t, () => wait(slowMs))
const silent = await startStateful(t, () => new Promise(() => {}))
const shop = await gateway(t, {
  upstreams: { slow: { type: 'http', url: slow.url }, silent: { type: 'http', url: silent.url } },
  endpoints: { slow: { upstreams: ['slow'], prefix: '' }, silent: { upstreams: ['silent'], prefix: '' } }
})

const touch = { method: 'tools/call', params: { name: 'touch', arguments: {} } }

/** What is said in the session of a call, in its order. */
function saidIn({ seen }: typeof slow, tool: string): string[] {
  const session = seen.find(({ message }) => message?.params?.name === tool)?.session
  return seen.filter((each) => each.session === session).map(({ method, message }) => message?.method ?? method)
}

t.test(
  'what the server asks on the stream in the first call reaches the client, and its answer the server',
  async (t) => {
    const client = await legacyClient(shop.url('slow'), key, '2025-11-25', allCapabilities)
    const { stream, serverRequest } = await callUntilServerRequest(shop.url('slow'), client, 'ask')
    t.match(serverRequest, { method: 'elicitation/create', params: { message: /A word/ } })
    const result = { action: 'accept', content: { word: 'heard' } }
    t.equal((await post(shop.url('slow'), client, { id: serverRequest['id'], result })).status, 202)
    await stream.ended
    t.match(stream.messages().at(-1), { result: { content: [{ text: 'heard' }] } })
    t.same(saidIn(slow, 'ask').slice(0, 3), ['notifications/initialized', 'GET', 'tools/call'])
  }
)

t.test('a server that never answers for the stream is waited for a second, and then called', async (t) => {
  const client = await legacyClient(shop.url('silent'), key, '2025-11-25', allCapabilities)
  const params = { name: 'set', arguments: { value: 'called' } }
  const { json } = await post(shop.url('silent'), client, { id: 1, method: 'tools/call', params })
  t.match(json, { result: { content: [{ text: 'called' }] } })
})

t.test('where the client cannot be asked, nothing waits', async (t) => {
  // On a busy machine a call may be slower than the stream is.
  await until('a call that the server has answered before it opened the stream', async () => {
    const client = await legacyClient(shop.url('slow'), key, '2025-11-25', {})
    t.equal((await post(shop.url('slow'), client, { id: 1, ...touch })).status, 200)
    const { session } = slow.seen.findLast(({ message }) => message?.params?.name === 'touch') ?? {}
    return slow.accepted(session) === 0
  })
})
