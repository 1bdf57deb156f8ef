// Fault: a client with a session loses its connection while a modern server waits for its input. That cancels nothing
// (2025-11-25 basic/transports): the client resumes the stream and answers. Only an explicit cancel cancels.

import t, { type Test } from 'tap'
import { capableClient, isServerRequest, post, type Json } from '../kit/server-request.ts'
import { listenEvents, postEvents } from '../kit/events.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'

async function acme(t: Test) {
  const modern = await startModern()
  t.teardown(() => modern.close())
  const { url } = await gateway(t, {
    upstreams: { up: { type: 'http', url: modern.url, era: 'modern' } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const client = await capableClient(url(), key)
  const stream = await postEvents(url(), client, 'the call', 'tools/call', { name: 'ask', arguments: {} })
  const serverRequest = (await stream.next('the server request', isServerRequest)) as Json
  return { url: url(), client, stream, serverRequest, server: modern.server }
}

t.test('a client that resumes the stream gets the result, and the upstream is called once per round', async (t) => {
  const { url, client, stream, serverRequest, server } = await acme(t)
  const lastEventId = String(stream.lastId())
  stream.cut()
  await stream.ended
  t.equal((await client.request('ping')).status, 200)
  t.same(server.cancelled, [], 'nothing is cancelled')
  t.equal(
    (await post(url, client, { id: serverRequest['id'], result: { action: 'accept', content: { name: 'Ada' } } }))
      .status,
    202
  )
  const again = await listenEvents(url, client, lastEventId)
  const { result } = (await again.next('the result', (message: Json) => message['id'] === 'the call')) as Json
  t.same(JSON.parse(String(result.content[0].text)).inputResponses, {
    user_name: { action: 'accept', content: { name: 'Ada' } }
  })
  t.equal(server.requests('tools/call', 'ask').length, 2)
  again.cut()
})

t.test('a cancelled call sends its client no further request, and its upstream no response', async (t) => {
  const { url, client, stream, serverRequest, server } = await acme(t)
  await client.notify('notifications/cancelled', { requestId: 'the call' })
  await stream.ended
  t.equal(
    (await post(url, client, { id: serverRequest['id'], result: { action: 'accept', content: {} } })).status,
    202,
    'an answer to nothing is no error'
  )
  t.match(await client.request('tools/call', { name: 'echo', arguments: {} }), { status: 200, json: { result: {} } })
  t.equal(server.requests('tools/call', 'ask').length, 1)
})

t.test('the end of the session ends the call in the same way', async (t) => {
  const { client, stream, server } = await acme(t)
  t.equal((await client.end()).status, 204)
  await stream.ended
  await until('the session is gone', async () => (await client.request('ping')).status === 404)
  t.equal(server.requests('tools/call', 'ask').length, 1)
})
