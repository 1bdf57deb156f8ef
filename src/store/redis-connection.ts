// The connections to Redis: to one server, to the primary that Sentinels name, or to a cluster. A call fails at once
// rather than waits, and they heal by themselves.

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type ChainableCommander, Cluster, Redis } from 'ioredis'
import { redisAddress, redisAddressForms, type RedisAddress } from '../config/redis-address.ts'
import { backoffMs, patientTimer, steadyClock, type Timer } from '../time/clock.ts'
import { nextTurn } from '../time/turns.ts'
import type { Log } from '../observe/log.ts'

// A call of the store has one second in all (port.ts); one command has half of it: see `patientConnection`.
const commandMs = 500
const silentSocketMs = 1_000
const connectMs = 1_000
const longestPauseMs = 1_000

/** Nothing is queued or sent twice: a caller that got `unavailable` may rely on nothing being written later. */
const settingsOf = ({ username, password, tls }: RedisAddress, role: string) => ({
  connectionName: `gatehouse-${role}`,
  connectTimeout: connectMs,
  // A server that hangs does not answer QUIT either.
  disconnectTimeout: 100,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  ...(username === undefined ? {} : { username }),
  ...(password === undefined ? {} : { password }),
  ...(tls ? { tls: {} } : {})
})
const retryMs = (times: number): number => backoffMs(times, { firstMs: 50, maxMs: longestPauseMs })

interface RedisConnections {
  readonly commands: Redis | Cluster
  /** For long messages to others. */
  readonly bulk: Redis | Cluster
  /** Subscribed to channels. */
  readonly messages: Redis
}

/**
 * @throws TypeError on an address that cannot be used; the message does not repeat it, for it may hold a password
 */
export function openRedis(url: string, log: Log): RedisConnections {
  const address = redisAddress(url)
  if (address === undefined) throw new TypeError(`The address of the store must look like ${redisAddressForms}.`)
  const opened = (role: string): Redis | Cluster =>
    address.kind === 'cluster' ? clusterOf(address, role) : connectionOf(address, role)
  const [commands, bulk, messages] = [opened('commands'), opened('bulk'), connectionOf(address, 'messages')]
  logAway(commands, 'commands', log)
  logAway(bulk, 'bulk', log)
  logAway(messages, 'messages', log)
  return { commands, bulk, messages }
}

/**
 * Connects to the server, to the primary that Sentinels name, or to one node of a cluster: a message reaches all of
 * them.
 */
function connectionOf(address: RedisAddress, role: string): Redis {
  const { kind, nodes, name, database, tls, sentinelUsername, sentinelPassword } = address
  let attempts = 0
  const place =
    kind === 'sentinel'
      ? {
          sentinels: [...nodes],
          name,
          sentinelRetryStrategy: retryMs,
          sentinelCommandTimeout: commandMs,
          ...(sentinelUsername === undefined ? {} : { sentinelUsername }),
          ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
          ...(tls ? { enableTLSForSentinelMode: true, sentinelTLS: {} } : {})
        }
      : { ...nodes[0] }
  const connection = new Redis({
    ...settingsOf(address, role),
    ...place,
    db: database,
    retryStrategy(times) {
      // Another node of the cluster: this one may be gone for good.
      if (kind === 'cluster') Object.assign(connection.options, nodes[++attempts % nodes.length])
      return retryMs(times)
    },
    enableOfflineQueue: false,
    // After a failover the old primary answers READONLY: the name leads to the new one only on a new connection.
    reconnectOnError: (error) => kindOf(error) === 'READONLY'
  })
  return patientConnection(connection)
}

/**
 * Sends the commands of one turn of the event loop together: a system call for each costs more than the command. Gives
 * up those that have no answer in time, and the connection where nothing at all comes. The time in which this process
 * had no processor says nothing of Redis, and does not count; what came meanwhile is read first.
 */
function patientConnection(connection: Redis): Redis {
  const send = connection.sendCommand.bind(connection)
  let sent: Promise<void> | undefined
  /** Resolves when what is sent in this turn has left. */
  const sentTogether = (): Promise<void> => {
    const stream: { cork(): void; uncork(): void } | undefined = connection.stream
    stream?.cork()
    return nextTurn().then(() => {
      sent = undefined
      stream?.uncork()
    })
  }
  const silent = (stream: Socket, bytesBefore: number): void => {
    patientTimer(steadyClock, silentSocketMs - commandMs, () => {
      void nextTurn().then(() => {
        if (stream.bytesRead === bytesBefore) stream.destroy(new Error('Redis sends nothing'))
      })
    })
  }
  connection.sendCommand = (command, ...more) => {
    let timer: Pick<Timer, 'close'> | undefined
    let isSettled = false
    const settled = (): void => {
      isSettled = true
      timer?.close()
    }
    command.promise.then(settled, settled)
    sent ??= sentTogether()
    void sent.then(() => {
      if (isSettled) return
      // A connection that is being made has none yet.
      const stream = connection.stream as Socket | undefined
      const bytesBefore = stream?.bytesRead
      timer = patientTimer(steadyClock, commandMs, () => {
        void nextTurn().then(() => {
          if (isSettled) return
          command.reject(new Error('Command timed out'))
          if (stream !== undefined && bytesBefore !== undefined) silent(stream, bytesBefore)
        })
      })
    })
    return send(command, ...more)
  }
  return connection
}

function clusterOf(address: RedisAddress, role: string): Cluster {
  const cluster = new Cluster([...address.nodes], {
    redisOptions: settingsOf(address, role),
    enableOfflineQueue: false,
    clusterRetryStrategy: retryMs,
    // What may have been executed is not sent again; what a node has refused, since another one has the key, is.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 0,
    maxRedirections: 3,
    slotsRefreshTimeout: connectMs,
    // Nodes that name themselves by host are reached by that name: their certificates are for it.
    dnsLookup: (host, done) => done(null, host)
  })
  // At once, and not with the first command: all that came while it connects would be refused.
  return cluster.on(
    '+node',
    (node: Redis) =>
      void patientConnection(node)
        .connect()
        .catch(() => {})
  )
}

/**
 * In a cluster, always by the same node, as long as that can be reached: messages that go through different nodes
 * overtake each other on their way to whoever listens at a third one.
 * @returns how many listen; of a cluster at least one, because a node knows only its own
 */
export async function publish(commands: Redis | Cluster, channel: string, message: string): Promise<number> {
  if (!(commands instanceof Cluster)) return await commands.publish(channel, message)
  const nameOf = ({ options: { host, port } }: Redis): string => `${host}:${port}`
  const nodes = commands
    .nodes('master')
    .filter(({ status }) => status === 'ready')
    .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
  const hash = Buffer.from(channel).reduce((sum, byte) => (sum * 31 + byte) >>> 0, 0)
  return Math.max(1, await (nodes[hash % nodes.length] ?? commands).publish(channel, message))
}

/** All commands or none: a log made without its end would stay for good. @returns the reply at this place */
export async function transaction(commands: ChainableCommander, at: number): Promise<unknown> {
  const [error, reply] = (await commands.exec())?.[at] ?? [new Error('transaction discarded')]
  if (error !== null) throw error
  return reply
}

function logAway(connection: Redis | Cluster, role: string, log: Log): void {
  let away = false
  connection.on('error', (error: unknown) => {
    if (!away)
      log.warn({ connection: role, reason: reasonOf(error) }, 'Redis cannot be reached; the connection is retried')
    away = true
  })
  connection.on('ready', () => {
    if (away) log.info({ connection: role }, 'Redis is back')
    away = false
  })
}

/**
 * Resolves when the connection is ready, when an attempt was refused, or when this process could run for about a second
 * without either. An attempt that was given up because nothing came in time is no refusal: a process that had no
 * processor while it started has not heard the answer, and tries again at once.
 */
export async function firstAttempt(connection: Redis | Cluster): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const events = ['ready', 'end'] as const
  const refused = (error: unknown): void => {
    if ((error as NodeJS.ErrnoException | undefined)?.code !== 'ETIMEDOUT') resolve()
  }
  connection.on('error', refused)
  for (const event of events) connection.on(event, resolve)
  await withinPatience(promise)
  connection.off('error', refused)
  for (const event of events) connection.off(event, resolve)
  if (!(connection instanceof Cluster)) return
  const nodes = connection.nodes('master').filter(({ status }) => status !== 'ready')
  await withinPatience(Promise.all(nodes.map((node) => once(node, 'ready'))))
}

async function withinPatience(work: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>()
  const timer = patientTimer(steadyClock, connectMs, over.resolve)
  await Promise.race([work, over.promise]).catch(() => {})
  timer.close()
}

/**
 * Why a command or a connection failed, fit for a log. Error objects of ioredis carry the command with its arguments,
 * and replies may repeat them: keys, values and, for AUTH, the password. None of that is returned.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return kindOf(error) ?? (error as NodeJS.ErrnoException).code ?? error.message
}

/**
 * The first word of an error reply is its kind (Redis serialization protocol, "Simple errors"), such as NOAUTH, OOM or
 * READONLY.
 */
function kindOf(error: Error): string | undefined {
  return error.name === 'ReplyError' ? error.message.split(' ', 1)[0] : undefined
}
