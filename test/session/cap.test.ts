// The seats behind the cap of sessions: a caller that has reached its cap costs the store little, however often it asks.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Test } from 'tap'
import { createSeats } from '../../src/session/cap.ts'
import type { Seats } from '../../src/session/cap.ts'
import type { Store } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { quiet } from '../store/kit.ts'
import { ada } from './kit.ts'
import { clock } from './reader.ts'
import type { TestClock } from './reader.ts'

const ttlMs = 60_000

interface Hall {
  readonly seats: Seats
  readonly time: TestClock
  /** Another process on the same store. */
  readonly elsewhere: Seats
  /** Commands to the store, and how many waits they made one after the other, since it was last asked. */
  cost (): { commands: number, trips: number }
}

async function hall (t: Test): Promise<Hall> {
  const time = clock()
  const store = await createSqliteStore({ path: ':memory:', clock: time, log: quiet })
  t.teardown(() => store.close())
  let commands = 0
  let trips = 0
  let under = 0
  const counting = async <T>(command: () => Promise<T>): Promise<T> => {
    commands++
    if (under++ === 0) trips++
    // As over a network: no answer before the caller has had the chance to send more.
    await new Promise((resolve) => { setImmediate(resolve) })
    under--
    return await command()
  }
  const counted: Store = { ...store, get: (key) => counting(() => store.get(key)), set: (...all) => counting(() => store.set(...all)), delete: (key) => counting(() => store.delete(key)) }
  const make = (): Seats => createSeats({ store: counted, clock: time, randomBytes })
  return {
    seats: make(),
    elsewhere: make(),
    time,
    cost () {
      const cost = { commands, trips }
      commands = trips = 0
      return cost
    }
  }
}

t.test('the first sessions of a caller cost one trip each', async (t) => {
  const { seats, cost } = await hall(t)
  t.type(await seats.take(ada, 'first', 100, ttlMs), 'number')
  t.same(cost(), { commands: 1, trips: 1 })
})

t.test('at its cap, a caller is refused after a few trips, and for a second after none', async (t) => {
  const { seats, time, cost } = await hall(t)
  const taken = new Set<number | undefined>()
  let most = 0
  for (let n = 0; n < 100; n++) {
    cost()
    taken.add(await seats.take(ada, `session ${n}`, 100, ttlMs))
    const { trips } = cost()
    most = Math.max(most, trips)
  }
  t.ok(most <= 6, `at most ${most} trips`)
  t.equal(taken.size, 100, 'every seat can be had, and only once')
  t.notOk(taken.has(undefined))
  t.equal(await seats.take(ada, 'one more', 100, ttlMs), undefined)
  t.same(cost(), { commands: 100, trips: 5 })
  t.ok((await Promise.all(Array.from({ length: 1_000 }, () => seats.take(ada, 'one more', 100, ttlMs)))).every((seat) => seat === undefined))
  t.same(cost(), { commands: 0, trips: 0 })
  t.type(await seats.take({ ...ada, subject: 'bob' }, 'bob', 100, ttlMs), 'number', 'others are not refused')
  time.pass(1_000)
  cost()
  t.equal(await seats.take(ada, 'one more', 100, ttlMs), undefined)
  t.equal(cost().commands, 100, 'then it is looked at again')
})

t.test('who makes room can use it at once; where it was made elsewhere, after a second', async (t) => {
  const { seats, elsewhere, time } = await hall(t)
  const seat = await seats.take(ada, 'first', 2, ttlMs)
  const second = await seats.take(ada, 'second', 2, ttlMs)
  t.equal(await seats.take(ada, 'third', 2, ttlMs), undefined)
  await seats.leave(ada, seat ?? -1, 'first')
  t.equal(await seats.take(ada, 'third', 2, ttlMs), seat)
  t.equal(await seats.take(ada, 'fourth', 2, ttlMs), undefined)
  await elsewhere.leave(ada, second ?? -1, 'second')
  t.equal(await seats.take(ada, 'fourth', 2, ttlMs), undefined)
  time.pass(1_000)
  t.equal(await seats.take(ada, 'fourth', 2, ttlMs), second)
})

t.test('a clock that is set back does not keep a caller out', async (t) => {
  const { seats, time } = await hall(t)
  const seat = await seats.take(ada, 'first', 1, ttlMs)
  t.equal(await seats.take(ada, 'second', 1, ttlMs), undefined)
  time.pass(-3_600_000)
  t.equal(await seats.take(ada, 'second', 1, ttlMs), undefined, 'it is taken')
  await seats.leave(ada, seat ?? -1, 'first')
  t.equal(await seats.take(ada, 'second', 1, ttlMs), seat)
})
