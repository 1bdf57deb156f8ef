// Token buckets that processes share by leases: what each process of several on one store may spend.

import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { createLeasedBuckets, type Shortage } from '../../src/store/leased-buckets.ts'
import type { Bucket } from '../../src/store/refill.ts'
import type { Store } from '../../src/store/port.ts'
import { createRedisStore } from '../../src/store/redis.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { unavailable } from '../../src/store/port.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { quiet, recorded, untilServed } from './kit.ts'

const bucketOf = (capacity: number, perMs = 0): Bucket => ({
  key: `test:${randomUUID()}`,
  capacity,
  perMs,
  ttlMs: 60_000
})

/** Counts what is asked of it; may be away. */
function watched(store: Store) {
  const seen = { leases: 0, away: false }
  const lease: Store['lease'] = async (...args) => {
    seen.leases++
    if (seen.away) throw unavailable('away')
    return await store.lease(...args)
  }
  const own: Store = {
    ...store,
    lease,
    get live() {
      return store.live
    }
  }
  return { seen, store: own }
}

async function sqlite(t: Test) {
  const store = await createSqliteStore({ path: ':memory:', clock: Date, log: quiet })
  t.teardown(() => store.close())
  return watched(store)
}

function bucketsOn(t: Test, store: Store, node = 'here') {
  const buckets = createLeasedBuckets({ store, clock: steadyClock, node, log: quiet })
  t.teardown(() => buckets.close())
  return buckets
}

const taken = (answers: ReadonlyArray<Shortage | undefined>): number =>
  answers.filter((each) => each === undefined).length

t.test('a call takes what is in hand without asking, and more is fetched ahead', async (t) => {
  const { seen, store } = await sqlite(t)
  const buckets = bucketsOn(t, store)
  const bucket = bucketOf(10_000)
  t.ok(buckets.take([bucket]) instanceof Promise, 'the first one has to ask')
  await until('a token is in hand', () => seen.leases > 0 && buckets.remaining(bucket) === 9_999)
  let waited = 0
  for (let n = 0; n < 2_000; n++) {
    const answer = buckets.take([bucket])
    if (answer instanceof Promise) waited++
    t.equal(await answer, undefined)
    await new Promise(setImmediate)
  }
  t.ok(waited < 20, `${waited} of 2,000 waited`)
  t.ok(seen.leases < 200, `${seen.leases} times asked`)
  t.equal(buckets.remaining(bucket), 7_999)
})

t.test('a token of each bucket is taken, or of none', async (t) => {
  const buckets = bucketsOn(t, (await sqlite(t)).store)
  const [wide, narrow] = [bucketOf(10), bucketOf(2)]
  const answers = []
  for (let n = 0; n < 5; n++) answers.push(await buckets.take([wide, narrow]))
  t.equal(taken(answers), 2)
  t.match(answers[2], { bucket: narrow, waitMs: Infinity })
  t.equal(buckets.remaining(wide), 8)
})

t.test('what is not used is given back, and what is left at the end, too', async (t) => {
  const { store } = await sqlite(t)
  const [one, other] = [
    createLeasedBuckets({ store, clock: steadyClock, node: 'one', log: quiet }),
    bucketsOn(t, store)
  ]
  const bucket = bucketOf(4)
  t.equal(await one.take([bucket]), undefined)
  await one.close()
  const answers = await Promise.all(Array.from({ length: 9 }, async () => await other.take([bucket])))
  t.equal(taken(answers), 3)
})

t.test('while the store is away a process goes on by itself, and tells afterwards what it spent', async (t) => {
  const { seen, store } = await sqlite(t)
  const { log, lines } = recorded()
  const buckets = createLeasedBuckets({ store, clock: steadyClock, node: 'here', log })
  const other = bucketsOn(t, store, 'other')
  const bucket = bucketOf(20)
  t.equal(await buckets.take([bucket]), undefined)
  seen.away = true
  const alone = []
  for (let n = 0; n < 30; n++) alone.push(await buckets.take([bucket]))
  t.equal(taken(alone), 19)
  t.equal(lines.filter(({ msg }) => String(msg).startsWith('the store is away')).length, 1)
  seen.away = false
  await buckets.close()
  t.match(await other.take([bucket]), { waitMs: Infinity }, 'the other process has none left')
})

t.test('processes on one Redis, which take as fast as they can, get together as many as there are', async (t) => {
  const { url } = await redis(t)
  const nodes = await Promise.all(
    ['a', 'b', 'c'].map(async (node) => {
      const store = await createRedisStore({ url, clock: Date, log: quiet })
      t.teardown(() => store.close())
      await untilServed(store)
      return bucketsOn(t, store, node)
    })
  )
  for (const capacity of [1, 7, 100, 1_000]) {
    const bucket = bucketOf(capacity)
    let all = 0
    const round = async (): Promise<number> => {
      const answers = await Promise.all(
        nodes.flatMap((node) => Array.from({ length: 40 }, async () => await node.take([bucket])))
      )
      return taken(answers)
    }
    // What one of them has in hand the others get after a moment.
    await until('all are spent', async () => (all += await round()) >= capacity)
    all += await round()
    t.equal(all, capacity, `of ${capacity}`)
  }
})

t.test('of a rate no more than it gives pass in any time, over all processes', async (t) => {
  const { url } = await redis(t)
  const nodes = await Promise.all(
    ['a', 'b'].map(async (node) => {
      const store = await createRedisStore({ url, clock: Date, log: quiet })
      t.teardown(() => store.close())
      await untilServed(store)
      return bucketsOn(t, store, node)
    })
  )
  const bucket = bucketOf(20, 0.05)
  // What it gives while this process stands still is lost: one of three shows that it is not far below.
  const parts: number[] = []
  while (parts.length < 3 && !parts.some((part) => part >= 0.5)) {
    const start = performance.now()
    let all = 0
    await Promise.all(
      nodes.map(async (node) => {
        while (performance.now() - start < 2_000) {
          if ((await node.take([bucket])) === undefined) all++
          await new Promise(setImmediate)
        }
      })
    )
    const most = 20 + (performance.now() - start) * 0.05
    t.ok(all <= most, `${all} of at most ${most}`)
    parts.push(all / most)
  }
  t.ok(Math.max(...parts) >= 0.5, `${parts.join(', ')} of what may pass`)
})
