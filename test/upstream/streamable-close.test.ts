// The end of a session over Streamable HTTP: a server that is busy is given the time to hear of it, and one that never
// answers holds nobody up.

import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { handClock, handshake, httpDefinition, recordingEvents, testConnector, until } from '../kit/connector.ts'
import { isMethod, startUpstream } from '../kit/upstream.ts'

/** A connection that is being closed, and the answer for which its server lets it wait. */
async function closing(t: Test) {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const clock = handClock()
  const { connector } = testConnector({ clock })
  const upstream = await connector.connect(httpDefinition(peer.url), handshake, recordingEvents())
  const held: ServerResponse[] = []
  peer.override(
    ({ method }) => method === 'DELETE',
    (response) => held.push(response)
  )
  const state = { closed: false }
  void upstream.close().then(() => {
    state.closed = true
  })
  await until(() => held.length === 1, 'the server is told')
  return { clock, state, answer: held[0] as ServerResponse }
}

t.test('a server that needs two and a half seconds to end a session is waited for', async (t) => {
  const { clock, state, answer } = await closing(t)
  let broken = false
  answer.once('close', () => {
    broken = !answer.writableEnded
  })
  clock.advance(2_500)
  // Whatever the advance has begun comes to its end in the turns of these.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  t.notOk(state.closed)
  answer.writeHead(204).end()
  await until(() => state.closed, 'it is closed')
  t.notOk(broken)
})

t.test('a server that never answers is not waited for', async (t) => {
  const { clock, state } = await closing(t)
  t.notOk(state.closed)
  clock.advance(3_000)
  await until(() => state.closed, 'it is closed')
})

t.test('messages that a server has not taken when its connection is closed are dropped: none is begun', async (t) => {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const clock = handClock()
  const { connector } = testConnector({ clock })
  const connect = () => connector.connect(httpDefinition(peer.url), handshake, recordingEvents())
  // It has the same sockets, which are closed with the last one.
  const other = await connect()
  t.teardown(() => other.close())
  const upstream = await connect()
  const changed = 'notifications/roots/list_changed'
  peer.override(isMethod(changed), () => {}, Infinity)
  const taken = (): number => peer.seen.filter(isMethod(changed)).length
  for (let sent = 0; sent < 300; sent++) upstream.notify({ method: changed })
  await until(() => taken() === 64, 'as many as are sent at a time have come')
  const before = peer.connections()
  let closed = false
  void upstream.close().then(() => {
    closed = true
  })
  const isToldOfEnd = (): boolean => peer.seen.some(({ method }) => method === 'DELETE')
  t.notOk(isToldOfEnd(), 'those that wait have some time')
  clock.advance(3_000)
  await until(() => closed && isToldOfEnd(), 'it is closed')
  // Whatever was begun before reaches the server before this.
  const last = await connect()
  t.teardown(() => last.close())
  t.equal(taken(), 64)
  t.ok(peer.connections() - before < 64, `${peer.connections() - before} more connections`)
})
