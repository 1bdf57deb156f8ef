// What one process says at length to another: little of it is on its way at a time, and what waits counts for its
// caller.

import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { GatewayError } from '../../src/protocol/messages.ts'
import { createFlow } from '../../src/session/bus/wire/bus-flow.ts'
import type { ServedCall } from '../../src/session/bus/bus-server.ts'
import { handClock } from '../kit/connector.ts'
import { until } from '../kit/until.ts'
import { ada, call, wire } from './bus-kit.ts'

const turns = async (): Promise<void> => {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve))
}
const long = 'x'.repeat(900_000)
const isLong = ([, text]: readonly [string, string]): boolean => text.length > 900_000

t.test('of a call one long message is on its way at a time, and what waits counts for its caller', async (t) => {
  const memory = createMemoryAccount(64_000_000)
  const setup = await wire(t, {}, { memory })
  const taken = Promise.withResolvers<void>()
  let served: ServedCall | undefined
  setup.two.serve('request', async (_question, given) => {
    served = given
    for (let n = 0; n < 10; n++) void given.notify({ n, long })
    return 'done'
  })
  const heard: unknown[] = []
  setup.fail = () => (setup.published.some(isLong) ? taken.promise : undefined)
  const answer = setup.one.request('two', 'request', ada, {}, call({ notify: (said) => void heard.push(said) }))
  await until('the first leaves', () => setup.published.some(isLong))
  await until('the others wait', () => Number(served?.waitingBytes()) > 8_000_000)
  t.equal(setup.published.filter(isLong).length, 1, 'and have not left')
  t.ok(memory.ofTenant('acme').used > 8_000_000)
  setup.fail = () => undefined
  taken.resolve()
  // The store did not confirm the first one: it is said again.
  t.equal(await answer, 'done')
  t.equal(heard.length, 10)
  t.equal(memory.ofTenant('acme').used, 0, 'nothing is left')
})

t.test('what its caller has no memory for is left out, and the answer is not', async (t) => {
  const setup = await wire(t, {}, { memory: createMemoryAccount(8_000_000) })
  const taken: boolean[] = []
  setup.two.serve('request', async (_question, { notify }) => {
    for (let n = 0; n < 10; n++) taken.push(notify({ n, long }) !== undefined)
    return 'done'
  })
  const heard: unknown[] = []
  t.equal(await setup.one.request('two', 'request', ada, {}, call({ notify: (said) => void heard.push(said) })), 'done')
  // A caller has a quarter.
  t.equal(heard.length, 2)
  t.same(taken, [true, true, ...Array<boolean>(8).fill(false)], 'who says it knows')
})

t.test('no more leaves for a process than it has said that it has read, and tenants take turns', async (t) => {
  const clock = handClock()
  let asked = 0
  const flow = createFlow(clock, (_to, beat) => Promise.resolve((asked = beat)))
  const left: string[] = []
  const pass = (name: string, tenant = 'acme', chars = 1_000_000): void =>
    void flow.pass('two', { tenant, caller: name }, 'x'.repeat(chars), async () => left.push(name))
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) pass(name)
  pass('neighbour', 'globex')
  pass('short', 'acme', 100)
  await turns()
  t.same(left, ['a', 'b', 'c', 'd', 'e', 'short'])
  t.equal(asked, 1)
  flow.alive('three', 1)
  await turns()
  t.equal(left.length, 6, 'another one has read nothing of it')
  flow.alive('two', 1)
  await turns()
  t.same(left.slice(6, 8).toSorted(), ['f', 'neighbour'])
  clock.advance(2_000)
  await turns()
  t.same(left.slice(8), ['g', 'h'], 'who says nothing is waited for two seconds')
})

t.test(
  'the answer to a beat from before the long messages says nothing of them, also of an earlier version',
  async (t) => {
    for (const isEarlier of [false, true]) {
      const beats: number[] = []
      const flow = createFlow(handClock(), (_to, beat) => Promise.resolve(beats.push(beat)))
      const answer = (): void => flow.alive('two', isEarlier ? undefined : beats[answered++])
      let answered = 0
      let left = 0
      void flow.beat('two')
      void flow.beat('two')
      for (let n = 0; n < 8; n++) void flow.pass('two', ada, 'x'.repeat(1_000_000), async () => ++left)
      await turns()
      t.same([left, beats.length], [5, 3])
      void flow.beat('two')
      answer()
      answer()
      await turns()
      t.equal(left, 5, 'two has read nothing of it')
      answer()
      await turns()
      t.ok(left > 5, 'it has')
    }
  }
)

t.test('where answers of an earlier version were lost, later ones count', async (t) => {
  const clock = handClock()
  const flow = createFlow(clock, () => Promise.resolve(1))
  let left = 0
  void flow.beat('two')
  for (let n = 0; n < 12; n++) void flow.pass('two', ada, 'x'.repeat(1_000_000), async () => ++left)
  await turns()
  t.equal(left, 5)
  clock.advance(2_000)
  await turns()
  const before = left
  t.ok(before > 5)
  flow.alive('two', undefined)
  await turns()
  t.ok(left > before)
})

t.test('two processes count the answers to their beats', async (t) => {
  // What is not answered is waited for until the test ends.
  const timer = (ms: number, run: () => void) => setTimeout(run, ms === 2_000 ? 600_000 : ms)
  const setup = await wire(t, { clock: { now: Date.now, timer } }, { memory: createMemoryAccount(64_000_000) })
  setup.two.serve('request', async (_question, { notify }) => {
    for (let n = 0; n < 12; n++) void notify({ n, long })
    return 'done'
  })
  const heard: unknown[] = []
  t.equal(await setup.one.request('two', 'request', ada, {}, call({ notify: (said) => void heard.push(said) })), 'done')
  t.equal(heard.length, 12)
})

t.test('short messages do not wait for long ones of others', async (t) => {
  const setup = await wire(t)
  const never = Promise.withResolvers<void>()
  setup.two.serve('request', async (question) => (question === 'short' ? 'short' : long))
  setup.fail = () => (Number(setup.published.at(-1)?.[1].length) > 900_000 ? never.promise : undefined)
  const others = [1, 2, 3].map((n) => setup.one.request('two', 'request', ada, n).catch((error: unknown) => error))
  await until('they are on their way', () => setup.published.some(isLong))
  t.equal(await setup.one.request('two', 'request', { tenant: 'globex', caller: 'eve' }, 'short'), 'short')
  never.reject(new GatewayError('unavailable', 'the store is away'))
  setup.fail = () => undefined
  t.same(await Promise.all(others), [long, long, long])
})
