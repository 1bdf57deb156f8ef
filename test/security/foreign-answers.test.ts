// Attack: a response to a server request is posted from another session, user or endpoint. It counts only in the
// session that was asked.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { capableClient, callUntilServerRequest, post } from '../kit/server-request.ts'
import { listenEvents } from '../kit/events.ts'
import { until } from '../kit/until.ts'

t.test('answers posted by another session, another user or another endpoint settle nothing', async (t) => {
  const acme = await acmeGateway(t)
  const victim = await capableClient(acme.url(), keyOf.ada)
  const asked = await callUntilServerRequest(acme.url(), victim, 'elicit')
  const { id } = asked.serverRequest as { id: string }
  const forged = { id, result: { action: 'accept', content: { forged: true } } }

  const others = [await capableClient(acme.url(), keyOf.ada), await capableClient(acme.url(), keyOf.bob)]
  for (const other of others) {
    t.equal((await post(acme.url(), other, forged)).status, 400, 'it was not asked')
    t.equal((await post(acme.url(), other, { id, error: { code: 1, message: 'forged' } })).status, 400)
    await other.notify('notifications/cancelled', { requestId: id })
    await other.notify('notifications/cancelled', { requestId: 'the call' })
    await other.notify('notifications/progress', { progressToken: id, progress: 1 })
  }
  const elsewhere = await capableClient(acme.url('files'), keyOf.ada)
  t.equal((await post(acme.url('files'), elsewhere, forged)).status, 400)
  // With the session of the victim, but as somebody else, or at another endpoint.
  t.equal(
    (await post(acme.url(), { headers: { ...victim.headers, authorization: `Bearer ${keyOf.bob}` } }, forged)).status,
    404
  )
  t.equal(
    (await post(acme.url(), { headers: { ...victim.headers, authorization: 'Bearer wrong' } }, forged)).status,
    401
  )
  t.equal((await post(acme.url('files'), victim, forged)).status, 404)
  t.equal(acme.upstream.server.answers.size, 0)

  await post(acme.url(), victim, { id, result: { action: 'accept', content: { forged: false } } })
  t.same((await asked.result())['result'], { action: 'accept', content: { forged: false } })
})

t.test('of two sessions with server requests of the same id each answers its own', async (t) => {
  const acme = await acmeGateway(t)
  const [ada, bob] = [await capableClient(acme.url(), keyOf.ada), await capableClient(acme.url(), keyOf.bob)]
  const [first, second] = [
    await callUntilServerRequest(acme.url(), ada, 'elicit'),
    await callUntilServerRequest(acme.url(), bob, 'elicit')
  ]
  await post(acme.url(), bob, { id: first.serverRequest['id'], result: { action: 'accept', content: { by: 'bob' } } })
  await post(acme.url(), bob, { id: second.serverRequest['id'], result: { action: 'accept', content: { by: 'bob' } } })
  await post(acme.url(), ada, { id: first.serverRequest['id'], result: { action: 'accept', content: { by: 'ada' } } })
  t.equal((await first.result())['result'].content.by, 'ada')
  t.equal((await second.result())['result'].content.by, 'bob')
})

t.test('a server request is on the stream of its own session only', async (t) => {
  const acme = await acmeGateway(t)
  const [ada, also, bob] = [
    await capableClient(acme.url(), keyOf.ada),
    await capableClient(acme.url(), keyOf.ada),
    await capableClient(acme.url(), keyOf.bob)
  ]
  const others = [await listenEvents(acme.url(), also), await listenEvents(acme.url(), bob)]
  for (const stream of others) await until('it is primed', () => stream.lastId())
  const asked = await callUntilServerRequest(acme.url(), ada, 'elicit')
  await post(acme.url(), ada, { id: asked.serverRequest['id'], result: { action: 'decline' } })
  await asked.result()
  t.same(
    others.map((stream) => stream.messages()),
    [[], []]
  )
  for (const stream of others) stream.cut()
})
