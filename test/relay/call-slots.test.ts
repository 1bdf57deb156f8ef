// Slots by themselves: what they remember of a definition, and for how long.

import t from 'tap'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'
import { createCallSlots, type AbandonedCalls, type CallSlot } from '../../src/relay/connections/call-slots.ts'
import { stillClock } from './kit.ts'
import { atRest } from './parking-kit.ts'

const one = { name: 'one', type: 'http', hash: 'of one' } as unknown as UpstreamDefinition

async function isThere(slot: Promise<CallSlot>): Promise<boolean> {
  return await Promise.race([slot.then(() => true), atRest().then(() => false)])
}

t.test('what connections turned out to be is remembered until a reload takes their definition away', async (t) => {
  const slots = createCallSlots(stillClock())
  const enter = (): Promise<CallSlot> => slots.enter(one, 'ada', 'scope')
  const first = await enter()
  const second = enter()
  t.notOk(await isThere(second), 'until it is known')
  first.opened(true)
  t.ok(await isThere(second))
  t.ok(await isThere(Promise.race(Array.from({ length: 20 }, enter))), 'then they run side by side')
  slots.retain(new Set(['of one']))
  t.ok((await Promise.all([enter(), enter()])).every(({ number }) => number === 0))
  slots.retain(new Set())
  const again = await enter()
  const next = enter()
  t.notOk(await isThere(next), 'found out anew')
  again.opened(true)
  t.ok(await isThere(next))
})

t.test('calls that are in their slots meanwhile stay there, and newer ones do not wait for them', async (t) => {
  const slots = createCallSlots(stillClock())
  const enter = (): Promise<CallSlot> => slots.enter(one, 'ada', 'scope')
  const parked = await enter()
  parked.opened(false)
  slots.retain(new Set())
  const later = await enter()
  t.equal(later.number, 1)
  const last = enter()
  t.notOk(await isThere(last))
  later.opened(false)
  t.equal((await last).number, 2)
  parked.leave()
  t.equal((await enter()).number, 0)
})

/** Eight slots at most, whose connections are none that tell their calls apart. */
function fleet() {
  const clock = stillClock()
  const slots = createCallSlots(clock)
  const enter = async (): Promise<CallSlot> => {
    const slot = await slots.enter(one, 'ada', 'scope')
    slot.opened(false)
    return slot
  }
  const closed: string[] = []
  const debtOf = (name: string, closes = (): boolean => true): AbandonedCalls & { pay(): void } => {
    const { promise: answered, resolve: pay } = Promise.withResolvers<void>()
    return {
      answered,
      pay,
      close() {
        if (closes()) closed.push(name)
        return closes()
      }
    }
  }
  return { clock, enter, debtOf, closed }
}

t.test('a slot whose server still owes an answer is free when that has come', async (t) => {
  const { clock, enter, debtOf, closed } = fleet()
  const debt = debtOf('first')
  const first = await enter()
  first.leave(debt)
  first.leave()
  const second = await enter()
  t.equal(second.number, 1, 'the next call has another one')
  second.leave()
  t.equal((await enter()).number, 1, 'which is free at once when its call was answered')
  debt.pay()
  await atRest()
  t.equal((await enter()).number, 0)
  clock.move(60_000)
  t.same(closed, [])
})

t.test(
  'it is free too when the server has had its time, as one that obeys says nothing; what it remembers stays',
  async (t) => {
    const { clock, enter, debtOf, closed } = fleet()
    const debt = debtOf('first')
    const first = await enter()
    first.leave(debt)
    clock.move(9_999)
    t.equal((await enter()).number, 1)
    clock.move(1)
    t.equal((await enter()).number, 0)
    debt.pay()
    await atRest()
    t.equal((await enter()).number, 2, 'what comes then counts no more')
    t.same(closed, [])
  }
)

t.test('one that is needed elsewhere is not taken from its server, and free in its time', async (t) => {
  const { clock, enter, debtOf, closed } = fleet()
  const [first] = await Promise.all(Array.from({ length: 8 }, enter))
  first?.leave(debtOf('first', () => false))
  const ninth = enter()
  clock.move(1_000)
  t.notOk(await isThere(ninth))
  clock.move(10_000)
  t.equal((await ninth).number, 0)
  t.same(closed, [])
})

t.test('slots of that kind count, and make room for newer calls at once', async (t) => {
  const { enter, debtOf, closed } = fleet()
  const all = await Promise.all(Array.from({ length: 8 }, enter))
  const [first, second, third] = all as [CallSlot, CallSlot, CallSlot]
  first.leave(debtOf('first'))
  const ninth = enter()
  t.equal((await ninth).number, 0)
  t.same(closed, ['first'])
  second.waits(() => second.leave(debtOf('second')))
  const tenth = enter()
  const eleventh = enter()
  t.equal((await tenth).number, 1, 'and so does a call that is given up for a newer one')
  t.notOk(await isThere(eleventh), 'it was promised to one')
  third.leave()
  t.equal((await eleventh).number, 2, 'and the next one waits for what runs')
  const fourth = all[3] as CallSlot
  fourth.waits(() => fourth.leave())
  t.equal((await enter()).number, 3, 'where its server has answered, with its connection')
  t.same(closed, ['first', 'second'])
})

t.test('where the slot of a call that was given up is needed elsewhere, the next one gives up too', async (t) => {
  const { enter, debtOf, closed } = fleet()
  const [first, second] = (await Promise.all(Array.from({ length: 8 }, enter))) as [CallSlot, CallSlot]
  first.waits(() => first.leave(debtOf('first', () => false)))
  second.waits(() => second.leave(debtOf('second')))
  t.equal((await enter()).number, 1)
  t.same(closed, ['second'])
})

t.test('calls wait for a slot in turn, sixty-four of them', async (t) => {
  const { enter } = fleet()
  const all = await Promise.all(Array.from({ length: 8 }, enter))
  const order: number[] = []
  const queued = Array.from({ length: 64 }, async (_, at) => {
    const slot = await enter()
    order.push(at)
    return slot
  })
  await atRest()
  await t.rejects(enter(), {
    code: 'too_many',
    message: /8 calls of this caller run at upstream one, and 64 wait for them/
  })
  for (const slot of all) slot.leave()
  for (const slot of queued) (await slot).leave()
  t.same(
    order,
    Array.from({ length: 64 }, (_, at) => at)
  )
  t.equal((await enter()).number, 0)
})

t.test(
  'where all that have a slot wait for their clients, the first gives up for whoever waits for a slot; not while one runs',
  async (t) => {
    const { enter } = fleet()
    const all = await Promise.all(Array.from({ length: 8 }, enter))
    const given: number[] = []
    const ninth = enter()
    for (const slot of all) {
      await atRest()
      t.same(given, [])
      slot.waits(() => {
        given.push(slot.number)
        slot.leave()
      })
    }
    await atRest()
    t.same(given, [0])
    t.equal((await ninth).number, 0)
  }
)
