// Every adapter of the store, opened for a test, with a way to let time pass in it.

import { fork, type ChildProcess } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { join } from 'node:path'
import root, { type Test } from 'tap'
import { createChannelStore } from '../../src/store/channel/channel-store.ts'
import type { Store } from '../../src/store/port.ts'
import { createRedisStore } from '../../src/store/redis.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { openChannel } from '../../src/workers/channel.ts'
import type { ToPrimary, ToWorker } from '../../src/workers/messages.ts'
import { redis, sharedRedisUrl } from '../kit/redis.ts'
import { redisCluster, sentinelGroup, type RedisCluster, type SentinelGroup } from '../kit/redis-groups.ts'
import type { Wrapped } from './primary-process.ts'
import { quiet, until, untilServed } from './kit.ts'

export interface Adapter {
  store: Store
  /** A second store that hears what the first one publishes: of another process on Redis, the same one elsewhere. */
  other: Store
  /** Returns when the time has passed, or when the condition holds where time is the server's own. */
  pass(ms: number, condition: () => Promise<boolean>): Promise<void>
}

async function sqlite(t: Test, path: string): Promise<Adapter> {
  let now = 1_000
  const store = await createSqliteStore({ path, clock: { now: () => now }, log: quiet })
  t.teardown(() => store.close())
  return {
    store,
    other: store,
    async pass(ms, condition) {
      now += ms - 1
      t.equal(await condition(), false, 'not a millisecond early')
      now += 1
      t.ok(await condition(), 'and not one late')
    }
  }
}

async function onRedis(t: Test, url: string): Promise<Adapter> {
  const open = async (): Promise<Store> => {
    const store = await createRedisStore({ url, clock: Date, log: quiet })
    t.teardown(() => store.close())
    await untilServed(store)
    return store
  }
  return { store: await open(), other: await open(), pass: (_ms, condition) => until(condition) }
}

/**
 * Two workers of one primary, which is a process of its own.
 * @param tickMs a primary that stands still for five of them counts as away
 */
export async function ofPrimary(t: Test, tickMs = 6_000): Promise<Adapter & { readonly primary: ChildProcess }> {
  const primary = fork(new URL('./primary-process.ts', import.meta.url))
  t.teardown(async () => {
    const exit = once(primary, 'exit')
    primary.kill('SIGKILL')
    await exit
  })
  const open = (worker: number): Store => {
    const end = Object.assign(new EventEmitter(), {
      send: (message: object, _socket: unknown, _options: unknown, written?: (error: Error | null) => void) =>
        primary.send({ worker, message }, undefined, {}, written)
    })
    primary.on('message', (wrapped: Wrapped) => {
      if (wrapped.worker === worker) end.emit('message', wrapped.message)
    })
    const store = createChannelStore(openChannel<ToWorker, ToPrimary>(end), false, quiet, tickMs)
    t.teardown(() => store.close())
    return store
  }
  const [store, other] = [open(1), open(2)]
  await untilServed(store)
  return {
    primary,
    store,
    other,
    async pass(ms, condition) {
      primary.send({ moveMs: ms - 1 })
      t.equal(await condition(), false, 'not a millisecond early')
      primary.send({ moveMs: 1 })
      t.ok(await condition(), 'and not one late')
    }
  }
}

// Started once for a test file.
let group: Promise<SentinelGroup> | undefined
let cluster: Promise<RedisCluster> | undefined

export const adapters: Record<string, (t: Test) => Promise<Adapter>> = {
  'sqlite in memory': (t) => sqlite(t, ':memory:'),
  'sqlite in a file': (t) => sqlite(t, join(t.testdir(), 'data', 'store.db')),
  'the primary of workers': (t) => ofPrimary(t),
  Redis: async (t) => onRedis(t, sharedRedisUrl() ?? (await redis(t)).url),
  'Redis by Sentinel': async (t) => onRedis(t, (await (group ??= sentinelGroup(root))).url),
  'Redis Cluster': async (t) => onRedis(t, (await (cluster ??= redisCluster(root))).url)
}
