// What a process holds of a session in use: one stream, calls in flight and pending list changes.

import t, { type Test } from 'tap'
import { createLiveSessions, type LiveSessions } from '../../src/session/live-sessions.ts'
import { wallClock } from '../../src/time/clock.ts'
import { until } from '../kit/until.ts'
import { session, stream } from './kit.ts'

const liveSessions = (t: Test, now = () => 0, idleMs = () => 60_000): LiveSessions => {
  const live = createLiveSessions({ ...wallClock, now }, 'test', idleMs)
  t.teardown(() => live.close())
  return live
}

const message = (method: string) => ({ jsonrpc: '2.0', method })

t.test('the newest stream takes over', async (t) => {
  const live = liveSessions(t)
  const one = live.use(session('a'))
  t.equal(live.use(session('a')), one)
  const [first, second] = [stream(), stream()]
  one.setStream(first)
  one.setStream(second)
  t.equal(first.ends(), 1)
  first.attached = false
  t.ok(one.isListening(), 'the late end of the first does not detach the second')
  one.send({ method: 'x' })
  t.same(first.sent, [])
  t.same(second.sent, [message('x')])
})

t.test('what a stream elsewhere has left over goes to the newest one', async (t) => {
  const one = liveSessions(t).use(session('a'))
  const left = Promise.withResolvers<void>()
  let give: (given: ReturnType<typeof message>) => void = () => {}
  one.setStream({
    ...stream(),
    leaveRestTo(next) {
      give = next
      return left.promise
    }
  })
  const [second, third] = [stream(), stream()]
  one.setStream(second)
  give(message('x'))
  one.setStream(third)
  give(message('y'))
  t.same([second.sent, third.sent], [[message('x')], [message('y')]])
})

t.test('list changes wait for a stream and become one message per kind; other messages are dropped', async (t) => {
  const live = liveSessions(t)
  const one = live.use(session('a'))
  one.send({ method: 'lost' })
  one.listsChanged(['tools', 'prompts'])
  one.listsChanged(['tools'])
  const own = stream()
  one.setStream(own)
  t.same(own.sent, [message('notifications/tools/list_changed'), message('notifications/prompts/list_changed')])
  one.listsChanged(['resources'])
  t.equal(own.sent.length, 3)
  own.attached = false
  const next = stream()
  one.setStream(next)
  t.same(next.sent, [], 'sent once')
})

t.test('of what waits for a stream that is expected, it is told what there is no room for', async (t) => {
  const told: string[] = []
  const live = createLiveSessions(wallClock, 'test', undefined, ({ tenant }) => void told.push(tenant))
  t.teardown(() => live.close())
  const one = live.use(session('a'))
  one.expectStream()
  for (let n = 0; n < 1_000; n++) one.send({ method: `message ${n}` })
  t.same(told, [], 'the control')
  one.send({ method: 'message 1000' })
  t.same(told, ['acme'])
  const own = stream()
  one.setStream(own)
  t.same([own.sent.length, own.sent[0]], [1_000, message('message 1')])
})

t.test('the end of a session ends its stream and its calls with a reason, and is told to listeners', async (t) => {
  const live = liveSessions(t)
  const dropped: string[] = []
  live.onDrop((key) => dropped.push(key))
  const one = live.use(session('a'))
  live.use(session('b'))
  const own = stream()
  one.setStream(own)
  const reasons: Error[] = []
  one.calls.add({
    id: 1,
    cancel: () => t.fail('not at the wish of the caller'),
    end: (reason) => {
      reasons.push(reason)
    },
    push: () => true
  })
  live.drop('a')
  t.equal(own.ends(), 1)
  t.match(reasons, [{ code: 'session_unknown', data: { outcome: 'unknown' } }])
  t.same(dropped, ['a'])
  t.equal(live.get('a'), undefined)
  t.equal(live.size, 1)
  live.drop('never seen')
  t.same(dropped, ['a', 'never seen'], 'also of a session that this process does not hold')
})

t.test('a session unused for the idle time is dropped, unless it has a call or a stream', async (t) => {
  let now = 0
  const live = liveSessions(
    t,
    () => now,
    () => 20
  )
  const dropped: string[] = []
  live.onDrop((key) => dropped.push(key))
  live.use(session('idle'))
  live.use(session('calling')).calls.add({ id: 1, cancel() {}, end() {}, push: () => true })
  live.use(session('listening')).setStream(stream())
  now = 21
  live.use(session('used'))
  await until('the idle one is gone', () => dropped.length > 0)
  t.same(dropped, ['idle'])
  t.same(
    [...live.all()].map(({ key }) => key),
    ['calling', 'listening', 'used']
  )
})

t.test('its home says when a session that was left to expire was used last', async (t) => {
  let now = 5
  const live = liveSessions(
    t,
    () => now,
    () => 20
  )
  const told: Array<readonly [string, number | undefined]> = []
  live.onDrop((key, left) => told.push([key, left?.usedAt]))
  const elsewhere = session('elsewhere')
  live.use({ ...elsewhere, record: { ...elsewhere.record, home: 'another' } })
  live.use(session('left'))
  live.use(session('ended'))
  live.drop('ended')
  now = 26
  await until('both are gone', () => told.length === 3)
  t.same(told, [
    ['ended', undefined],
    ['elsewhere', undefined],
    ['left', 5]
  ])
})

t.test('a session may end while a server request is written to its stream', async (t) => {
  const live = liveSessions(t)
  const dropped: string[] = []
  live.onDrop((key) => dropped.push(key))
  // As a stream that finds, when it is written to, that its client is gone or its token has expired.
  const gone = stream()
  const own = { ...gone, send: () => live.drop('a') }
  const one = live.use(session('a'))
  one.setStream(own)
  await t.rejects(one.ask({ method: 'roots/list' }), { code: 'session_unknown' })
  t.same([dropped, gone.ends(), live.size], [['a'], 1, 0])
})

t.test('listeners are told of the end of a session even where its stream throws', async (t) => {
  const live = liveSessions(t)
  const dropped: string[] = []
  live.onDrop((key) => dropped.push(key))
  live.use(session('a')).setStream({
    ...stream(),
    finish: () => {
      throw new Error('a broken stream')
    }
  })
  t.throws(() => live.drop('a'), new Error('a broken stream'))
  t.same([dropped, live.size], [['a'], 0])
})
