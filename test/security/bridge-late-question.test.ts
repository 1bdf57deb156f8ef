// An older server that goes on with a call that was cancelled, and asks: over HTTP+SSE and stdio nothing says which call it means. Its
// question must not be put to the next one, whose client would agree to something else.

import t from 'tap'
import { key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { able, answersTo, asks, parkingHouse, replies, round, script, steps, textOf } from '../kit/parking.ts'
import { until } from '../kit/until.ts'

t.test('what a cancelled call asks late is put to nobody, and the next call is asked only what is its own', async (t) => {
  const house = await parkingHouse(t, {}, { ...script, deaf: true })
  const there = house.url('stream')
  const { server } = house.sse
  const counted = (method: string): number => server.received.filter((message) => message['method'] === method).length
  await round(there, 'tools/call', { name: 'echo', arguments: {} })
  const stop = new AbortController()
  const first = modernRequest(there, 'tools/call', steps({ wait: true }, { ask: [asks.form] }), { token: key, capabilities: able, signal: stop.signal }).catch(() => 'cancelled')
  await until('it runs', () => server.calls('steps') === 1)
  stop.abort()
  t.equal(await first, 'cancelled')
  await until('its server knows', () => counted('notifications/cancelled') === 1)
  const second = round(there, 'tools/call', steps({ wait: true }, { wait: true }))
  await until('the next one runs', () => server.calls('steps') === 2)
  server.release()
  await until('the question has been answered', () => server.answers.size === 1)
  t.match([...server.answers.values()], [{ result: { action: 'cancel' } }])
  server.release()
  t.match((await second).result, { resultType: 'complete' })
  const connections = counted('initialize')
  const third = await round(there, 'tools/call', steps({ ask: [asks.form] }))
  t.equal(Object.keys(third.inputRequests).length, 1, 'a question of its own comes through')
  t.equal(counted('initialize'), connections, 'on a connection that is there')
  const last = await round(there, 'tools/call', { ...steps({ ask: [asks.form] }), requestState: third.requestState, inputResponses: answersTo(third.inputRequests) })
  t.same(textOf(last.result), [replies.form])
})
