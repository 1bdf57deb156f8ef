// One connection to Redis, set up so that a call fails at once rather than waits, and so that the connection heals by
// itself.

import { Redis } from 'ioredis'
import { backoffMs, settledWithin, steadyClock } from '../time/clock.ts'
import type { Log } from '../observe/log.ts'

// A call of the store has one second in all (port.ts); one command has half of it.
const commandMs = 500
const silentSocketMs = 1_000
const connectMs = 1_000
const longestPauseMs = 1_000

/**
 * @param url redis:// or rediss://, with user, password and database number where needed
 * @param role for the log: which of the connections it is
 * @throws TypeError on an address that cannot be used; the message does not repeat it, for it may hold a password
 */
export function openRedisConnection(url: string, role: string, log: Log): Redis {
  const connection = new Redis({
    ...addressOf(url),
    connectionName: `gatehouse-${role}`,
    connectTimeout: connectMs,
    commandTimeout: commandMs,
    socketTimeout: silentSocketMs,
    // A server that hangs does not answer QUIT either.
    disconnectTimeout: 100,
    retryStrategy: (times) => backoffMs(times, { firstMs: 50, maxMs: longestPauseMs }),
    // Nothing is queued or sent twice: a caller that got `unavailable` may rely on nothing being written later.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // After a failover the old primary answers READONLY: the name leads to the new one only on a new connection.
    reconnectOnError: (error) => kindOf(error) === 'READONLY'
  })
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
  return connection
}

/** Resolves when the connection is ready or its first attempt has failed, within about a second either way. */
export async function firstAttempt(connection: Redis): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const events = ['ready', 'close', 'end']
  for (const event of events) connection.on(event, resolve)
  await settledWithin(steadyClock, connectMs, promise)
  for (const event of events) connection.off(event, resolve)
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

// Parsed here, because the library lets a query string override the settings above.
function addressOf(text: string) {
  const url = URL.parse(text)
  const database = url?.pathname.slice(1) ?? ''
  if (
    url === null ||
    !['redis:', 'rediss:'].includes(url.protocol) ||
    url.hostname === '' ||
    !/^\d*$/.test(database) ||
    url.search !== ''
  ) {
    throw new TypeError(
      'The address of the store must look like redis://[user:password@]host[:port][/database], or rediss:// for TLS.'
    )
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return {
    host,
    port: url.port === '' ? 6379 : Number(url.port),
    db: Number(database),
    ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
    ...(url.protocol === 'rediss:' ? { tls: {} } : {})
  }
}
