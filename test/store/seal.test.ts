// Seals and proofs: the same for the same, nothing for anybody else, one key for all processes on a store.

import t, { type Test } from 'tap'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { GatewayError } from '../../src/protocol/messages.ts'
import { sealKeyKey } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/port.ts'
import { createRedisStore } from '../../src/store/redis.ts'
import { createSealer, type Sealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { quiet, recorded } from './kit.ts'

const timer = (ms: number, run: () => void) => setTimeout(run, ms)

async function memory(t: Test): Promise<Store> {
  const store = await createSqliteStore({ path: ':memory:', clock: Date, log: quiet })
  t.teardown(() => store.close())
  return store
}

async function sealer(t: Test, store: Store, log = quiet): Promise<Sealer> {
  const made = await createSealer({ store, randomBytes, timer, log })
  t.teardown(() => made.close())
  return made
}

t.test('what was sealed opens again, and the same text has the same seal', async (t) => {
  const { seal, open } = await sealer(t, await memory(t))
  for (const text of ['', 'a', 'täsk-1 \u{1f600}\0\n', 'x'.repeat(10_000)]) {
    const sealed = seal('task', ['acme', 'up'], text)
    t.match(sealed, /^[\w-]+$/)
    t.equal(open('task', ['acme', 'up'], sealed), text)
    t.equal(seal('task', ['acme', 'up'], text), sealed)
  }
  t.not(seal('task', ['acme', 'up'], 'a'), seal('task', ['acme', 'up'], 'b'))
})

t.test('another purpose or binding has another seal, and opens none', async (t) => {
  const { seal, open } = await sealer(t, await memory(t))
  const sealed = seal('task', ['a', 'b'], 'c')
  t.equal(open('task', ['a', 'b'], sealed), 'c')
  const others: Array<[string, string[]]> = [
    ['cursor', ['a', 'b']],
    ['task', ['a']],
    ['task', ['a', 'b', '']],
    ['task', ['ab']],
    ['task', ['b', 'a']],
    ['task', ['a', 'B']],
    ['task', []],
    ['task","a', ['b']]
  ]
  for (const [purpose, binding] of others) {
    t.equal(open(purpose, binding, sealed), undefined, JSON.stringify([purpose, binding]))
    t.not(seal(purpose, binding, 'c'), sealed)
  }
  t.not(seal('task', ['a'], 'b'), seal('task', [], 'a'))
})

t.test('every flipped bit, every cut and every other spelling is refused', async (t) => {
  const { seal, open } = await sealer(t, await memory(t))
  const sealed = seal('task', ['a'], 'the id of a task')
  const bytes = Buffer.from(sealed, 'base64url')
  const opened: string[] = []
  const refused = (text: string): void => {
    if (open('task', ['a'], text) !== undefined) opened.push(text)
  }
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = Buffer.from(bytes)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    refused(flipped.toString('base64url'))
  }
  for (let length = 0; length < sealed.length; length++) refused(sealed.slice(0, length))
  for (const text of [
    `${sealed}A`,
    `${sealed}=`,
    `${sealed}!`,
    ` ${sealed}`,
    `${sealed}\n`,
    bytes.toString('base64'),
    `${sealed}${sealed}`,
    'x'.repeat(100_000),
    '🙂'
  ])
    if (text !== sealed) refused(text)
  t.same(opened, [])
  t.equal(open('task', ['a'], sealed), 'the id of a task')
})

t.test('a proof is of its parts and its number alone, in one spelling', async (t) => {
  const { proofs, proves } = await sealer(t, await memory(t))
  const ours = proofs('event', ['s', '1'])(7)
  t.match(ours, /^[\w-]{16}$/)
  t.ok(proves('event', ['s', '1'], 7, ours))
  t.equal(proofs('event', ['s', '1'])(7), ours)
  for (const parts of [['s', '2'], ['s1'], ['s', '1', ''], ['1', 's']]) t.notOk(proves('event', parts, 7, ours))
  for (const number of [0, 6, 8, 7 + 16, 7 + 32, 70]) t.notOk(proves('event', ['s', '1'], number, ours), `${number}`)
  t.notOk(proves('other', ['s', '1'], 7, ours))
  for (const forged of [
    '',
    ours.slice(0, -1),
    `${ours}A`,
    `${ours}!`,
    `${ours}=`,
    'A'.repeat(16),
    'x'.repeat(10_000),
    '🙂🙂🙂🙂'
  ])
    t.notOk(proves('event', ['s', '1'], 7, forged), forged.slice(0, 20))
})

t.test('proofs of numbers in a row are all different, and those of a number the same in whatever order', async (t) => {
  const { proofs, proves } = await sealer(t, await memory(t))
  const [one, other] = [proofs('event', ['s']), proofs('event', ['s'])]
  const numbers = Array.from({ length: 100 }, (_, at) => at)
  const made = numbers.map(one)
  t.equal(new Set(made).size, 100)
  t.same(numbers.toReversed().map(other).toReversed(), made)
  for (const [at, proof] of made.entries()) if (!proves('event', ['s'], at, proof)) t.fail(`the proof of ${at}`)
})

t.test('two processes on one store share the key, begun at the same moment or later', async (t) => {
  const url = (await redis(t)).url
  const open = async (): Promise<Store> => {
    const store = await createRedisStore({ url, clock: Date, log: quiet })
    t.teardown(() => store.close())
    return store
  }
  const [a, b] = await Promise.all([open(), open()])
  const [first, second] = await Promise.all([sealer(t, a), sealer(t, b)])
  const third = await sealer(t, await open())
  for (const other of [second, third]) {
    t.equal(other.open('task', ['a'], first.seal('task', ['a'], 'x')), 'x')
    t.ok(other.proves('event', ['a'], 3, first.proofs('event', ['a'])(3)))
  }
  const stranger = await sealer(t, await memory(t))
  t.equal(stranger.open('task', ['a'], first.seal('task', ['a'], 'x')), undefined, 'another store has another key')
})

t.test('processes agree on one key again after the store was emptied while they were connected', async (t) => {
  const server = await redis(t)
  const store = await createRedisStore({ url: server.url, clock: Date, log: quiet })
  t.teardown(() => store.close())
  const { log, lines } = recorded()
  const sooner = (ms: number, run: () => void) => setTimeout(run, ms / 50)
  const begin = async (its = sooner): Promise<Sealer> => {
    const made = await createSealer({ store, randomBytes, timer: its, log })
    t.teardown(() => made.close())
    return made
  }
  const [one, two] = [await begin(), await begin()]
  const sealed = one.seal('task', [], 'x')
  await store.delete(sealKeyKey)
  await until('the key is back', () => store.get(sealKeyKey))
  const three = await begin()
  t.equal(three.open('task', [], sealed), 'x', 'it is the same key, where one that has it comes first')
  t.same(lines, [])

  // Another process was first.
  await store.set(sealKeyKey, randomBytes(32).toString('base64url'))
  const young = await begin()
  const other = young.seal('task', [], 'x')
  t.not(other, sealed)
  for (const each of [one, two, three]) await until('it has the other key', () => each.open('task', [], other) === 'x')
  t.equal(one.open('task', [], sealed), undefined)
  t.match(lines, [{ level: 40, msg: /another seal key/ }, { level: 40 }, { level: 40 }], 'those that run say it')
})

t.test('the key survives the process', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const store = await createSqliteStore({ path, clock: Date, log: quiet })
  const sealed = (await sealer(t, store)).seal('task', [], 'x')
  await store.close()
  const again = await createSqliteStore({ path, clock: Date, log: quiet })
  t.teardown(() => again.close())
  t.equal((await sealer(t, again)).open('task', [], sealed), 'x')
})

t.test('a damaged key is said once, seals nothing, and is made new when somebody deletes it', async (t) => {
  const store = await memory(t)
  const { log, lines } = recorded()
  await store.set(sealKeyKey, 'not a key')
  const made = await sealer(t, store, log)
  t.notOk(made.ready)
  t.throws(
    () => made.seal('task', [], 'x'),
    new GatewayError('unavailable', 'The store of the gateway cannot be reached. Retry in a second.')
  )
  t.throws(() => made.proves('task', [], 0, 'x'), GatewayError)
  await store.delete(sealKeyKey)
  await until('there is a key', () => {
    try {
      return made.seal('task', [], 'x')
    } catch {
      return undefined // Not yet.
    }
  })
  t.ok(made.ready)
  t.equal(lines.filter(({ level }) => level === 50).length, 1)
  t.notMatch(JSON.stringify(lines), /not a key/)
})

t.test(
  'a store that is away at the start is waited for; one that comes back empty gets the same key again',
  async (t) => {
    const server = await redis(t)
    await server.stop()
    const open = async (): Promise<Store> => {
      const store = await createRedisStore({ url: server.url, clock: Date, log: quiet, heartbeatMs: 50 })
      t.teardown(() => store.close())
      // The messages of a store tell of its losses; somebody always listens in a gateway.
      await store.subscribe('sessions', () => {})
      return store
    }
    const store = await open()
    const made = await sealer(t, store)
    t.notOk(made.ready)
    t.throws(() => made.seal('task', [], 'x'), GatewayError)
    await server.restart()
    const sealed = await until('there is a key', () => {
      try {
        return made.seal('task', [], 'x')
      } catch {
        return undefined // Not yet.
      }
    })
    t.ok(made.ready)
    await server.restart()
    t.ok(made.ready, 'it has its key, whatever the store has')
    await until('the key is back', () => store.get(sealKeyKey).catch(() => undefined))
    t.equal(
      (await sealer(t, await open())).open('task', [], sealed),
      'x',
      'a process begun since can read what was sealed before'
    )
  }
)
