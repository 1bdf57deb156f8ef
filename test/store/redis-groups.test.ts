// Redis of several servers: a Sentinel makes a replica the primary, a node of a cluster dies, keys move between nodes.
// Calls fail clearly within a second meanwhile, and everything heals without help.

import t, { type Test } from 'tap'
import { createRedisStore } from '../../src/store/redis.ts'
import type { Store } from '../../src/store/port.ts'
import { redisCluster, redisCommand, sentinelGroup } from '../kit/redis-groups.ts'
import { redis, type PrivateRedis } from '../kit/redis.ts'
import { recorded, until, untilServed } from './kit.ts'

// A call has one second (src/store/port.ts); the rest is for a machine that is busy with other tests.
const patienceMs = 30_000
const ttlMs = 60_000

async function open(t: Test, url: string): Promise<Store> {
  const store = await createRedisStore({ url, clock: Date, log: recorded().log, heartbeatMs: 200 })
  t.teardown(() => store.close())
  await untilServed(store)
  return store
}

/** @returns whether it was answered; a refusal has to say so in time */
async function answered(t: Test, call: Promise<unknown>): Promise<boolean> {
  const began = performance.now()
  const outcome = await call.then(
    () => 'answered',
    (error: { code: string }) => error.code
  )
  if (outcome !== 'answered' && outcome !== 'unavailable') t.fail(`a call was refused with ${outcome}`)
  if (performance.now() - began > patienceMs) t.fail(`a call took ${performance.now() - began} ms`)
  return outcome === 'answered'
}

async function getsThrough(store: Store, publisher: Store): Promise<void> {
  let heard = false
  const stop = await store.subscribe('c', () => {
    heard = true
  })
  await until(async () => {
    await publisher.publish('c', 'm').catch(() => {})
    return heard
  })
  await stop()
}

/** Another node answers with an error: MOVED. */
const has = (node: PrivateRedis, key: string): Promise<boolean> =>
  redisCommand(node, 'exists', `gatehouse:${key}`).then(
    (count) => count === 1,
    () => false
  )

for (const how of ['dies', 'hangs'] as const) {
  t.test(`a primary ${how}: the Sentinel makes the replica the primary, and the store goes on there`, async (t) => {
    const { url, primary, replica } = await sentinelGroup(t)
    const [store, publisher] = [await open(t, url), await open(t, url)]
    let lost = 0
    store.onLost(() => {
      lost += 1
    })
    await store.set('kept', 'v', { ttlMs })
    await getsThrough(store, publisher)
    await until(async () => (await redisCommand(replica, 'get', 'gatehouse:kept')) === 'v')

    if (how === 'dies') await primary.stop()
    else primary.pause()
    t.equal(await answered(t, store.set('k', 'v', { ttlMs })), false)
    await until(() => answered(t, store.set('k', 'v', { ttlMs })))
    t.equal(await redisCommand(replica, 'get', 'gatehouse:k'), 'v', 'written at the new primary')
    t.equal(await store.get('kept'), 'v')
    await until(() => store.live)
    t.ok(lost > 0, 'copies were given up: messages may have been missed')
    await getsThrough(store, publisher)

    // It comes back in the belief that it is the primary, until the Sentinel tells it otherwise.
    if (how === 'dies') await primary.restart()
    else primary.resume()
    await until(() => answered(t, store.set('after', 'v', { ttlMs })))
    t.equal(await redisCommand(replica, 'get', 'gatehouse:after'), 'v', 'nothing is written at the old one')
  })
}

for (const [isFenced, title] of [
  [true, 'acknowledges nothing that would be lost, where min-replicas-to-write is set'],
  [false, 'takes writes that are lost, where it is not']
] as const) {
  t.test(`a primary that was only slow, and was deposed, ${title}`, async (t) => {
    const { url, primary, replica } = await sentinelGroup(t, isFenced ? ['--min-replicas-to-write', '1'] : [])
    const store = await open(t, url)
    const roleOf = async (server: PrivateRedis): Promise<string> =>
      String(await redisCommand(server, 'role')).slice(0, 6)
    await until(() => answered(t, store.set('before', 'v', { ttlMs })))

    // No command is on its way meanwhile, whose silence would end the connection.
    primary.pause()
    await until(async () => (await roleOf(replica)) === 'master')
    primary.resume()
    await until(async () => /connected_slaves:0/.test(String(await redisCommand(primary, 'info', 'replication'))))

    t.equal(await answered(t, store.set('k', 'v', { ttlMs })), !isFenced)
    t.equal(await redisCommand(replica, 'get', 'gatehouse:k'), null, 'the new primary has nothing of it')
    t.equal(await roleOf(primary), 'master', 'the old one has not heard that it is none')
  })
}

t.test('passwords of Redis and of its Sentinel are used, and are in no log', async (t) => {
  const password = 's3cret/@:word'
  const primary = await redis(t, ['--requirepass', password])
  const port = new URL(primary.url).port
  const sentinel = await redis(
    t,
    ['--sentinel', '--requirepass', 'other-s3cret'],
    `sentinel monitor main 127.0.0.1 ${port} 1\nsentinel auth-pass main ${password}\n`
  )
  const address = (ofSentinel: string): string =>
    `redis+sentinel://:${encodeURIComponent(password)}@127.0.0.1:${new URL(sentinel.url).port}/main/2?sentinelPassword=${ofSentinel}`
  const store = await open(t, address('other-s3cret'))
  await store.set('k', 'v', { ttlMs })
  t.equal(await store.get('k'), 'v')
  const { log, text } = recorded()
  const locked = await createRedisStore({ url: address('wr0ng'), clock: Date, log })
  t.teardown(() => locked.close())
  t.equal(await answered(t, locked.get('k')), false)
  t.match(text(), /cannot be reached/)
  t.notMatch(text(), /s3cret|wr0ng/)
})

t.test('a node of a cluster dies: its keys are refused, the others are served, and it heals', async (t) => {
  const { url, nodes } = await redisCluster(t)
  const [store, publisher] = [await open(t, url), await open(t, url)]
  const keys = Array.from({ length: 30 }, (_, at) => `key ${at}`)
  const works = async (): Promise<boolean[]> =>
    await Promise.all(keys.map((key) => answered(t, store.set(key, 'v', { ttlMs }))))
  t.ok((await works()).every(Boolean))
  const counts = await Promise.all(
    nodes.map(async (node) => (await Promise.all(keys.map((key) => has(node, key)))).filter(Boolean).length)
  )
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    keys.length
  )
  t.ok(
    counts.every((count) => count > 0),
    `every node holds keys: ${counts.join(', ')}`
  )
  await getsThrough(store, publisher)

  // The first one is also that of the messages.
  await nodes[0].stop()
  await until(() => !store.live)
  const during = await works()
  t.equal(during.filter(Boolean).length, keys.length - (counts[0] ?? 0))
  await until(() => store.live)
  await until(() => publisher.live)
  await getsThrough(store, publisher)
  await nodes[0].restart()
  await until(async () => (await works()).every(Boolean))
})

t.test('a slot moves to another node of the cluster, and its key is found there', async (t) => {
  const { url, nodes } = await redisCluster(t)
  const store = await open(t, url)
  await store.count('moving', 1, ttlMs)
  const slot = String(await redisCommand(nodes[0], 'cluster', 'keyslot', 'gatehouse:moving'))
  const ids = await Promise.all(nodes.map(async (node) => String(await redisCommand(node, 'cluster', 'myid'))))
  const held = await Promise.all(
    nodes.map(async (node) => Number(await redisCommand(node, 'cluster', 'countkeysinslot', slot)))
  )
  const from = held.indexOf(1)
  const to = (from + 1) % nodes.length
  const [source, target] = [nodes[from], nodes[to]]
  if (source === undefined || target === undefined) throw new Error('no node holds the key')
  await redisCommand(target, 'cluster', 'setslot', slot, 'importing', ids[from] ?? '')
  await redisCommand(source, 'cluster', 'setslot', slot, 'migrating', ids[to] ?? '')
  await redisCommand(source, 'migrate', '127.0.0.1', new URL(target.url).port, 'gatehouse:moving', '0', '1000')
  // ASK, of each command of a transaction, and MOVED afterwards.
  t.equal(await store.get('moving'), '1')
  for (const node of [target, source]) await redisCommand(node, 'cluster', 'setslot', slot, 'node', ids[to] ?? '')
  await until(() => answered(t, store.count('moving', 1, ttlMs)))
  t.match(await redisCommand(target, 'get', 'gatehouse:moving'), /^[23]$/)
})
