// Who waits for whom on the way from one process to another: what counts is what is on the wire, and short messages of
// one tenant do not wait for long ones of another.

import t from 'tap'
import { everyNode } from '../../src/store/keys.ts'
import { createFlow } from '../../src/session/bus/wire/bus-flow.ts'
import { handClock } from '../kit/connector.ts'
import { until } from '../kit/until.ts'
import { ada, wire } from './bus-kit.ts'

const eve = { tenant: 'globex', caller: 'eve' }
const turns = async (): Promise<void> => {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve))
}
/** A short text in JSON, and much in memory. */
const hollow = Array.from({ length: 140_000 }, () => ({}))
const mebibyte = 1024 * 1024

t.test('many values of little text do not take the way of others: what counts is on the wire', async (t) => {
  // When that time is over, whatever the machine takes for what is on the wire, is up to the test.
  const late = handClock()
  const clock = {
    now: () => 1_000_000,
    timer: (ms: number, run: () => void) => (ms === 2_000 ? late.timer(ms, run) : setTimeout(run, ms))
  }
  const setup = await wire(t, { clock })
  const left = (): number => setup.published.filter(([, text]) => text.length > 400_000).length
  // Answers to beats are lost: nothing counts as read for two seconds.
  setup.lose = (channel) => channel === 'node:one'
  const heard: unknown[] = []
  setup.two.hear('deliver', ({ n }: { n: unknown }) => void heard.push(n))
  const long = Array.from({ length: 14 }, (_, n) =>
    setup.one.tell('two', 'deliver', { n, hollow }, { whose: ada, about: `${n}` })
  )
  await until('several are on their way', () => left() === 10)
  await turns()
  t.equal(left(), 10, 'and no more than 4 MiB')
  const short = Array.from({ length: 50 }, (_, n) =>
    setup.one.tell('two', 'deliver', { n: `short ${n}` }, { whose: eve, about: 'eve' })
  )
  t.same(new Set(await Promise.all(short)), new Set([true]))
  t.equal(left(), 10, 'the others wait')
  const whenTold = Promise.all(long)
  await until('all came', () => {
    late.advance(2_000)
    return heard.length === 64
  })
  t.same(new Set(await whenTold), new Set([true]))
})

t.test('short messages do not wait for one of 8 MiB', async (t) => {
  const flow = createFlow(handClock(), () => Promise.resolve(1))
  const left: string[] = []
  const pass = (name: string, chars: number, whose = ada): void =>
    void flow.pass(
      'two',
      whose,
      async () => 'x'.repeat(chars),
      async () => left.push(name)
    )
  pass('largest', 8 * mebibyte)
  await until('it has left', () => left.length === 1)
  pass('next', mebibyte)
  for (let n = 0; n < 3; n++) void flow.pass('two', eve, 'short', async () => left.push('short'))
  await turns()
  t.same(left, ['largest', 'short', 'short', 'short'])
  flow.alive('two', 1)
  await until('it is read', () => left.length === 5)
})

t.test('what is written decides: a long question whose text is fetched does not take the way', async (t) => {
  const flow = createFlow(handClock(), () => Promise.resolve(1))
  let left = 0
  for (let n = 0; n < 20; n++)
    void flow.pass(
      'two',
      ada,
      async () => 'where it is',
      async () => ++left
    )
  await until('all have left', () => left === 20)
  // The control.
  for (let n = 0; n < 20; n++)
    void flow.pass(
      'two',
      ada,
      async () => 'x'.repeat(mebibyte),
      async () => ++left
    )
  await until('some have left', () => left === 24)
  await turns()
  t.equal(left, 24)
})

t.test('of many processes at a time none writes more long texts than fit, however long they are', async (t) => {
  const flow = createFlow(handClock(), () => Promise.resolve(1))
  let [written, left] = [0, 0]
  for (let n = 0; n < 8; n++)
    void flow.pass(
      everyNode,
      ada,
      async () => (written++, 'x'.repeat(8 * mebibyte)),
      async () => ++left
    )
  await turns()
  t.equal(left, 1)
  t.ok(written <= 4, `${written} are written`)
})

t.test('processes that nobody has heard of are forgotten, and idle ones are bounded', async (t) => {
  const flow = createFlow(handClock(), () => Promise.resolve(1))
  const tell = (to: string, listening: number) => flow.pass(to, ada, 'short', async () => listening)
  for (let n = 0; n < 10_000; n++) await tell(`invented-${n}`, 0)
  t.equal(flow.size, 0)
  for (let n = 0; n < 10_000; n++) await tell(`once-${n}`, 1)
  t.ok(flow.size > 0 && flow.size <= 256, `${flow.size} are known`)
})
