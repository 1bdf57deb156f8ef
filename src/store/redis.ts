// The store of several gateways: Redis, with one connection for commands, one for long messages to others, and one to
// hear messages. While Redis is away every call fails at once. Every key and channel begins with `gatehouse:`; keys are
// never listed or scanned.

import type { Cluster, Redis } from 'ioredis'
import type { Log } from '../observe/log.ts'
import { type Store, createChannelListeners, guarded, unavailable, wholeMs } from './port.ts'
import { firstAttempt, openRedis, reasonOf, publish, transaction } from './redis-connection.ts'
import { addMemberInRedis, deleteInRedis, leaseInRedis, membersInRedis, replaceInRedis } from './redis-scripts.ts'
import { every, steadyClock } from '../time/clock.ts'

const prefix = 'gatehouse:'
// With the time of one command less than a second: for no longer may a frozen Redis count as live.
const defaultHeartbeatMs = 400

/**
 * Resolves within about a second, whether Redis is there or not; while it is away every call rejects with GatewayError
 * `unavailable`. A call that failed may have taken effect: nobody can know. `subscribe` alone does not fail: it is made
 * good when Redis is back, and until then `live` is false.
 * @param url as config/redis-address.ts reads it
 * @throws TypeError when the address cannot be used
 */
export async function createRedisStore({
  url,
  clock,
  log,
  heartbeatMs = defaultHeartbeatMs
}: {
  readonly url: string
  /** Compared with the clock of Redis at the start; Redis itself decides what has expired. */
  readonly clock: { now(): number }
  readonly log: Log
  /** How often the message connection is checked. */
  readonly heartbeatMs?: number
}): Promise<Store> {
  const { commands, bulk, messages } = openRedis(url, log)
  const listeners = createChannelListeners(log)
  const link = watchMessages(messages, listeners, heartbeatMs, log)
  let closed = false

  async function ask<Answer>(command: () => Promise<Answer>): Promise<Answer> {
    try {
      return await command()
    } catch (error) {
      link.check() // Where one connection hangs, the other one probably does too.
      throw unavailable(
        'The store of the gateway cannot be reached. Retry in a second.',
        new Error(`Redis: ${reasonOf(error)}`)
      )
    }
  }

  /**
   * A value of another type than the gateway writes counts as absent: it is deleted, and the command given again.
   * @param kinds of errors that say so
   */
  function typed<Answer>(key: string, command: () => Promise<Answer>, kinds = ['WRONGTYPE']): Promise<Answer> {
    return ask(async () => {
      try {
        return await command()
      } catch (error) {
        if (!kinds.includes(reasonOf(error))) throw error
        log.warn({ storeKey: key }, 'a value in Redis has another type than the gateway writes, and is deleted')
        const [, answer] = await Promise.all([commands.del(prefix + key), command()])
        return answer
      }
    })
  }

  const get = async (key: string): Promise<string | undefined> =>
    (await typed(key, () => commands.get(prefix + key))) ?? undefined

  messages.on('message', (channel: string, message: string) => listeners.deliver(channel, message))
  commands.once('ready', () => {
    void advise(commands, clock, log)
  })
  await Promise.all([commands, bulk, messages].map(firstAttempt))

  return {
    get,
    async set(key, value, { ttlMs, when } = {}) {
      if (typeof when === 'object')
        return await typed(key, () => replaceInRedis(commands, prefix + key, { before: when.is, value, ttlMs }))
      const expiry = ttlMs === undefined ? [] : ['PX', wholeMs(ttlMs)]
      const condition = when === undefined ? [] : [when === 'absent' ? 'NX' : 'XX']
      const command = () => commands.call('SET', [prefix + key, value, ...expiry, ...condition])
      if ((await ask(command)) === 'OK') return true
      // NX does not say of what type the value is.
      return when === 'absent' && (await get(key)) === undefined && (await ask(command)) === 'OK'
    },
    async delete(key, when) {
      if (when !== undefined) return await typed(key, () => deleteInRedis(commands, prefix + key, when.is))
      return (await ask(() => commands.del(prefix + key))) > 0
    },
    async touch(key, ttlMs) {
      const ms = wholeMs(ttlMs)
      return (await ask(() => commands.pexpire(prefix + key, ms))) > 0
    },
    async count(key, by, ttlMs) {
      const ms = wholeMs(ttlMs)
      // Only the first call sets the end of the counter.
      const commandsOf = () =>
        commands
          .multi()
          .set(prefix + key, '0', 'PX', ms, 'NX')
          .incrby(prefix + key, by)
      // INCRBY has no other plain ERR than a value that is no number, or one too large.
      return Number(await typed(key, () => transaction(commandsOf(), 1), ['WRONGTYPE', 'ERR']))
    },
    lease: (key, request) => typed(key, () => leaseInRedis(commands, prefix + key, request)),
    async append(key, entry, { ttlMs, keep }) {
      const name = prefix + key
      const ms = wholeMs(ttlMs)
      const commandsOf = () => commands.multi().rpush(name, entry).ltrim(name, -keep, -1).pexpire(name, ms)
      await typed(key, () => transaction(commandsOf(), 0))
    },
    entries: (key) => typed(key, () => commands.lrange(prefix + key, 0, -1)),
    async addMember(key, member, { ttlMs, from }) {
      const ms = wholeMs(ttlMs)
      await typed(key, () => addMemberInRedis(commands, prefix + key, member, { ttlMs: ms, from }))
    },
    removeMember: async (key, member) => void (await typed(key, () => commands.zrem(prefix + key, member))),
    members: (key, page) => typed(key, () => membersInRedis(commands, prefix + key, page)),
    async publish(channel, message, { isBulk = false } = {}) {
      return await ask(() => publish(isBulk ? bulk : commands, prefix + channel, message))
    },
    async subscribe(channel, listener) {
      const name = prefix + channel
      const stop = listeners.add(name, listener)
      if (messages.status === 'ready')
        await messages.subscribe(name).catch((error: unknown) => link.drop(reasonOf(error)))
      const notLeft = (error: unknown): void => log.debug({ reason: reasonOf(error) }, 'Redis channel not left')
      const leave = async (): Promise<unknown> =>
        messages.status === 'ready' && (await messages.unsubscribe(name).catch(notLeft))
      return () => stop(leave)
    },
    onLost: link.onLost,
    get live() {
      return link.live
    },
    shared: true,
    lasting: true,
    ping: async () => void (await ask(() => commands.ping())),
    async close() {
      if (closed) return
      closed = true
      link.close()
      for (const result of await Promise.allSettled([commands, bulk, messages].map((each) => each.quit()))) {
        if (result.status === 'rejected') log.debug({ reason: reasonOf(result.reason) }, 'Redis did not say goodbye')
      }
      for (const each of [commands, bulk, messages]) if (each.status !== 'end') each.disconnect()
    }
  }
}

/** Finds out whether messages arrive: subscribes again on every new connection, and pings it at intervals. */
function watchMessages(
  messages: Redis,
  listeners: ReturnType<typeof createChannelListeners>,
  heartbeatMs: number,
  log: Log
) {
  const lostListeners: Array<() => void> = []
  let subscribed = false
  let restores = 0
  let beating = false
  let closed = false

  const tellLost = (): void => {
    for (const listener of lostListeners) guarded(log, listener)
  }

  function drop(reason: string): void {
    restores += 1 // A restore under way belongs to the connection that just failed.
    if (!subscribed) return
    subscribed = false
    if (closed) return
    log.warn({ reason }, 'messages of Redis are cut off; local copies are not trusted')
    tellLost()
  }

  async function restore(): Promise<void> {
    restores += 1
    const mine = restores
    const names = listeners.names()
    try {
      if (names.length > 0) await messages.subscribe(...names)
    } catch (error) {
      // `live` stays false; the heartbeat or the next connection tries again.
      log.warn({ reason: reasonOf(error) }, 'Redis channels cannot be subscribed to; it is retried')
      return
    }
    if (mine !== restores || messages.status !== 'ready' || closed) return
    // Again, although the loss was reported: what was read in the gap may be out of date.
    tellLost()
    subscribed = true
  }

  async function beat(): Promise<void> {
    if (beating || closed || messages.status !== 'ready') return
    beating = true
    try {
      if (!subscribed) await restore()
      else await messages.ping()
    } catch (error) {
      drop(reasonOf(error))
    } finally {
      beating = false
    }
  }

  messages.on('ready', () => void restore())
  messages.on('close', () => drop('connection closed'))
  const heartbeat = every(steadyClock, heartbeatMs, () => void beat())

  return {
    drop,
    check: () => void beat(),
    get live() {
      return subscribed && !closed && messages.status === 'ready'
    },
    onLost(listener: () => void) {
      lostListeners.push(listener)
    },
    close() {
      closed = true
      heartbeat.close()
    }
  }
}

/** Warns of settings that make Redis lose sessions early. Best effort: a managed Redis may forbid these commands. */
async function advise(commands: Redis | Cluster, clock: { now(): number }, log: Log): Promise<void> {
  try {
    const policy = /^maxmemory_policy:(\S+)/m.exec(await commands.info('memory'))?.[1]
    if (policy !== undefined && policy !== 'noeviction') {
      log.warn({ policy }, 'Redis may evict sessions before their time: set maxmemory-policy to noeviction')
    }
    const sent = clock.now()
    const [seconds, micros] = await commands.time()
    const skewMs = Math.round(Number(seconds) * 1000 + Number(micros) / 1000 - (sent + clock.now()) / 2)
    if (Math.abs(skewMs) > 2_000)
      log.warn({ skewMs }, 'the clocks of this machine and of Redis differ: set both by NTP')
  } catch (error) {
    log.debug({ reason: reasonOf(error) }, 'Redis does not say how it is set up')
  }
}
