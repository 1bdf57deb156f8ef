// The limit of sessions per caller: at its limit a caller costs the store little, however often it asks.

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { createSessionSlots } from '../../src/session/session-limit.ts'
import { createUnfinished } from '../../src/session/unfinished.ts'
import { GatewayError, tenantId } from '../../src/protocol/messages.ts'
import type { Store } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { quiet } from '../store/kit.ts'
import { ada as owner } from './kit.ts'
import { clock, type TestClock } from './reader.ts'

const ttlMs = 60_000
const ada = { owner, epoch: 0 }
/** The store is never away here. */
const none = createUnfinished(steadyClock, quiet)

/** @returns the seat in the limit of the caller; undefined where it has none left */
function seatsOf({ take, prolong, release }: ReturnType<typeof createSessionSlots>) {
  return {
    prolong,
    release,
    async take(holder: typeof ada, session: string, perPrincipal: number, ttl: number): Promise<number | undefined> {
      try {
        const counts = { perPrincipal, perTenant: undefined, idleMs: ttl }
        return (await take(holder, session, counts, ttl)).seat
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'too_many') return undefined
        throw error
      }
    }
  }
}
type SessionSlots = ReturnType<typeof seatsOf>

interface TestSlots {
  readonly store: Store
  readonly slots: SessionSlots
  readonly time: TestClock
  /** Another process on the same store. */
  readonly elsewhere: SessionSlots
  /** Commands to the store, and how many waits they made one after the other, since it was last asked. */
  cost(): { commands: number; trips: number }
}

async function slotsInStore(t: Test): Promise<TestSlots> {
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
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    under--
    return await command()
  }
  const counted: Store = {
    ...store,
    get: (key) => counting(() => store.get(key)),
    set: (...all) => counting(() => store.set(...all)),
    delete: (key, when) => counting(() => store.delete(key, when))
  }
  const make = (): SessionSlots => seatsOf(createSessionSlots(counted, time, randomBytes, none))
  return {
    store,
    slots: make(),
    elsewhere: make(),
    time,
    cost() {
      const cost = { commands, trips }
      commands = trips = 0
      return cost
    }
  }
}

t.test('the first sessions of a caller cost one trip each', async (t) => {
  const { slots, cost } = await slotsInStore(t)
  t.type(await slots.take(ada, 'first', 100, ttlMs), 'number')
  t.same(cost(), { commands: 1, trips: 1 })
})

t.test('a slot costs a few random numbers, however many a caller may have', async (t) => {
  const store = await createSqliteStore({ path: ':memory:', clock: clock(), log: quiet })
  t.teardown(() => store.close())
  let draws = 0
  const slots = seatsOf(
    createSessionSlots(
      store,
      clock(),
      (size) => {
        draws++
        return randomBytes(size)
      },
      none
    )
  )
  for (const max of [1, 100, 1_000_000]) {
    draws = 0
    t.type(await slots.take({ owner, epoch: max }, 'a session', max, ttlMs), 'number')
    t.ok(draws <= 5, `${draws} of at most ${max} slots`)
  }
})

t.test('at its limit a caller is refused after a few trips, and for a second after none', async (t) => {
  const { slots, time, cost } = await slotsInStore(t)
  const taken = new Set<number | undefined>()
  let most = 0
  for (let n = 0; n < 100; n++) {
    cost()
    taken.add(await slots.take(ada, `session ${n}`, 100, ttlMs))
    const { trips } = cost()
    most = Math.max(most, trips)
  }
  t.ok(most <= 6, `at most ${most} trips`)
  t.equal(taken.size, 100, 'every slot can be had, and only once')
  t.notOk(taken.has(undefined))
  t.equal(await slots.take(ada, 'one more', 100, ttlMs), undefined)
  t.same(cost(), { commands: 100, trips: 5 })
  t.ok(
    (await Promise.all(Array.from({ length: 1_000 }, () => slots.take(ada, 'one more', 100, ttlMs)))).every(
      (slot) => slot === undefined
    )
  )
  t.same(cost(), { commands: 0, trips: 0 })
  t.type(
    await slots.take({ ...ada, owner: { ...owner, subject: 'bob' } }, 'bob', 100, ttlMs),
    'number',
    'others are not refused'
  )
  time.pass(1_000)
  cost()
  t.equal(await slots.take(ada, 'one more', 100, ttlMs), undefined)
  t.equal(cost().commands, 100, 'then it is looked at again')
})

t.test('a slot released here can be taken at once, one released elsewhere after a second', async (t) => {
  const { slots, elsewhere, time } = await slotsInStore(t)
  const slot = await slots.take(ada, 'first', 2, ttlMs)
  const second = await slots.take(ada, 'second', 2, ttlMs)
  t.equal(await slots.take(ada, 'third', 2, ttlMs), undefined)
  await slots.release({ ...ada, seat: slot ?? -1 }, 'first')
  t.equal(await slots.take(ada, 'third', 2, ttlMs), slot)
  t.equal(await slots.take(ada, 'fourth', 2, ttlMs), undefined)
  await elsewhere.release({ ...ada, seat: second ?? -1 }, 'second')
  t.equal(await slots.take(ada, 'fourth', 2, ttlMs), undefined)
  time.pass(1_000)
  t.equal(await slots.take(ada, 'fourth', 2, ttlMs), second)
})

t.test('a clock that is set back does not keep a caller out', async (t) => {
  const { slots, time } = await slotsInStore(t)
  const slot = await slots.take(ada, 'first', 1, ttlMs)
  t.equal(await slots.take(ada, 'second', 1, ttlMs), undefined)
  time.pass(-3_600_000)
  t.equal(await slots.take(ada, 'second', 1, ttlMs), undefined, 'it is taken')
  await slots.release({ ...ada, seat: slot ?? -1 }, 'first')
  t.equal(await slots.take(ada, 'second', 1, ttlMs), slot)
})

t.test('a session whose slot another one has by now neither frees nor takes it', async (t) => {
  const { slots, elsewhere } = await slotsInStore(t)
  const first = { ...ada, seat: (await slots.take(ada, 'first', 1, ttlMs)) ?? -1 }
  await elsewhere.release(first, 'first')
  t.equal(await slots.take(ada, 'second', 1, ttlMs), first.seat)
  await slots.prolong(first, 'first', ttlMs)
  await slots.release(first, 'first')
  t.equal(await slots.take(ada, 'third', 1, ttlMs), undefined, 'the second has it')
  await slots.release(first, 'second')
  t.equal(await slots.take(ada, 'third', 1, ttlMs), first.seat)
})

t.test('a session that is used at the moment of its end takes no slot from then on', async (t) => {
  const { slots, elsewhere, store } = await slotsInStore(t)
  const first = { ...ada, seat: (await slots.take(ada, 'first', 1, ttlMs)) ?? -1 }
  await elsewhere.release(first, 'first')
  await slots.prolong(first, 'first', ttlMs)
  t.equal(await slots.take(ada, 'second', 1, ttlMs), first.seat, 'its record is gone')
  await slots.release(first, 'second')
  await store.set('third', 'its record', { ttlMs })
  const third = { ...ada, seat: (await slots.take(ada, 'third', 1, ttlMs)) ?? -1 }
  await elsewhere.release(third, 'third')
  await slots.prolong(third, 'third', ttlMs)
  t.equal(await slots.take(ada, 'fourth', 1, ttlMs), undefined, 'the store has lost the slot of one that lives')
})

t.test('the sessions of a tenant are counted over its callers, at all processes, and given back', async (t) => {
  const store = await createSqliteStore({ path: ':memory:', clock: clock(), log: quiet })
  t.teardown(() => store.close())
  const [here, elsewhere] = [0, 1].map(() => createSessionSlots(store, clock(), randomBytes, none))
  if (here === undefined || elsewhere === undefined) return
  const counts = { perPrincipal: 5, perTenant: 2, idleMs: ttlMs }
  const full = /resources\.sessions/
  const person = (subject: string, tenant = owner.tenant) => ({ owner: { ...owner, subject, tenant }, epoch: 0 })
  const first = { ...person('one'), ...(await here.take(person('one'), 'first', counts, ttlMs)) }
  await elsewhere.take(person('two'), 'second', counts, ttlMs)
  await t.rejects(here.take(person('three'), 'third', counts, ttlMs), full)
  await here.take(person('three', tenantId('other')), 'other', counts, ttlMs)
  // A refused session has left nothing of the limit of its caller behind.
  await elsewhere.release(first, 'first')
  for (let n = 0; n < 5; n++) {
    const next = { ...person('three'), ...(await elsewhere.take(person('three'), `next ${n}`, counts, ttlMs)) }
    await t.rejects(elsewhere.take(person('four'), 'over', counts, ttlMs), full)
    await elsewhere.release(next, `next ${n}`)
  }
})
