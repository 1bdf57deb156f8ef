// What a process holds of a session in use: one stream, calls, and what it has still to tell.

import t from 'tap'
import type { JsonObject } from '../../src/protocol/messages.ts'
import { createAsks } from '../../src/session/asks.ts'
import { createLiveSessions } from '../../src/session/live.ts'
import type { LiveOptions } from '../../src/session/live.ts'
import { until } from '../kit/until.ts'
import { ada, endpoint, hello } from './kit.ts'

const session = (key: string) => ({ key, record: { owner: ada, endpoint, ...hello, seat: 0, logLevel: undefined, openedAt: 0, touchedAt: 0 } })

const asks = () => createAsks({ timer: (ms, run) => setTimeout(run, ms).unref(), prefix: 'test' })
const liveSessions = (options: Omit<LiveOptions, 'asks'>) => createLiveSessions({ ...options, asks })

function outlet () {
  const sent: JsonObject[] = []
  let ended = 0
  const made = { sent, ends: () => ended, attached: true, send: (message: unknown) => { sent.push(message as JsonObject) }, finish: () => { ended++ } }
  return made
}
const message = (method: string) => ({ jsonrpc: '2.0', method })

t.test('the newest stream takes over', async (t) => {
  const live = liveSessions({ clock: { now: () => 0 } })
  t.teardown(() => live.close())
  const one = live.use(session('a'))
  t.equal(live.use(session('a')), one)
  const [first, second] = [outlet(), outlet()]
  one.listen(first)
  one.listen(second)
  t.equal(first.ends(), 1)
  first.attached = false
  t.ok(one.listening, 'the late goodbye of the first does not take the second away')
  one.send({ method: 'x' })
  t.same(first.sent, [])
  t.same(second.sent, [message('x')])
})

t.test('changes without a listener become one message per kind; other messages are dropped', async (t) => {
  const live = liveSessions({ clock: { now: () => 0 } })
  t.teardown(() => live.close())
  const one = live.use(session('a'))
  one.send({ method: 'lost' })
  one.changed(['tools', 'prompts'])
  one.changed(['tools'])
  const stream = outlet()
  one.listen(stream)
  t.same(stream.sent, [message('notifications/tools/list_changed'), message('notifications/prompts/list_changed')])
  one.changed(['resources'])
  t.equal(stream.sent.length, 3)
  stream.attached = false
  const next = outlet()
  one.listen(next)
  t.same(next.sent, [], 'told once')
})

t.test('the end of a session ends its stream and its calls, with a reason, and tells who holds things for it', async (t) => {
  const live = liveSessions({ clock: { now: () => 0 } })
  t.teardown(() => live.close())
  const dropped: string[] = []
  live.onDrop((key) => dropped.push(key))
  const one = live.use(session('a'))
  live.use(session('b'))
  const stream = outlet()
  one.listen(stream)
  const reasons: Error[] = []
  one.calls.add({ id: 1, cancel: () => t.fail('not at the wish of the caller'), end: (reason) => { reasons.push(reason) }, push: () => true })
  live.drop('a')
  t.equal(stream.ends(), 1)
  t.match(reasons, [{ code: 'session_unknown', data: { outcome: 'unknown' } }])
  t.same(dropped, ['a'])
  t.equal(live.get('a'), undefined)
  t.equal(live.size, 1)
  live.drop('never seen')
  t.same(dropped, ['a', 'never seen'], 'also for a session that only others held')
})

t.test('what is unused for the idle time is let go; what has a call or a listener is not', async (t) => {
  let now = 0
  const live = liveSessions({ clock: { now: () => now }, idleMs: () => 20 })
  t.teardown(() => live.close())
  const dropped: string[] = []
  live.onDrop((key) => dropped.push(key))
  live.use(session('idle'))
  live.use(session('calling')).calls.add({ id: 1, cancel () {}, end () {}, push: () => true })
  live.use(session('listening')).listen(outlet())
  now = 21
  live.use(session('used'))
  await until('the idle one is gone', () => dropped.length > 0)
  t.same(dropped, ['idle'])
  t.same([...live.all()].map(({ key }) => key), ['calling', 'listening', 'used'])
})

t.test('a session may end while its client is asked, or told something', async (t) => {
  const live = liveSessions({ clock: { now: () => 0 } })
  t.teardown(() => live.close())
  const dropped: string[] = []
  live.onDrop((key) => dropped.push(key))
  // As a stream that finds, when it is written to, that its client is gone or its token has expired.
  const gone = outlet()
  const stream = { ...gone, send: () => live.drop('a') }
  const one = live.use(session('a'))
  one.listen(stream)
  await t.rejects(one.ask({ method: 'roots/list' }), { code: 'session_unknown' })
  t.same([dropped, gone.ends(), live.size], [['a'], 1, 0])
})

t.test('whoever holds things for a session lets go of them, even where its end goes wrong', async (t) => {
  const live = liveSessions({ clock: { now: () => 0 } })
  t.teardown(() => live.close())
  const dropped: string[] = []
  live.onDrop((key) => dropped.push(key))
  live.use(session('a')).listen({ ...outlet(), finish: () => { throw new Error('a broken stream') } })
  t.throws(() => live.drop('a'), new Error('a broken stream'))
  t.same([dropped, live.size], [['a'], 0])
})
