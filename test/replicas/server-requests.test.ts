// What a client sends about something that is at another replica: the answer to a server request, its progress, a
// cancellation, what it tells its servers.

import t from 'tap'
import { postEvents } from '../kit/events.ts'
import { callUntilServerRequest, post } from '../kit/server-request.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { sessionAt, startReplicas } from './rig.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const rig = await startReplicas(t, {
  upstreams: { up: { type: 'http', url: upstream.url } },
  endpoints: { default: { upstreams: ['up'], prefix: '' } }
})

for (const node of [0, 1, 2])
  t.test(`the answer to a server request may come to replica ${node}`, async (t) => {
    const client = await sessionAt(rig.at(0))
    for (const tool of ['elicit', 'sample', 'roots']) {
      const asking = await callUntilServerRequest(rig.at(0), client, tool)
      const answer = { action: 'accept', content: { name: tool }, roots: [] }
      t.equal((await post(rig.at(node), client, { id: asking.serverRequest['id'], result: answer })).status, 202)
      t.match(await asking.result(), { result: { action: 'accept' } })
    }
  })

t.test('an error as the answer, and a session of its own, across replicas', async (t) => {
  const client = await sessionAt(rig.at(0))
  const asking = await callUntilServerRequest(rig.at(0), client, 'elicit')
  const id = asking.serverRequest['id'] as string
  const other = await sessionAt(rig.at(1))
  t.equal((await post(rig.at(1), other, { id, result: { action: 'accept' } })).status, 400, 'it was not asked')
  t.equal((await post(rig.at(1), client, { id, error: { code: -1, message: 'no' } })).status, 202)
  t.match(await asking.result(), { error: { code: -1, message: 'no' } })
})

t.test('an answer to what nobody asked is refused at once, at every replica', async (t) => {
  const client = await sessionAt(rig.at(0))
  const asking = await callUntilServerRequest(rig.at(0), client, 'elicit')
  const id = asking.serverRequest['id'] as string
  const [home, count] = id.split('-')
  const never = [`${home}-${Number(count) + 1000}`, 'ffffffff-1', 'nobody', 7]
  for (const node of [0, 1])
    for (const each of never) {
      const answer = await post(rig.at(node), client, { id: each, result: { action: 'accept' } })
      t.equal(answer.status, 400, `${each} at ${node}`)
      t.match(answer.json, { error: { data: { reason: 'invalid_request' } } })
    }
  t.equal((await post(rig.at(2), client, { id, result: { action: 'accept' } })).status, 202)
  await asking.result()
  t.equal((await post(rig.at(1), client, { id, result: { action: 'accept' } })).status, 202, 'a second one is late')
})

t.test('a cancellation reaches its call at another replica', async (t) => {
  const client = await sessionAt(rig.at(0))
  const call = await postEvents(rig.at(0), client, 'slow call', 'tools/call', {
    name: 'slow',
    _meta: { progressToken: 'p' }
  })
  await call.next('progress', ({ method }) => method === 'notifications/progress')
  const other = await sessionAt(rig.at(1))
  const cancel = { method: 'notifications/cancelled', params: { requestId: 'slow call', reason: 'enough' } }
  await post(rig.at(1), other, cancel)
  t.equal((await other.request('ping')).status, 200)
  t.notOk(call.closed, 'of another session it is not')
  t.equal((await post(rig.at(1), client, cancel)).status, 202)
  await call.ended
  t.notOk(
    call.messages().some(({ id }) => id === 'slow call'),
    'nothing is answered'
  )
  await until('the upstream was told', () =>
    upstream.server.received.some(({ method }) => method === 'notifications/cancelled')
  )
})

t.test('a change of the roots reaches the server, whichever replica is told', async (t) => {
  const client = await sessionAt(rig.at(0))
  const heard = (): number =>
    upstream.server.received.filter(({ method }) => method === 'notifications/roots/list_changed').length
  for (const node of [0, 1, 2]) {
    t.match((await post(rig.at(node), client, { id: node, method: 'tools/call', params: { name: 'echo' } })).json, {
      result: {}
    })
    const before = heard()
    t.equal((await post(rig.at(node), client, { method: 'notifications/roots/list_changed' })).status, 202)
    await until(`the server is told by replica ${node}`, () => heard() > before)
    t.equal(heard(), before + 1, 'once')
  }
})
