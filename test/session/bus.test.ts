// One process asks another over the messages of a store that may lose them.

import { randomBytes } from 'node:crypto'
import pino from 'pino'
import t from 'tap'
import { GatewayError, RpcError } from '../../src/protocol/errors.ts'
import { createBus } from '../../src/session/bus.ts'
import type { Bus, BusCall, BusOptions } from '../../src/session/bus.ts'
import type { Store } from '../../src/store/port.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { until } from '../kit/until.ts'

interface Wire {
  readonly one: Bus
  readonly two: Bus
  readonly store: Store
  /** Channel and text of everything that was published. */
  readonly published: Array<[string, string]>
  /** Messages for which this is true are lost. */
  lose: (channel: string) => boolean
  live: boolean
  today: number
}

const log = pino({ level: 'silent' })

async function wire (t: { teardown (run: () => unknown): void }, more: Partial<BusOptions> = {}): Promise<Wire> {
  const store = await createSqliteStore({ path: ':memory:', clock: { now: Date.now }, log })
  const timer = (ms: number, run: () => void) => setTimeout(run, ms)
  const sealer = await createSealer({ store, randomBytes, timer, log })
  const made = { store, published: [] as Array<[string, string]>, lose: () => false, live: true, today: 1_000_000 } as Omit<Wire, 'one' | 'two'> & { one?: Bus, two?: Bus }
  const wrapped: Store = {
    ...store,
    get live () { return made.live },
    async publish (channel, message) {
      made.published.push([channel, message])
      if (!made.lose(channel)) await store.publish(channel, message)
    }
  }
  const bus = (node: string): Promise<Bus> => createBus({ store: wrapped, sealer, node, timer, wall: { now: () => made.today }, newId: () => randomBytes(8).toString('hex'), log, ackMs: 100, silenceMs: 300, ...more })
  made.one = await bus('one')
  made.two = await bus('two')
  // The timers of a bus keep no process alive.
  const awake = setInterval(() => {}, 1_000)
  t.teardown(async () => {
    clearInterval(awake)
    await made.one?.close()
    await made.two?.close()
    sealer.close()
    await store.close()
  })
  return made as Wire
}

const call = (more: Partial<BusCall> = {}): BusCall => ({ notify () {}, signal: new AbortController().signal, ...more })
const never = (): Promise<unknown> => new Promise(() => {})

t.test('a question is answered, after what is said ahead of it', async (t) => {
  const { one, two, published } = await wire(t)
  two.serve(async (question, { notify }) => {
    notify({ n: 1 })
    notify({ n: 2 })
    return { question, text: 'ü\u{1f600}' }
  })
  const said: unknown[] = []
  t.same(await one.ask('two', { a: [1, null] }, call({ notify: (each) => said.push(each) })), { question: { a: [1, null] }, text: 'ü\u{1f600}' })
  t.same(said, [{ n: 1 }, { n: 2 }])
  t.notOk(published.some(([, text]) => /question|[{"]/.test(text)), 'nothing can be read on the way')
})

t.test('errors come as they were thrown, and those that are not ours say nothing', async (t) => {
  const { one, two } = await wire(t)
  const errors = [new GatewayError('invalid_state', 'used', { data: { a: 1 } }), new RpcError({ code: -5, message: 'no', data: [1] }), new Error('secret')]
  two.serve(() => Promise.reject(errors.shift() as Error))
  await t.rejects(one.ask('two', {}, call()), { code: 'invalid_state', message: 'used', data: { a: 1 } })
  await t.rejects(one.ask('two', {}, call()), { message: 'no' })
  const error = await one.ask('two', {}, call()).catch((error: unknown) => error) as GatewayError
  t.equal(error.code, 'internal')
  t.notMatch(error.message, /secret/)
})

t.test('a process that is not there is gone, and one that falls silent has stopped', async (t) => {
  const room = await wire(t)
  await t.rejects(room.one.ask('three', {}, call()), { code: 'invalid_state', message: /gone/, data: { outcome: 'unknown' } })
  let aborted: AbortSignal | undefined
  room.two.serve((_question, { signal }) => {
    aborted = signal
    room.lose = () => true
    return never()
  })
  await t.rejects(room.one.ask('two', {}, call()), { code: 'upstream_lost', data: { outcome: 'unknown' } })
  await until('the other side notices too', () => aborted?.aborted)
})

t.test('work that takes long is waited for, while both say that they are there', async (t) => {
  const { one, two } = await wire(t)
  two.serve(() => new Promise((resolve) => { setTimeout(() => resolve('late'), 800) }))
  t.equal(await one.ask('two', {}, call()), 'late')
})

t.test('whoever gives up ends the work', async (t) => {
  const { one, two } = await wire(t)
  const begun = Promise.withResolvers<AbortSignal>()
  two.serve((_question, { signal }) => {
    begun.resolve(signal)
    return never()
  })
  const stop = new AbortController()
  const asked = one.ask('two', {}, call({ signal: stop.signal }))
  const signal = await begun.promise
  stop.abort()
  await t.rejects(asked, { code: 'cancelled' })
  await until('the abort', () => signal.aborted)
  await t.rejects(one.ask('two', {}, call({ signal: AbortSignal.abort() })), { code: 'cancelled' })
})

t.test('a question that comes when nobody waits any more is not worked on', async (t) => {
  const room = await wire(t)
  let worked = 0
  room.two.serve(async () => ++worked)
  room.lose = (channel) => channel === 'node:two'
  await t.rejects(room.one.ask('two', {}, call()), { code: 'invalid_state' })
  room.lose = () => false
  const [[channel, question] = ['', '']] = room.published
  await room.store.publish(channel, question)
  t.equal(await room.one.ask('two', {}, call()), 1, 'only what is still wanted is')
  await room.store.publish(channel, question)
  room.today += 61_000
  await room.store.publish(channel, question)
  t.equal(await room.one.ask('two', {}, call()), 2)
})

t.test('what others write into the channel does nothing', async (t) => {
  const room = await wire(t)
  let worked = 0
  room.two.serve(async () => ++worked)
  for (const text of ['', '{}', 'x'.repeat(100), JSON.stringify({ word: 'question', id: 'x', from: 'one', at: room.today, body: {} })]) await room.store.publish('node:two', text)
  await room.one.ask('two', {}, call())
  for (const [channel, text] of room.published) if (channel === 'node:one') await room.store.publish('node:two', text)
  t.equal(await room.one.ask('two', {}, call()), 2)
})

t.test('limits: questions at a time, size, a store that does not reach us', async (t) => {
  const room = await wire(t, { max: 1 })
  const stop = new AbortController()
  room.two.serve((question) => question === 'big' ? Promise.resolve('x'.repeat(9 * 1024 * 1024)) : never())
  const first = room.one.ask('two', {}, call({ signal: stop.signal })).catch(() => {})
  await t.rejects(room.one.ask('two', {}, call()), { code: 'too_many' })
  stop.abort()
  await first
  const other = await wire(t)
  other.two.serve(async () => 'x'.repeat(9 * 1024 * 1024))
  await t.rejects(other.one.ask('two', {}, call()), { code: 'upstream_protocol' })
  other.live = false
  await t.rejects(other.one.ask('two', {}, call()), { code: 'unavailable' })
})

t.test('a process that stops says so to whoever waits', async (t) => {
  const { one, two } = await wire(t)
  const begun = Promise.withResolvers<undefined>()
  two.serve(() => {
    begun.resolve(undefined)
    return never()
  })
  const asked = one.ask('two', {}, call())
  await begun.promise
  await Promise.all([t.rejects(asked, { code: 'upstream_lost' }), two.close()])
})
