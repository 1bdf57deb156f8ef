// Resuming from the store: it stops when the session ends or the connection is gone, and few run at once, since each
// holds a stream in memory.

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { createStreams, type Streams } from '../../src/session/streams.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { until } from '../kit/until.ts'
import { quiet } from '../store/kit.ts'
import { clock, reader } from './reader.ts'

const primed = { primes: true }
const dataOf = ({ events }: ReturnType<typeof reader>): string[] => events.map(({ data }) => data)

async function house(t: Test): Promise<Streams> {
  const time = clock()
  const store = await createSqliteStore({ path: ':memory:', clock: time, log: quiet })
  const sealer = await createSealer({ store, randomBytes, timer: (ms, run) => setTimeout(run, ms), log: quiet })
  const streams = createStreams({
    store,
    sealer,
    clock: time,
    randomBytes,
    log: quiet,
    holders: { node: 'one', isHeld: async () => true }
  })
  t.teardown(async () => {
    sealer.close()
    streams.close()
    await store.close()
  })
  return streams
}

/** The id to come back with for all five messages of a call that has ended. */
function five(streams: Streams, session = 'a'): string {
  const stream = streams.open(session, 'call', primed)
  const sink = reader()
  stream.attach(sink)
  stream.prime()
  for (const n of [1, 2, 3, 4, 5]) stream.send({ n })
  stream.finish()
  return sink.primes[0] ?? ''
}

t.test('a slow reader gets no more once its session has ended', async (t) => {
  const streams = await house(t)
  const [slow, other] = [reader(2), reader(2)]
  const resumed = streams.resume('a', five(streams), slow, primed)
  const untouched = streams.resume('b', five(streams, 'b'), other, primed)
  await until('both have what they take', () => slow.events.length === 2 && other.events.length === 2)
  streams.drop('a')
  t.same(await resumed, { kind: 'stopped' }, 'though it does not read')
  slow.take(Infinity)
  other.take(Infinity)
  t.same(await untouched, { kind: 'replayed' })
  t.same([dataOf(slow).length, slow.ended, dataOf(other).length, other.ended], [2, false, 5, true])
})

t.test('a slow reader gets no more once its connection is gone', async (t) => {
  const streams = await house(t)
  const gone = new AbortController()
  const slow = reader(1)
  const resumed = streams.resume('a', five(streams), slow, primed, gone.signal)
  await until('it has what it takes', () => slow.events.length === 1)
  gone.abort()
  t.same(await resumed, { kind: 'stopped' })
  t.equal(slow.events.length, 1)

  const elsewhere = streams.open('a', 'session', primed)
  const sink = reader()
  elsewhere.attach(sink)
  elsewhere.prime()
  elsewhere.send({ n: 1 })
  elsewhere.finish()
  const size = streams.size
  t.same(await streams.resume('a', sink.primes[0] ?? '', reader(), primed, gone.signal), { kind: 'stopped' })
  t.equal(streams.size, size, 'and nothing carries on for nobody')
})

t.test('a session that ends while the store is read is sent nothing', async (t) => {
  const streams = await house(t)
  const sink = reader()
  const resumed = streams.resume('a', five(streams), sink, primed)
  streams.drop('a')
  t.same(await resumed, { kind: 'stopped' })
  t.same([sink.events, sink.ended], [[], false])
})

t.test('a session resumes four streams at once from the store; others have their own four', async (t) => {
  const streams = await house(t)
  const ids = Array.from({ length: 5 }, () => five(streams))
  const slow = ids.slice(0, 4).map(() => reader(1))
  const running = slow.map((sink, at) => streams.resume('a', ids[at] ?? '', sink, primed))
  await until('four are under way', () => slow.every(({ events }) => events.length === 1))
  const late = reader()
  await t.rejects(streams.resume('a', ids[4] ?? '', late, primed), {
    code: 'too_many',
    headers: { 'Retry-After': '1' }
  })
  t.same(late.events, [])
  t.same(await streams.resume('b', five(streams, 'b'), reader(), primed), { kind: 'replayed' })
  slow[0]?.take(Infinity)
  t.same(await running[0], { kind: 'replayed' })
  t.same(await streams.resume('a', ids[4] ?? '', late, primed), { kind: 'replayed' }, 'as soon as there is room')
  t.equal(late.events.length, 5)
  for (const sink of slow) sink.take(Infinity)
  await Promise.all(running)
})
