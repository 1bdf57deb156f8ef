// The stream of a session whose client listens at one process now, and at another one later.

import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { createLiveSessions } from '../../src/session/live-sessions.ts'
import { createSessionBus } from '../../src/session/elsewhere/session-bus.ts'
import { nodeChannel } from '../../src/store/keys.ts'
import { wallClock } from '../../src/time/clock.ts'
import { until } from '../kit/until.ts'
import { wire } from './bus-kit.ts'
import { session, stream } from './kit.ts'

t.test('a stream that has been replaced by one at this process stays replaced when its client leaves it', async (t) => {
  const setup = await wire(t)
  const live = createLiveSessions(wallClock, 'two')
  t.teardown(() => live.close())
  createSessionBus(setup.two, live, wallClock, { listening() {}, notified() {} })
  const used = live.use(session('a'))
  const tell = (attached: boolean, isNew: boolean) =>
    setup.one.tell('two', 'stream', { key: 'a', said: { attached, isNew } })

  await tell(true, true)
  await until('the client listens at the other process', () => used.isListening())
  const remote = used.stream
  const local = stream()
  used.setStream(local)
  t.equal(remote?.isAttached(), false, 'it is finished')
  await tell(false, false)
  // Messages of one process arrive in their order: after this one, the one before was heard.
  const heard = Promise.withResolvers<void>()
  setup.two.hear('progress', () => heard.resolve())
  await setup.one.tell('two', 'progress', {})
  await heard.promise
  used.send({ method: 'notifications/message' })
  t.same([local.sent.length, local.ends()], [1, 0], 'what is sent goes to the newer stream')

  await tell(true, true)
  await until('a newer stream at the other process takes its place', () => local.ends() === 1)
})

t.test('what the stream before has not heard comes ahead of what is newer', async (t) => {
  const setup = await wire(t)
  const live = createLiveSessions(wallClock, 'two')
  t.teardown(() => live.close())
  createSessionBus(setup.two, live, wallClock, { listening() {}, notified() {} })
  const used = live.use(session('a'))
  const send = (n: number): void => used.send({ method: 'notifications/message', params: { n } })
  await setup.one.tell('two', 'stream', { key: 'a', said: { attached: true, isNew: true } })
  await until('the client listens at the other process', () => used.isListening())
  let tries = 0
  setup.fail = (channel) => (channel === nodeChannel('one') ? (tries++, 'lost') : undefined)
  for (const n of [1, 2]) send(n)
  await until('nobody hears them', () => tries > 2)
  const next = stream()
  used.setStream(next)
  for (const n of [3, 4]) send(n)
  await until('all came', () => next.sent.length === 4)
  t.match(
    next.sent,
    [1, 2, 3, 4].map((n) => ({ params: { n } }))
  )
  send(5)
  t.equal(next.sent.length, 5, 'then at once')
})

t.test('what a session has other processes told counts for its person, as its requests do', async (t) => {
  const memory = createMemoryAccount(64_000_000)
  const setup = await wire(t, { memory })
  const live = createLiveSessions(wallClock, 'one')
  t.teardown(() => live.close())
  createSessionBus(setup.one, live, wallClock, { listening() {}, notified() {} })
  const person = memory.share('acme', 'ada')
  const used = live.use(session('a'), person)
  await setup.two.tell('one', 'stream', { key: 'a', said: { attached: true, isNew: true } })
  await until('the client listens at the other process', () => used.isListening())
  const { promise, resolve } = Promise.withResolvers<void>()
  setup.hold = () => promise
  // A caller has a quarter; the message counts until it is heard, and while it is on its way.
  const hasRest = (): boolean => person.has(16_000_000 - 1_500_000)
  t.equal(hasRest(), true, 'the control')
  used.send({ method: 'notifications/message', params: { text: 'x'.repeat(900_000) } })
  t.equal(hasRest(), false)
  resolve()
  await until('it has left', hasRest)
})

t.test('the end of a stream that comes late does not end the newer one of the same process', async (t) => {
  const setup = await wire(t)
  const sides = [setup.one, setup.two].map((bus) => {
    const live = createLiveSessions(wallClock, bus.node)
    t.teardown(() => live.close())
    const given = session('a')
    const used = live.use({ ...given, record: { ...given.record, home: 'one' } })
    return { used, bus: createSessionBus({ ...bus, shared: true }, live, wallClock, { listening() {}, notified() {} }) }
  })
  const [home, there] = sides
  if (home === undefined || there === undefined) return t.fail()
  const { promise: late, resolve: release } = Promise.withResolvers<void>()
  const [first, newest] = [stream(), stream()]
  there.used.setStream(first)
  await there.bus.announce(there.used, true)
  await until('the home knows', () => home.used.isListening())
  // What the home says is held back; what it hears is not.
  setup.hold = () => (setup.published.at(-1)?.[0] === nodeChannel('two') ? late : undefined)
  home.used.setStream(stream())
  there.used.setStream(newest)
  await there.bus.announce(there.used, true)
  await until('the newest is heard of', () => home.used.isListening() && home.used.stream?.leaveRestTo !== undefined)
  setup.hold = () => undefined
  release()
  home.used.send({ method: 'notifications/message' })
  await until('it is told', () => newest.sent.length === 1)
  t.same([first.ends(), newest.ends()], [1, 0])
  home.used.setStream(stream())
  await until('the control: its own end', () => newest.ends() === 1)
  const of = stream()
  there.used.setStream(of)
  await setup.one.tell('two', 'deliver', { key: 'a', said: { finish: true } })
  await until('an end without a name, of an earlier version', () => of.ends() === 1)
})
