// One stream to a client over many connections: each event once and in order, whatever is cut, however slowly somebody
// reads.

import fc from 'fast-check'
import t from 'tap'
import { stringOf } from '../../src/protocol/json-text.ts'
import { createMemoryAccount, holdMemory } from '../../src/limits/memory.ts'
import { createStream, type Stream } from '../../src/session/stream.ts'
import { clock, reader } from './reader.ts'
import { until } from '../kit/until.ts'
import { runs } from '../kit/runs.ts'

interface Made {
  readonly stream: Stream
  readonly kept: Array<{ readonly seq: number; readonly data: string | undefined; readonly keep: number }>
  finishes(): number
  pass(ms: number): void
}

function made(primes = true, share = createMemoryAccount().share('acme', 'ada')): Made {
  const kept: Array<{ seq: number; data: string | undefined; keep: number }> = []
  let finishes = 0
  const { now, pass } = clock()
  const stream = createStream({
    memory: holdMemory(share),
    now,
    primes,
    idOf: (seq) => `s.${seq}`,
    onEvent: (seq, data, keep) => {
      kept.push({ seq, data: data && stringOf(data), keep })
    },
    onFinish: () => {
      finishes++
    }
  })
  return { stream, kept, finishes: () => finishes, pass }
}

const seqOf = (id: string): number => Number(id.split('.')[1])
const numbers = ({ events }: { events: ReadonlyArray<{ data: string }> }): number[] =>
  events.map(({ data }) => Number(data))
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

t.test('messages go out at once, under ids in order, and the end after the last', async (t) => {
  const { stream, kept, finishes } = made()
  const sink = reader()
  stream.attach(sink)
  t.ok(stream.isAttached())
  stream.prime()
  for (const n of upTo(3)) stream.send(n)
  stream.finish()
  stream.finish()
  stream.send('too late')
  t.same(sink.primes, ['s.0'])
  t.same(
    sink.events.map(({ id }) => id),
    ['s.1', 's.2', 's.3']
  )
  t.same(numbers(sink), upTo(3))
  t.ok(sink.ended)
  t.equal(finishes(), 1)
  t.same(
    kept.map(({ data }) => data),
    [undefined, '0', '1', '2']
  )
})

t.test('a client before 2025-11-25 gets no event without data, and is never paused', async (t) => {
  const { stream } = made(false)
  const first = reader()
  const { pause } = stream.attach(first)
  stream.prime()
  stream.send(0)
  pause()
  t.same(first.primes, [])
  t.same(first.paused, [])
  t.notOk(first.ended)
  const second = reader()
  stream.resume(second, 0)
  stream.leave(3_000)
  t.same([second.primes, second.paused], [[], []])
  t.ok(second.ended)
})

t.test('whatever is sent, cut, resumed and paused in between: every message once and in order', async (t) => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('send' as const) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('cut' as const), lost: fc.nat({ max: 5 }) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('resume' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('pause' as const) }) }
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const { stream } = made()
      let sink = reader()
      let attachment = stream.attach(sink)
      stream.prime()
      let last = 0
      let sent = 0
      const had: number[] = []
      const read = (lost: number): void => {
        // What was on its way when the connection was cut never arrived.
        const arrived = sink.events.slice(0, sink.events.length - Math.min(lost, sink.events.length))
        had.push(...numbers({ events: arrived }))
        last = Math.max(last, ...arrived.map(({ id }) => seqOf(id)))
      }
      const resume = (): void => {
        sink = reader()
        attachment = stream.resume(sink, last)
      }
      for (const each of steps) {
        if (each.kind === 'send') stream.send(sent++)
        else if (each.kind === 'pause') {
          attachment.pause()
          read(0)
          resume()
        } else {
          // A connection that is resumed before the gateway has noticed that it broke, or after.
          if (each.kind === 'cut') attachment.detach()
          read(each.kind === 'cut' ? each.lost : 0)
          resume()
        }
      }
      stream.finish()
      read(0)
      return sink.ended && JSON.stringify(had) === JSON.stringify(upTo(sent))
    }),
    { numRuns: runs(2_000) }
  )
  t.pass()
})

t.test('the newest connection takes over, and the one before is ended', async (t) => {
  const { stream } = made()
  const [first, second] = [reader(), reader()]
  const one = stream.attach(first)
  stream.prime()
  stream.send(0)
  const two = stream.resume(second, 0)
  t.ok(first.ended)
  stream.send(1)
  t.same(numbers(first), [0])
  t.same(numbers(second), [0, 1])
  one.detach()
  one.pause()
  t.ok(stream.isAttached(), 'the old connection speaks for itself only')
  t.same(second.paused, [])
  two.detach()
  t.notOk(stream.isAttached())
})

t.test('a client that catches up is waited for, and newer events follow in order', async (t) => {
  const { stream } = made()
  stream.prime()
  for (const n of upTo(10)) stream.send(n)
  const slow = reader(3)
  stream.resume(slow, 0)
  t.same(numbers(slow), [0, 1, 2])
  stream.send(10)
  t.same(numbers(slow), [0, 1, 2], 'not past those it has not had')
  slow.take(4)
  await until('more', () => slow.events.length === 7)
  stream.finish()
  t.notOk(slow.ended, 'the end waits too')
  slow.take(100)
  await until('the end', () => slow.ended)
  t.same(numbers(slow), upTo(11))
})

t.test('a full connection is waited for through a burst, and closed when it stays behind', async (t) => {
  const text = 'x'.repeat(300 * 1024)
  const { stream, pass } = made()
  const healthy = reader(1)
  stream.attach(healthy)
  for (const n of upTo(8)) stream.send(`${n}${text}`)
  t.notOk(healthy.overflown, 'a burst of 2 MiB is not its fault')
  healthy.take(100)
  await until('it has all', () => healthy.events.length === 8)

  const deaf = reader(1)
  stream.attach(deaf)
  for (const n of upTo(3)) stream.send(`${n}${text}`)
  pass(1_001)
  stream.send('a little more')
  t.notOk(deaf.overflown, 'to read slowly is allowed')
  stream.send(text)
  stream.send(text)
  t.ok(deaf.overflown)
  t.notOk(stream.isAttached())
  t.equal(deaf.events.length, 1)
  const again = reader()
  stream.resume(again, seqOf(deaf.lastId))
  t.equal(again.events.length, 5, 'what it did not read it can still have')
})

t.test('a connection that would miss events is closed, however short the burst', async (t) => {
  const { stream } = made()
  const slow = reader(1)
  stream.attach(slow)
  for (const n of upTo(1_500)) stream.send(n)
  t.ok(slow.overflown)
  t.same(numbers(slow), [0])
})

t.test('events from before a client connected do not count as its delay', async (t) => {
  const { stream, pass } = made()
  const text = 'x'.repeat(1024 * 1024)
  for (const n of upTo(3)) stream.send(`${n}${text}`)
  const slow = reader(1)
  stream.resume(slow, -1)
  pass(60_000)
  stream.send('new')
  t.notOk(slow.overflown)
  slow.take(100)
  await until('it has all', () => slow.events.length === 4)
})

t.test('a pause waits until the connection has been given everything', async (t) => {
  const { stream } = made()
  const slow = reader(1)
  const { pause } = stream.attach(slow)
  for (const n of upTo(3)) stream.send(n)
  pause()
  t.same(slow.paused, [])
  slow.take(100)
  await until('it is paused', () => slow.paused.length === 1)
  t.same(numbers(slow), upTo(3))
  t.same(slow.paused, [{ id: 's.2', retryMs: undefined }])
})

t.test('a connection that is taken over while it catches up gets no more', async (t) => {
  const { stream } = made()
  for (const n of upTo(10)) stream.send(n)
  const slow = reader(2)
  stream.resume(slow, -1)
  const fast = reader()
  stream.resume(fast, -1)
  slow.take(100)
  await slow.drained()
  await new Promise((resolve) => {
    setImmediate(resolve)
  })
  t.same(numbers(slow), [0, 1])
  t.same(numbers(fast), upTo(10))
})

t.test('a pause names the last event; coming back for it brings the rest', async (t) => {
  const { stream } = made()
  const first = reader()
  const { pause } = stream.attach(first)
  stream.prime()
  stream.send(0)
  pause()
  t.same(first.paused, [{ id: 's.1', retryMs: undefined }])
  t.notOk(stream.isAttached())
  stream.send(1)
  const second = reader()
  stream.resume(second, seqOf(first.lastId))
  t.same(second.primes, ['s.1'], 'told again where it is: a connection without an id cannot be resumed')
  t.same(numbers(second), [1])
})

t.test('a client told to come back finds a stream that has not ended', async (t) => {
  const { stream, finishes } = made()
  const sink = reader()
  stream.attach(sink)
  stream.prime()
  stream.leave(3_000)
  stream.finish()
  t.same(sink.paused, [{ id: 's.0', retryMs: 3_000 }])
  t.equal(finishes(), 0)
})

t.test('at most 1,000 events and 4 MiB are held, and always the last event', async (t) => {
  const many = made()
  for (const n of upTo(1_500)) many.stream.send(n)
  t.equal(many.kept.at(-1)?.keep, 1_000)
  const late = reader()
  many.stream.resume(late, 3)
  t.same(numbers(late), upTo(1_500).slice(500), 'what is still there, the result above all')

  const large = made()
  for (const n of upTo(10)) large.stream.send(`${n}${'x'.repeat(1024 * 1024)}`)
  t.equal(large.kept.at(-1)?.keep, 3)
  const second = reader()
  large.stream.resume(second, 0)
  t.same(
    second.events.map(({ data }) => data[1]),
    ['7', '8', '9']
  )

  large.stream.send('y'.repeat(5 * 1024 * 1024))
  t.equal(large.kept.at(-1)?.keep, 1, 'one message may be larger than all that is held otherwise')
  const third = reader()
  large.stream.resume(third, 0)
  t.equal(third.events.length, 1)
})

t.test('events leave memory for the requests with which their client comes back, an answer need not', async (t) => {
  const share = createMemoryAccount(4 * 1_000_000).share('acme', 'ada')
  t.ok(share.has(1_000_000), 'all that one caller may hold')
  const { stream } = made(true, share)
  const half = 'x'.repeat(250_000)
  stream.send(half)
  t.notOk(share.has(500_000), 'the control: it is held, at two bytes a character')
  const other = made(true, share)
  other.stream.send(half.slice(1_000))
  t.ok(share.has(499_000), 'the next would leave 2,000 bytes: it is not held')
  other.stream.answer(half.slice(1_000))
  t.notOk(share.has(499_000), 'an answer is')
})
