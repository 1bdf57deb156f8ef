// What is for the stream of a session at another process: said again while nobody hears it, once to that process, in
// order, and given to the stream that takes its place.

import t, { type Test } from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import type { JsonObject } from '../../src/protocol/messages.ts'
import { createDeliveryGuard, openRemoteStream, type Delivery } from '../../src/session/elsewhere/remote-stream.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { handClock } from '../kit/connector.ts'
import { until } from '../kit/until.ts'

function setUp(t: Test) {
  const way = { isOpen: true, told: [] as Delivery[], tries: 0, heardAgain: 0, leftOut: 0 }
  const account = createMemoryAccount(1_000_000)
  const options = {
    at: 'there',
    id: 'one',
    deliver: async (said: Delivery) => {
      way.tries++
      if (way.isOpen) way.told.push(said)
      return way.isOpen
    },
    isClosing: () => false,
    memory: () => account.share('acme', 'ada'),
    onHeard: () => way.heardAgain++,
    clock: steadyClock
  }
  const stream = openRemoteStream(options, () => way.leftOut++)
  t.teardown(() => stream.leaveRestTo(() => {}))
  const numbers = (): unknown[] => way.told.map((said) => 'message' in said && said.message['n'])
  return { way, account, stream, numbers }
}

t.test('what nobody heard is said again, in order, when its process hears again', async (t) => {
  const { way, account, stream, numbers } = setUp(t)
  stream.send({ n: 1 })
  await until('the control', () => numbers().length === 1)
  way.isOpen = false
  for (const n of [2, 3]) stream.send({ n })
  await until('some attempts', () => way.tries > 4)
  t.equal(stream.isAttached(), false, 'others are asked meanwhile')
  t.ok(account.held > 0, 'what waits is counted')
  stream.send({ n: 4 })
  way.isOpen = true
  await until('all are told', () => numbers().length === 4)
  t.same(numbers(), [1, 2, 3, 4])
  await until('it is known that it hears', () => way.heardAgain === 1 && stream.isAttached())
  t.equal(account.held, 0)
})

t.test('where there is room for one message at a time all are told, and the process counts as there', async (t) => {
  const account = createMemoryAccount(1_000_000)
  const told: unknown[] = []
  let leaving = 0
  const options = {
    at: 'there',
    id: 'one',
    async deliver(said: Delivery) {
      const hasRoom = leaving++ === 0
      await new Promise((resolve) => setImmediate(resolve))
      leaving--
      if (hasRoom && 'message' in said) told.push(said.message['n'])
      return hasRoom
    },
    isClosing: () => false,
    memory: () => account.share('acme', 'ada'),
    onHeard() {},
    // Nobody waits for a time to pass.
    clock: handClock()
  }
  const stream = openRemoteStream(options, () => t.fail('none is left out'))
  const numbers = Array.from({ length: 300 }, (_, n) => n)
  for (const n of numbers) stream.send({ n })
  await until('all are told', () => told.length === 300)
  t.same(told, numbers)
  t.equal(stream.isAttached(), true)
})

t.test('what there is no room for is told', async (t) => {
  const { way, stream } = setUp(t)
  way.isOpen = false
  for (let n = 0; n < 1_000; n++) stream.send({ n })
  t.equal(way.leftOut, 0, 'the control')
  for (let n = 0; n < 2; n++) stream.send({ n })
  t.equal(way.leftOut, 2)
})

t.test('what was never heard goes to the stream that takes its place', async (t) => {
  const { way, account, stream, numbers } = setUp(t)
  stream.send({ n: 1 })
  await until('the control', () => numbers().length === 1)
  way.isOpen = false
  for (const n of [2, 3]) stream.send({ n })
  await until('an attempt', () => way.tries > 2)
  const taken: JsonObject[] = []
  void stream.leaveRestTo((message) => taken.push(message))
  await until('both', () => taken.length === 2)
  t.same(taken, [{ n: 2 }, { n: 3 }])
  way.isOpen = true
  t.same(numbers(), [1])
  t.equal(account.held, 0)
})

t.test('what comes twice is dropped where it arrives, per session and stream', (t) => {
  const isNew = createDeliveryGuard(new Map<string, string>())
  const said = (seq: number, of = 'one'): Delivery => ({ message: {}, seq, of })
  t.same(
    [said(1), said(2), said(2), said(1), said(3)].map((each) => isNew('a', each)),
    [true, true, false, false, true]
  )
  t.equal(isNew('b', said(1)), true, 'of another session')
  t.equal(isNew('a', said(1, 'two')), true, 'of the next stream')
  t.equal(isNew('a', { message: {} }), true, 'of an older version')
  t.end()
})
