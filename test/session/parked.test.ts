// The books of parked calls: who may come back, for which round, and until when.

import t from 'tap'
import { createParks } from '../../src/session/parked.ts'
import type { Parks } from '../../src/session/parked.ts'

interface Room {
  readonly parks: Parks<string>
  readonly gone: string[]
  /** Timers that are set, by when they end. */
  readonly timers: Map<() => void, number>
  later (ms: number): void
}

function room (limits: { perOwner?: number, max?: number } = {}): Room {
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
    gone: (parked) => { gone.push(parked) },
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

t.test('a round is good once, for its owner, and the one before it never again', async (t) => {
  const { parks } = room()
  const place = parks.enter('ada', 'a call')
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
  const slow = parks.enter('ada', 'slow')
  const quick = parks.enter('ada', 'quick')
  const { ticket } = slow.open()
  quick.open()
  later(999)
  quick.close()
  t.same(gone, [])
  later(1)
  t.same(gone, ['slow'])
  t.throws(() => parks.find('ada', ticket), refused)
  later(10_000)
  t.same(gone, ['slow'])
  quick.open()
  later(999)
  t.same(gone, ['slow'], 'each round has its own time')
  later(1)
  t.same(gone, ['slow', 'quick'])
  t.equal(timers.size, 0)
  t.equal(parks.size, 0)
})

t.test('an owner has so many places, and all owners together have so many', async (t) => {
  const { parks, gone } = room({ perOwner: 2, max: 3 })
  const first = parks.enter('ada', '1')
  parks.enter('ada', '2')
  t.throws(() => parks.enter('ada', '3'), { code: 'too_many', message: /2 calls/ }, 'calls that run make no room')
  first.leave()
  t.ok(parks.enter('ada', '3'))
  t.ok(parks.enter('bob', '1'))
  t.throws(() => parks.enter('carol', '1'), { code: 'too_many' })
  t.same(gone, [])
})

t.test('who has too many loses the place whose round has been open longest, and is told so', async (t) => {
  const { parks, gone, timers } = room({ perOwner: 3 })
  const bobs = parks.enter('bob', 'of bob').open()
  const one = parks.enter('ada', '1')
  const two = parks.enter('ada', '2')
  const tickets = [one.open(), two.open()]
  parks.enter('ada', '3')
  one.close()
  const later = one.open()
  parks.enter('ada', '4')
  t.same(gone, ['2'], 'the first one has been taken meanwhile, and the third was never open')
  t.throws(() => parks.find('ada', { park: two.id, round: 1 }), { ...refused, message: /newer ones took its place/ })
  t.throws(() => parks.find('bob', { park: two.id, round: 1 }), { ...refused, message: /is over/ }, 'nobody else learns of it')
  t.throws(() => parks.find('ada', { park: one.id, round: tickets[0]?.ticket.round ?? 0 }), { ...refused, message: /used already/ })
  t.equal(parks.find('ada', later.ticket), one)
  parks.enter('ada', '5')
  t.same(gone, ['2', '1'])
  t.throws(() => parks.enter('ada', '6'), { code: 'too_many' }, 'none of them is open')
  t.ok(parks.find('bob', bobs.ticket))
  t.same([parks.size, timers.size], [4, 1])
})

t.test('at the end everybody is sent away', async (t) => {
  const { parks, gone, timers } = room()
  parks.enter('ada', '1').open()
  parks.enter('bob', '2')
  parks.end()
  t.same(gone, ['1', '2'])
  t.equal(timers.size + parks.size, 0)
})
