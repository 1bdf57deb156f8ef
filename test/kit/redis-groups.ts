// Real Redis servers that belong together: a primary and a replica with a Sentinel, or a cluster of three.

import { Redis } from 'ioredis'
import { freePort } from './free-port.ts'
import { redis, type PrivateRedis } from './redis.ts'
import { until, type Teardown } from './until.ts'

const portOf = ({ url }: PrivateRedis): number => Number(new URL(url).port)

/** One command to one server. */
export async function redisCommand(server: PrivateRedis, ...command: readonly [string, ...string[]]): Promise<unknown> {
  const connection = new Redis(server.url)
  const [name, ...args] = command
  return connection.call(name, args).finally(() => connection.disconnect())
}

export interface SentinelGroup {
  /** Names a Sentinel that is away first. */
  readonly url: string
  readonly primary: PrivateRedis
  readonly replica: PrivateRedis
  readonly sentinel: PrivateRedis
}

/**
 * @param args further options of both servers that keep data
 * @param downAfterMs of silence of the primary until the replica takes over
 */
export async function sentinelGroup(
  t: Teardown,
  args: readonly string[] = [],
  downAfterMs = 500
): Promise<SentinelGroup> {
  const primary = await redis(t, ['--repl-diskless-sync-delay', '0', ...args])
  const replica = await redis(t, [
    '--replicaof',
    '127.0.0.1',
    String(portOf(primary)),
    '--repl-diskless-sync-delay',
    '0',
    ...args
  ])
  await until('the replica has what the primary has', async () =>
    /master_link_status:up/.test(String(await redisCommand(replica, 'info', 'replication')))
  )
  const sentinel = await redis(
    t,
    ['--sentinel'],
    `sentinel monitor gatehouse 127.0.0.1 ${portOf(primary)} 1
sentinel down-after-milliseconds gatehouse ${downAfterMs}
sentinel failover-timeout gatehouse 2000
`
  )
  // Without it nobody can take over.
  await until('the Sentinel knows the replica', async () =>
    /slaves=1/.test(String(await redisCommand(sentinel, 'info', 'sentinel')))
  )
  const url = `redis+sentinel://127.0.0.1:${await freePort()},127.0.0.1:${portOf(sentinel)}/gatehouse`
  return { url, primary, replica, sentinel }
}

/**
 * Kills the primary, waits until the Sentinel has made the other one the primary, and brings the killed one back as its
 * replica.
 */
export async function failOver({ primary, replica, sentinel }: SentinelGroup): Promise<void> {
  const portOfPrimary = async (): Promise<number> => {
    const [, port] = (await redisCommand(sentinel, 'sentinel', 'get-master-addr-by-name', 'gatehouse')) as string[]
    return Number(port)
  }
  const [old, next] = (await portOfPrimary()) === portOf(primary) ? [primary, replica] : [replica, primary]
  await old.stop()
  await until('the Sentinel has another primary', async () => (await portOfPrimary()) === portOf(next), 60_000)
  await old.restart()
  // The Sentinel would take ten seconds to say so.
  await redisCommand(old, 'replicaof', '127.0.0.1', String(portOf(next)))
  await until('the former primary has what the new one has', async () =>
    /master_link_status:up/.test(String(await redisCommand(old, 'info', 'replication')))
  )
  await until(
    'the Sentinel takes it for a replica that is there',
    async () => {
      const [one] = (await redisCommand(sentinel, 'sentinel', 'replicas', 'gatehouse')) as string[][]
      return one?.[one.indexOf('flags') + 1] === 'slave' && one[one.indexOf('master-link-status') + 1] === 'ok'
    },
    60_000
  )
}

export interface RedisCluster {
  readonly url: string
  readonly nodes: readonly [PrivateRedis, PrivateRedis, PrivateRedis]
}

const slots = 16_384

export async function redisCluster(t: Teardown): Promise<RedisCluster> {
  const node = (): Promise<PrivateRedis> =>
    redis(t, ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', '--cluster-require-full-coverage', 'no'])
  const nodes = await Promise.all([node(), node(), node()])
  const [first] = nodes
  await Promise.all(
    nodes.map(async (each, index) => {
      const [from, to] = [index, index + 1].map((part) => Math.floor((part * slots) / nodes.length)) as [number, number]
      await redisCommand(
        each,
        'cluster',
        'addslots',
        ...Array.from({ length: to - from }, (_, at) => String(from + at))
      )
      await redisCommand(each, 'cluster', 'set-config-epoch', String(index + 1))
    })
  )
  for (const each of nodes.slice(1)) await redisCommand(each, 'cluster', 'meet', '127.0.0.1', String(portOf(first)))
  for (const each of nodes)
    await until('the nodes know each other', async () => {
      const info = String(await redisCommand(each, 'cluster', 'info'))
      return /cluster_state:ok/.test(info) && /cluster_slots_ok:16384/.test(info)
    })
  return { url: `redis+cluster://${nodes.map((each) => `127.0.0.1:${portOf(each)}`).join(',')}`, nodes }
}
