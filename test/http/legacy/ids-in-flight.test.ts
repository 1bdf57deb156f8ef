// Ids and tokens by which a client tells its own requests apart: each is one request's while that is in flight.

import t from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient, send } from '../../kit/client.ts'
import { httpSseClient, sseUrl } from '../../kit/http-sse-client.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { until } from '../../kit/until.ts'

t.test('a request with the id of one in flight is refused, and the one in flight is not disturbed', async (t) => {
  const { url, upstream } = await acmeGateway(t)
  const client = await legacyClient(url(), keyOf.ada)
  for (const id of [7, 'seven']) {
    const first = client.request('tools/call', { name: 'slow', arguments: {} }, { id })
    await until('the first call', () => upstream.server.calls('slow') === (id === 7 ? 1 : 2))
    const second = await client.request('tools/call', { name: 'echo', arguments: {} }, { id })
    t.equal(second.status, 400)
    t.match(second.json, { id, error: { data: { reason: 'invalid_request' } } })
    t.match(second.json.error.message, /in flight/)
    t.equal(upstream.server.calls('echo'), id === 7 ? 0 : 1, 'it does not reach the upstream')
    upstream.server.release()
    t.match((await first).json, { id, result: { content: [{ text: 'slow is done' }] } })
    // The same request in its legitimate form: the id is free again.
    t.match((await client.request('tools/call', { name: 'echo', arguments: {} }, { id })).json, { id, result: {} })
  }
})

t.test('the same id is another request in another session, and as text it is another id', async (t) => {
  const { url, upstream } = await acmeGateway(t)
  const [one, two] = [await legacyClient(url(), keyOf.ada), await legacyClient(url(), keyOf.ada)]
  const first = one.request('tools/call', { name: 'slow', arguments: {} }, { id: 1 })
  await until('the first call', () => upstream.server.calls('slow') === 1)
  t.match((await one.request('tools/call', { name: 'echo', arguments: {} }, { id: '1' })).json, { id: '1', result: {} })
  t.match((await two.request('tools/call', { name: 'echo', arguments: {} }, { id: 1 })).json, { id: 1, result: {} })
  upstream.server.release()
  t.match((await first).json, { id: 1, result: {} })
})

t.test('a batch with one id twice is refused as a whole', async (t) => {
  const { url, upstream } = await acmeGateway(t)
  const { headers } = await legacyClient(url(), keyOf.ada, '2025-03-26')
  const batch = (...ids: number[]): string =>
    JSON.stringify(
      ids.map((id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: {} } }))
    )
  const refused = await send(url(), { headers, body: batch(1, 2, 1) })
  t.equal(refused.status, 400)
  t.equal(refused.json.error.data.reason, 'invalid_request')
  t.equal(upstream.server.calls('echo'), 0)
  const answered = await send(url(), { headers, body: batch(1, 2, 3) })
  t.same(answered.json.map(({ id }: { id: number }) => id).sort(), [1, 2, 3])
})

t.test('over HTTP+SSE the POST is refused, so that nothing on the stream answers the one in flight', async (t) => {
  const { url, upstream } = await acmeGateway(t)
  const client = await httpSseClient(sseUrl(url()), keyOf.ada)
  t.teardown(() => client.close())
  const post = (id: number, name: string) =>
    client.post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } })
  t.equal((await post(7, 'slow')).status, 202)
  await until('the first call', () => upstream.server.calls('slow') === 1)
  const second = await post(7, 'echo')
  t.equal(second.status, 400)
  t.equal(second.json.error.data.reason, 'invalid_request')
  upstream.server.release()
  t.match(await client.next('the first answer', ({ id }) => id === 7), {
    result: { content: [{ text: 'slow is done' }] }
  })
  t.equal((await post(7, 'echo')).status, 202)
})

t.test('a progress token is a string or an integer', async (t) => {
  const { url, upstream } = await acmeGateway(t)
  const client = await legacyClient(url(), keyOf.ada)
  const params = { name: 'progress', arguments: { steps: 1 } }
  for (const progressToken of [1.5, null, true, {}, [], ['a'], 1e300, 2 ** 53]) {
    const text = JSON.stringify(progressToken)
    const { json } = await client.request('tools/call', { ...params, _meta: { progressToken } })
    t.equal(json.error?.code, -32602, `${text} of a session`)
    t.match(json.error?.message, /progressToken/)
    const modern = await modernRequest(url(), 'tools/call', params, { token: keyOf.ada, meta: { progressToken } })
    t.equal(modern.status, 400, `${text} of 2026-07-28`)
  }
  t.equal(upstream.server.calls('progress'), 0)
  for (const progressToken of ['', 'a', 0, -1, 2 ** 53 - 1]) {
    const { messages } = await client.request('tools/call', { ...params, _meta: { progressToken } })
    t.same(messages[0].params.progressToken, progressToken)
  }
})
