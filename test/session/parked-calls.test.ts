// Parked calls: who may come back, for which round and until when, and which call is evicted where there are too many.

import t from 'tap'
import { createParkedCalls, type ParkedCallsOptions } from '../../src/session/parked-calls.ts'

function parkedCalls({ limits, ...options }: Partial<ParkedCallsOptions<string>> = {}) {
  let now = 1_000_000
  let ids = 0
  const lostCalls: string[] = []
  const timers = new Map<() => void, number>()
  const calls = createParkedCalls<string>({
    clock: {
      now: () => now,
      timer(ms, run) {
        timers.set(run, now + ms)
        return { close: () => timers.delete(run), unref() {}, refresh() {} }
      }
    },
    newId: () => `park-${++ids}`,
    onLost: (parked, loss) => {
      lostCalls.push(`${parked} ${loss}`)
    },
    lifetimeMs: 1_000,
    ...(limits !== undefined && { limits }),
    ...options
  })
  return {
    calls,
    /** What was lost, and why. */
    lostCalls,
    timers,
    pass(ms: number): void {
      now += ms
      for (const [run, at] of [...timers]) if (at <= now && timers.delete(run)) run()
    }
  }
}

const refused = { code: 'invalid_state' }
const lost = { ...refused, data: { outcome: 'unknown' } }

t.test('a round is good once, for its owner, and the one before it never again', async (t) => {
  const { calls } = parkedCalls()
  const slot = calls.add('ada', 'acme', 'a call')
  t.throws(() => calls.find('ada', { park: slot.id, round: 0 }), refused, 'no round has begun')
  const one = slot.openRound()
  t.equal(one.until, 1_001_000)
  t.throws(() => calls.find('bob', one.ref), refused)
  t.throws(() => calls.find('ada', { ...one.ref, park: 'park-2' }), refused)
  t.throws(() => calls.find('ada', { ...one.ref, round: 2 }), refused)
  t.equal(calls.find('ada', one.ref).parked, 'a call')
  t.equal(calls.find('ada', one.ref), slot, 'looking takes nothing')
  slot.closeRound()
  t.throws(() => calls.find('ada', one.ref), refused)
  const two = slot.openRound()
  t.throws(() => calls.find('ada', one.ref), refused)
  t.equal(calls.find('ada', two.ref), slot)
  slot.remove()
  slot.remove()
  t.throws(() => calls.find('ada', two.ref), refused)
  t.equal(calls.size, 0)
})

t.test('a round that no request takes ends; one that was taken does not, however long it runs', async (t) => {
  const { calls, lostCalls, pass, timers } = parkedCalls()
  const slow = calls.add('ada', 'acme', 'slow')
  const quick = calls.add('ada', 'acme', 'quick')
  const { ref } = slow.openRound()
  quick.openRound()
  pass(999)
  quick.closeRound()
  t.same(lostCalls, [])
  pass(1)
  t.same(lostCalls, ['slow late'])
  t.throws(() => calls.find('ada', ref), refused)
  pass(10_000)
  t.same(lostCalls, ['slow late'])
  quick.openRound()
  pass(999)
  t.same(lostCalls, ['slow late'], 'each round has its own time')
  pass(1)
  t.same(lostCalls, ['slow late', 'quick late'])
  t.equal(timers.size, 0)
  t.equal(calls.size, 0)
})

t.test('one owner may park a limited number of calls, and so may all together', async (t) => {
  const { calls, lostCalls } = parkedCalls({ limits: { perOwner: 2, perTenant: 3, max: 3 } })
  const first = calls.add('ada', 'acme', '1')
  calls.add('ada', 'acme', '2')
  t.throws(
    () => calls.add('ada', 'acme', '3'),
    { code: 'too_many', message: /2 calls/ },
    'running calls are not evicted'
  )
  first.remove()
  t.ok(calls.add('ada', 'acme', '3'))
  t.ok(calls.add('bob', 'acme', '1'))
  t.throws(() => calls.add('carol', 'acme', '1'), { code: 'too_many' })
  t.same(lostCalls, [])
})

t.test('an owner with too many loses the round that has been open longest, and is told so', async (t) => {
  const { calls, lostCalls, timers } = parkedCalls({ limits: { perOwner: 3, perTenant: 100, max: 100 } })
  const bobs = calls.add('bob', 'acme', 'of bob').openRound()
  const one = calls.add('ada', 'acme', '1')
  const two = calls.add('ada', 'acme', '2')
  const refs = [one.openRound(), two.openRound()]
  calls.add('ada', 'acme', '3')
  one.closeRound()
  const newest = one.openRound()
  calls.add('ada', 'acme', '4')
  t.same(lostCalls, ['2 newer'], 'the first one has been taken meanwhile, and the third was never open')
  t.throws(() => calls.find('ada', { park: two.id, round: 1 }), { ...lost, message: /newer ones took its place/ })
  t.throws(
    () => calls.find('bob', { park: two.id, round: 1 }),
    { ...lost, message: /is over/ },
    'other owners do not learn of it'
  )
  t.throws(() => calls.find('ada', { park: one.id, round: refs[0]?.ref.round ?? 0 }), {
    ...refused,
    message: /used already/
  })
  t.equal(calls.find('ada', newest.ref), one)
  calls.add('ada', 'acme', '5')
  t.same(lostCalls, ['2 newer', '1 newer'])
  t.throws(() => calls.add('ada', 'acme', '6'), { code: 'too_many' }, 'none of them is open')
  t.ok(calls.find('bob', bobs.ref))
  t.same([calls.size, timers.size], [4, 5], 'one for each slot, and one for each open round')
})

t.test(
  'beyond the limit of the tenant or the process, the owner of the same tenant that has most loses a call',
  async (t) => {
    const { calls, lostCalls } = parkedCalls({ limits: { perOwner: 3, perTenant: 4, max: 6 } })
    const other = calls.add('zoe', 'globex', 'z1').openRound()
    const bobs = calls.add('bob', 'acme', 'b1').openRound()
    for (const n of [1, 2]) calls.add('ada', 'acme', `a${n}`).openRound()
    calls.add('ada', 'acme', 'a3')
    calls.add('carl', 'acme', 'c1').openRound()
    t.same(lostCalls, ['a1 newer'], 'ada had three')
    calls.add('carl', 'acme', 'c2').openRound()
    t.same(lostCalls, ['a1 newer', 'a2 newer'])
    calls.add('carl', 'acme', 'c3').openRound()
    t.same(lostCalls, ['a1 newer', 'a2 newer', 'c1 newer'], 'then carl has most')
    t.ok(calls.find('bob', bobs.ref))
    calls.add('zoe', 'globex', 'z2')
    t.equal(calls.size, 6)
    t.throws(() => calls.add('eve', 'initech', 'e1'), { code: 'too_many' }, 'no tenant evicts calls of another one')
    calls.add('yan', 'globex', 'y1')
    t.same(lostCalls.slice(3), ['z1 newer'])
    t.throws(() => calls.find('zoe', other.ref), lost)
    t.throws(() => calls.add('yan', 'globex', 'y2'), { code: 'too_many' }, 'running calls are not evicted')
    t.ok(calls.find('bob', bobs.ref))
  }
)

t.test('a call ends after its longest time, however often it is answered', async (t) => {
  const { calls, lostCalls, pass, timers } = parkedCalls({ longestMs: 3_000 })
  const waits = calls.add('ada', 'acme', 'waits')
  const runs = calls.add('ada', 'acme', 'runs')
  let { ref } = waits.openRound()
  for (let n = 0; n < 3; n++) {
    pass(900)
    waits.closeRound()
    ;({ ref } = waits.openRound())
  }
  runs.openRound()
  runs.closeRound()
  t.same(lostCalls, [])
  pass(300)
  t.same(lostCalls, ['waits endless', 'runs endless'])
  t.throws(() => calls.find('ada', ref), { ...lost, message: /for an hour/ })
  t.same([calls.size, timers.size], [0, 0])
})

t.test('a call whose endpoint or upstream is gone is lost while it waits, and its client is told so', async (t) => {
  const { calls, lostCalls } = parkedCalls()
  const [one, two, runs] = ['one', 'two', 'gone, but runs'].map((parked) => calls.add('ada', 'acme', parked))
  const [first, second] = [one?.openRound(), two?.openRound()]
  if (first === undefined || second === undefined || runs === undefined) throw new Error('there are three')
  calls.lose('replaced', (parked) => parked !== 'two')
  t.same(lostCalls, ['one replaced'])
  t.throws(() => calls.find('ada', first.ref), { ...lost, message: /taken away or replaced/ })
  t.equal(calls.find('ada', second.ref), two)
  t.equal(calls.find('ada', runs.openRound().ref), runs)
})

t.test('close ends all parked calls', async (t) => {
  const { calls, lostCalls, timers } = parkedCalls()
  calls.add('ada', 'acme', '1').openRound()
  calls.add('bob', 'acme', '2')
  calls.close()
  t.same(lostCalls, ['1 late', '2 late'])
  t.equal(timers.size + calls.size, 0)
})
