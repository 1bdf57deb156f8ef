// Tokens of a shared bucket, held against every adapter: never more than the bucket has, whoever holds them.

import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { leaseTokens, type BucketState, type LeaseRequest } from '../../src/store/lease.ts'
import { runs } from '../kit/runs.ts'
import { adapters } from './adapters.ts'

const ofTen = { capacity: 10, perMs: 0, used: 0, holdMs: 60_000, ttlMs: 60_000 }

for (const [name, adapter] of Object.entries(adapters))
  t.test(name, async (t) => {
    const { store, other, pass } = await adapter(t)
    const fresh = (): string => `test:${randomUUID()}`

    t.test('half of what is left is given, until there is none; what is given back is there again', async (t) => {
      const key = fresh()
      const ask = (holder: string, want: number, used = 0) => store.lease(key, { ...ofTen, holder, want, used })
      t.same(await ask('a', 100), { held: 5, elsewhere: 0, left: 5, waitMs: 0 })
      t.same(await ask('b', 2), { held: 2, elsewhere: 5, left: 3, waitMs: 0 })
      t.same(await ask('a', 5, 5), { held: 2, elsewhere: 2, left: 1, waitMs: 0 })
      t.same(await ask('b', 3), { held: 3, elsewhere: 2, left: 0, waitMs: Infinity })
      t.same(await ask('a', 9), { held: 2, elsewhere: 3, left: 0, waitMs: Infinity })
      t.same(await ask('b', 0), { held: 0, elsewhere: 2, left: 3, waitMs: 0 })
      t.same(await ask('a', 0, 2), { held: 0, elsewhere: 0, left: 3, waitMs: 0 })
      await store.delete(key)
    })

    t.test('what was spent without having been in hand counts', async (t) => {
      const key = fresh()
      await store.lease(key, { ...ofTen, holder: 'a', want: 1 })
      t.match(await store.lease(key, { ...ofTen, holder: 'a', want: 0, used: 12 }), { held: 0, left: 0 })
      t.match(await store.lease(key, { ...ofTen, capacity: 15, holder: 'b', want: 9 }), { held: 2, left: 1 })
      await store.delete(key)
    })

    t.test('tokens come back with time, and a holder that is gone keeps none', async (t) => {
      const key = fresh()
      const slow = { ...ofTen, capacity: 2, perMs: 0.01, holdMs: 1_000 }
      const ask = (): Promise<{ elsewhere: number; left: number }> =>
        store.lease(key, { ...slow, holder: 'c', want: 0 })
      // Sent at once: what is in hand is so for a second, however busy the machine is.
      const [, , held] = await Promise.all([
        store.lease(key, { ...slow, holder: 'a', want: 1 }),
        store.lease(key, { ...slow, holder: 'b', want: 1 }),
        ask()
      ])
      t.match(held, { elsewhere: 2, left: 0 }, 'what is in hand does not come back')
      const witness = fresh()
      await store.set(witness, 'x', { ttlMs: 1_300 })
      await pass(1_300, async () => (await store.get(witness)) === undefined)
      t.match(await ask(), { elsewhere: 0, left: 2 })
      await store.delete(key)
    })

    t.test('of two hundred that ask at once, from two processes, as many get one as there are', async (t) => {
      const key = fresh()
      const all = await Promise.all(
        Array.from({ length: 200 }, (_, n) =>
          (n % 2 ? store : other).lease(key, { ...ofTen, capacity: 37, holder: `h${n}`, want: 1 })
        )
      )
      t.equal(all.filter(({ held }) => held === 1).length, 37)
      await store.delete(key)
    })

    t.test('a value that is no bucket counts as none', async (t) => {
      const key = fresh()
      await store.set(key, '"text"', { ttlMs: 60_000 })
      t.match(await store.lease(key, { ...ofTen, holder: 'a', want: 1 }), { held: 1, left: 9 })
      await store.delete(key)
    })

    t.test('what is asked in any order is answered as the pure function answers', async (t) => {
      // Without time: the server's own runs.
      const asks = fc.array(
        fc.record({ holder: fc.constantFrom('a', 'b', 'c'), want: fc.nat(9), used: fc.nat(3), capacity: fc.nat(20) }),
        { maxLength: 12 }
      )
      await fc.assert(
        fc.asyncProperty(asks, async (given) => {
          const key = fresh()
          let state: BucketState | undefined
          for (const each of given) {
            const request = { ...ofTen, ...each }
            const expected = leaseTokens(state, request, 0)
            state = expected.state
            t.same(await store.lease(key, request), expected.lease)
          }
        }),
        { numRuns: runs(25) }
      )
    })
  })

t.test('however processes ask, spend, vanish and give back, no more is spent than the bucket gives', async (t) => {
  const step = fc.record({
    holder: fc.nat(3),
    /** Of what is in hand, before it asks. */
    spends: fc.double({ min: 0, max: 1, noNaN: true }),
    want: fc.nat(12),
    /** It may also be gone: then it asks as a new one. */
    vanishes: fc.boolean(),
    passMs: fc.nat(400)
  })
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      fc.constantFrom(0, 0.001, 0.02),
      (steps, capacity, perMs) => {
        const request: Omit<LeaseRequest, 'holder' | 'want' | 'used'> = { capacity, perMs, holdMs: 1_000, ttlMs: 9_999 }
        const hands = [0, 1, 2, 3].map((n) => ({ name: `h${n}`, held: 0, until: 0 }))
        const spent: Array<{ at: number; tokens: number }> = []
        let state: BucketState | undefined
        let now = 0
        for (const { holder, spends, want, vanishes, passMs } of steps) {
          now += passMs
          const hand = hands[holder]
          if (hand === undefined) continue
          const used = now < hand.until ? Math.floor(hand.held * spends) : 0
          spent.push({ at: now, tokens: used })
          const left = hand.held - used
          // A process that is gone asks under another name, and tells nothing of what it spent.
          if (vanishes) Object.assign(hand, { name: `${hand.name}'`, held: 0 })
          const answer = leaseTokens(state, { ...request, holder: hand.name, want, used: vanishes ? 0 : used }, now)
          state = answer.state
          Object.assign(hand, { held: answer.lease.held, until: now + 1_000 })
          if (!vanishes && want <= left && answer.lease.held > want) return false
        }
        return spent.every(({ at: from }, first) =>
          spent.every(({ at: to }, last) => {
            if (last < first) return true
            const total = spent.slice(first, last + 1).reduce((sum, { tokens }) => sum + tokens, 0)
            return total <= capacity + (to - from) * perMs + 1e-6
          })
        )
      }
    ),
    { numRuns: runs(3_000) }
  )
  t.pass()
})
