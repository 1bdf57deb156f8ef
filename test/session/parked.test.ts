// The books of parked calls: who may come back, for which round, and until when.

import t from 'tap'
import { createParks } from '../../src/session/parked.ts'
import type { Parks, ParksOptions } from '../../src/session/parked.ts'

interface Room {
  readonly parks: Parks<string>
  /** What was lost, and why. */
  readonly gone: string[]
  /** Timers that are set, by when they end. */
  readonly timers: Map<() => void, number>
  later (ms: number): void
}

function room (limits: Partial<ParksOptions<string>> = {}): Room {
  let now = 1_000_000
  let ids = 0
  const gone: string[] = []
  const timers = new Map<() => void, number>()
  const parks = createParks<string>({
    wall: { now: () => now },
    timer (ms, run) {
      timers.set(run, now + ms)
      return { close: () => timers.delete(run), unref () {} }
    },
    newId: () => `park-${++ids}`,
    gone: (parked, loss) => { gone.push(`${parked} ${loss}`) },
    lifetimeMs: 1_000,
    ...limits
  })
  return {
    parks,
    gone,
    timers,
    later (ms) {
      now += ms
      for (const [run, at] of [...timers]) if (at <= now && timers.delete(run)) run()
    }
  }
}

const refused = { code: 'invalid_state' }
const lost = { ...refused, data: { outcome: 'unknown' } }

t.test('a round is good once, for its owner, and the one before it never again', async (t) => {
  const { parks } = room()
  const place = parks.enter('ada', 'acme', 'a call')
  t.throws(() => parks.find('ada', { park: place.id, round: 0 }), refused, 'no round has begun')
  const one = place.open()
  t.equal(one.until, 1_001_000)
  t.throws(() => parks.find('bob', one.ticket), refused)
  t.throws(() => parks.find('ada', { ...one.ticket, park: 'park-2' }), refused)
  t.throws(() => parks.find('ada', { ...one.ticket, round: 2 }), refused)
  t.equal(parks.find('ada', one.ticket).parked, 'a call')
  t.equal(parks.find('ada', one.ticket), place, 'looking takes nothing')
  place.close()
  t.throws(() => parks.find('ada', one.ticket), refused)
  const two = place.open()
  t.throws(() => parks.find('ada', one.ticket), refused)
  t.equal(parks.find('ada', two.ticket), place)
  place.leave()
  place.leave()
  t.throws(() => parks.find('ada', two.ticket), refused)
  t.equal(parks.size, 0)
})

t.test('a round that nobody takes ends; one that was taken does not, however long it runs', async (t) => {
  const { parks, gone, later, timers } = room()
  const slow = parks.enter('ada', 'acme', 'slow')
  const quick = parks.enter('ada', 'acme', 'quick')
  const { ticket } = slow.open()
  quick.open()
  later(999)
  quick.close()
  t.same(gone, [])
  later(1)
  t.same(gone, ['slow late'])
  t.throws(() => parks.find('ada', ticket), refused)
  later(10_000)
  t.same(gone, ['slow late'])
  quick.open()
  later(999)
  t.same(gone, ['slow late'], 'each round has its own time')
  later(1)
  t.same(gone, ['slow late', 'quick late'])
  t.equal(timers.size, 0)
  t.equal(parks.size, 0)
})

t.test('an owner has so many places, and all owners together have so many', async (t) => {
  const { parks, gone } = room({ perOwner: 2, perTenant: 3, max: 3 })
  const first = parks.enter('ada', 'acme', '1')
  parks.enter('ada', 'acme', '2')
  t.throws(() => parks.enter('ada', 'acme', '3'), { code: 'too_many', message: /2 calls/ }, 'calls that run make no room')
  first.leave()
  t.ok(parks.enter('ada', 'acme', '3'))
  t.ok(parks.enter('bob', 'acme', '1'))
  t.throws(() => parks.enter('carol', 'acme', '1'), { code: 'too_many' })
  t.same(gone, [])
})

t.test('who has too many loses the place whose round has been open longest, and is told so', async (t) => {
  const { parks, gone, timers } = room({ perOwner: 3 })
  const bobs = parks.enter('bob', 'acme', 'of bob').open()
  const one = parks.enter('ada', 'acme', '1')
  const two = parks.enter('ada', 'acme', '2')
  const tickets = [one.open(), two.open()]
  parks.enter('ada', 'acme', '3')
  one.close()
  const later = one.open()
  parks.enter('ada', 'acme', '4')
  t.same(gone, ['2 newer'], 'the first one has been taken meanwhile, and the third was never open')
  t.throws(() => parks.find('ada', { park: two.id, round: 1 }), { ...lost, message: /newer ones took its place/ })
  t.throws(() => parks.find('bob', { park: two.id, round: 1 }), { ...lost, message: /is over/ }, 'nobody else learns of it')
  t.throws(() => parks.find('ada', { park: one.id, round: tickets[0]?.ticket.round ?? 0 }), { ...refused, message: /used already/ })
  t.equal(parks.find('ada', later.ticket), one)
  parks.enter('ada', 'acme', '5')
  t.same(gone, ['2 newer', '1 newer'])
  t.throws(() => parks.enter('ada', 'acme', '6'), { code: 'too_many' }, 'none of them is open')
  t.ok(parks.find('bob', bobs.ticket))
  t.same([parks.size, timers.size], [4, 5], 'one for each place, and one for each open round')
})

t.test('a tenant has a share: beyond that, and where all places are taken, the one of its callers who has most makes room', async (t) => {
  const { parks, gone } = room({ perOwner: 3, perTenant: 4, max: 6 })
  const other = parks.enter('zoe', 'globex', 'z1').open()
  const bobs = parks.enter('bob', 'acme', 'b1').open()
  for (const n of [1, 2]) parks.enter('ada', 'acme', `a${n}`).open()
  parks.enter('ada', 'acme', 'a3')
  parks.enter('carl', 'acme', 'c1').open()
  t.same(gone, ['a1 newer'], 'ada had three')
  parks.enter('carl', 'acme', 'c2').open()
  t.same(gone, ['a1 newer', 'a2 newer'])
  parks.enter('carl', 'acme', 'c3').open()
  t.same(gone, ['a1 newer', 'a2 newer', 'c1 newer'], 'then it was he who had most')
  t.ok(parks.find('bob', bobs.ticket))
  parks.enter('zoe', 'globex', 'z2')
  t.equal(parks.size, 6)
  t.throws(() => parks.enter('eve', 'initech', 'e1'), { code: 'too_many' }, 'nobody makes room for another tenant')
  parks.enter('yan', 'globex', 'y1')
  t.same(gone.slice(3), ['z1 newer'])
  t.throws(() => parks.find('zoe', other.ticket), lost)
  t.throws(() => parks.enter('yan', 'globex', 'y2'), { code: 'too_many' }, 'calls that run make no room')
  t.ok(parks.find('bob', bobs.ticket))
})

t.test('however often it is answered, a call comes to its end', async (t) => {
  const { parks, gone, later, timers } = room({ longestMs: 3_000 })
  const waits = parks.enter('ada', 'acme', 'waits')
  const runs = parks.enter('ada', 'acme', 'runs')
  let { ticket } = waits.open()
  for (let n = 0; n < 3; n++) {
    later(900)
    waits.close();
    ({ ticket } = waits.open())
  }
  runs.open()
  runs.close()
  t.same(gone, [])
  later(300)
  t.same(gone, ['waits endless', 'runs endless'])
  t.throws(() => parks.find('ada', ticket), { ...lost, message: /for an hour/ })
  t.same([parks.size, timers.size], [0, 0])
})

t.test('what can be come back to no more is lost while it waits, and whoever comes back is told so', async (t) => {
  const { parks, gone } = room()
  const [one, two, runs] = ['one', 'two', 'gone, but runs'].map((parked) => parks.enter('ada', 'acme', parked))
  const [first, second] = [one?.open(), two?.open()]
  if (first === undefined || second === undefined || runs === undefined) throw new Error('there are three')
  parks.lose('replaced', (parked) => parked !== 'two')
  t.same(gone, ['one replaced'])
  t.throws(() => parks.find('ada', first.ticket), { ...lost, message: /taken away or replaced/ })
  t.equal(parks.find('ada', second.ticket), two)
  t.equal(parks.find('ada', runs.open().ticket), runs)
})

t.test('at the end everybody is sent away', async (t) => {
  const { parks, gone, timers } = room()
  parks.enter('ada', 'acme', '1').open()
  parks.enter('bob', 'acme', '2')
  parks.end()
  t.same(gone, ['1 late', '2 late'])
  t.equal(timers.size + parks.size, 0)
})
