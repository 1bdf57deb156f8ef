// A client of a session that goes away while a modern upstream waits for its answer cancels nothing (2025-11-25 basic/transports): it
// comes back for what it missed, answers, and the call ends where it would have. Only what says so cancels.

import t from 'tap'
import type { Test } from 'tap'
import { asker, isQuestion, post } from '../kit/asked.ts'
import type { Json } from '../kit/asked.ts'
import { listenEvents, postEvents } from '../kit/events.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'

async function house (t: Test) {
  const modern = await startModern()
  t.teardown(() => modern.close())
  const { url } = await gateway(t, { upstreams: { up: { type: 'http', url: modern.url, era: 'modern' } }, endpoints: { default: { upstreams: ['up'], prefix: '' } } })
  const client = await asker(url(), key)
  const stream = await postEvents(url(), client, 'the call', 'tools/call', { name: 'ask', arguments: {} })
  const question = await stream.next('the question', isQuestion) as Json
  return { url: url(), client, stream, question, server: modern.server }
}

t.test('who comes back with the last event id finds the result; the upstream is called twice, once per round', async (t) => {
  const { url, client, stream, question, server } = await house(t)
  const lastEventId = String(stream.lastId())
  stream.cut()
  await stream.ended
  t.equal((await client.request('ping')).status, 200)
  t.same(server.cancelled, [], 'nothing is cancelled')
  t.equal((await post(url, client, { id: question['id'], result: { action: 'accept', content: { name: 'Ada' } } })).status, 202)
  const again = await listenEvents(url, client, lastEventId)
  const { result } = await again.next('the result', (message: Json) => message['id'] === 'the call') as Json
  t.same(JSON.parse(String(result.content[0].text)).inputResponses, { user_name: { action: 'accept', content: { name: 'Ada' } } })
  t.equal(server.requests('tools/call', 'ask').length, 2)
  again.cut()
})

t.test('who cancels is asked no more, and the upstream hears of no answer', async (t) => {
  const { url, client, stream, question, server } = await house(t)
  await client.notify('notifications/cancelled', { requestId: 'the call' })
  await stream.ended
  t.equal((await post(url, client, { id: question['id'], result: { action: 'accept', content: {} } })).status, 202, 'an answer to nothing is no error')
  t.match(await client.request('tools/call', { name: 'echo', arguments: {} }), { status: 200, json: { result: {} } })
  t.equal(server.requests('tools/call', 'ask').length, 1)
})

t.test('who ends the session is asked no more either', async (t) => {
  const { client, stream, server } = await house(t)
  t.equal((await client.end()).status, 204)
  await stream.ended
  await until('the session is gone', async () => (await client.request('ping')).status === 404)
  t.equal(server.requests('tools/call', 'ask').length, 1)
})
