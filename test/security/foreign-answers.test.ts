// A question is answered by the client that was asked, in the session in which it was asked, and by nobody else.

import t from 'tap'
import { acme, keyOf } from '../kit/acme.ts'
import { asker, callThatAsks, post } from '../kit/asked.ts'
import { listenEvents } from '../kit/events.ts'
import { until } from '../kit/until.ts'

t.test('answers posted by another session, another user or another endpoint settle nothing', async (t) => {
  const house = await acme(t)
  const victim = await asker(house.url(), keyOf.ada)
  const asked = await callThatAsks(house.url(), victim, 'elicit')
  const { id } = asked.question as { id: string }
  const forged = { id, result: { action: 'accept', content: { forged: true } } }

  const others = [await asker(house.url(), keyOf.ada), await asker(house.url(), keyOf.bob)]
  for (const other of others) {
    t.equal((await post(house.url(), other, forged)).status, 202, 'an answer to nothing is no error')
    t.equal((await post(house.url(), other, { id, error: { code: 1, message: 'forged' } })).status, 202)
    await other.notify('notifications/cancelled', { requestId: id })
    await other.notify('notifications/cancelled', { requestId: 'the call' })
    await other.notify('notifications/progress', { progressToken: id, progress: 1 })
  }
  const elsewhere = await asker(house.url('files'), keyOf.ada)
  t.equal((await post(house.url('files'), elsewhere, forged)).status, 202)
  // With the session of the victim, but as somebody else, or at another endpoint.
  t.equal((await post(house.url(), { headers: { ...victim.headers, authorization: `Bearer ${keyOf.bob}` } }, forged)).status, 404)
  t.equal((await post(house.url(), { headers: { ...victim.headers, authorization: 'Bearer wrong' } }, forged)).status, 401)
  t.equal((await post(house.url('files'), victim, forged)).status, 404)
  t.equal(house.upstream.server.answers.size, 0)

  await post(house.url(), victim, { id, result: { action: 'accept', content: { forged: false } } })
  t.same((await asked.result())['result'], { action: 'accept', content: { forged: false } })
})

t.test('two sessions with questions of the same name: each answers its own', async (t) => {
  const house = await acme(t)
  const [ada, bob] = [await asker(house.url(), keyOf.ada), await asker(house.url(), keyOf.bob)]
  const [first, second] = [await callThatAsks(house.url(), ada, 'elicit'), await callThatAsks(house.url(), bob, 'elicit')]
  await post(house.url(), bob, { id: first.question['id'], result: { action: 'accept', content: { by: 'bob' } } })
  await post(house.url(), bob, { id: second.question['id'], result: { action: 'accept', content: { by: 'bob' } } })
  await post(house.url(), ada, { id: first.question['id'], result: { action: 'accept', content: { by: 'ada' } } })
  t.equal((await first.result())['result'].content.by, 'ada')
  t.equal((await second.result())['result'].content.by, 'bob')
})

t.test('a question is on the stream of its own session only', async (t) => {
  const house = await acme(t)
  const [ada, also, bob] = [await asker(house.url(), keyOf.ada), await asker(house.url(), keyOf.ada), await asker(house.url(), keyOf.bob)]
  const others = [await listenEvents(house.url(), also), await listenEvents(house.url(), bob)]
  for (const stream of others) await until('it is primed', () => stream.lastId())
  const asked = await callThatAsks(house.url(), ada, 'elicit')
  await post(house.url(), ada, { id: asked.question['id'], result: { action: 'decline' } })
  await asked.result()
  t.same(others.map((stream) => stream.messages()), [[], []])
  for (const stream of others) stream.cut()
})
