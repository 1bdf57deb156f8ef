// Open connections by definition and scope: connects once for whoever asks at the same time, closes what is idle, leaves an upstream
// that fails alone for a while. It knows a scope as an opaque string, and nobody behind it.

import { GatewayError } from '../protocol/errors.ts'
import { createBackoffs } from './backoff.ts'
import { within } from './clock.ts'
import { counted } from './counted.ts'
import { Down } from './endings.ts'
import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { TenantId, UpstreamName } from '../protocol/ids.ts'
import type { Handshake, Upstream, UpstreamEvents } from '../protocol/seams.ts'
import type { Clock, Timer } from './clock.ts'
import type { Connector } from './connect.ts'
import type { Use } from './process.ts'

export interface Health {
  readonly upstream: UpstreamName
  readonly tenant: TenantId
  readonly state: 'idle' | 'connecting' | 'ready' | 'backoff'
  readonly connections: number
  readonly failures: number
  readonly lastError?: string
  /** Milliseconds since the epoch. */
  readonly retryAt?: number
}

export interface Pool {
  /**
   * The connection of this definition and scope, the same object as long as it lives. `handshake`, `events` and `use` (default
   * `calls`) count when it is opened now. A failure of a connection for `calls` counts for its scope only, unless nobody was reached at all.
   * @throws GatewayError upstream_unavailable (data.retryAfterMs while it is left alone), upstream_protocol, too_many, shutting_down
   */
  acquire (definition: UpstreamDefinition, scope: string, handshake: Handshake, events: UpstreamEvents, use?: Use): Promise<Upstream>
  /** Somebody still listens: the connections of the scope, or that to one upstream, are not idle. */
  touch (scope: string, only?: UpstreamDefinition): void
  /** Closes all connections of the scope. */
  release (scope: string): Promise<void>
  /** Closes, once their calls have ended, the connections whose definition is not among these. */
  retain (hashes: ReadonlySet<string>): void
  health (): Health[]
  /** Closes all, in parallel, in bounded time. */
  close (): Promise<void>
  destroy (): void
}

export interface PoolOptions {
  readonly connector: Connector
  readonly clock: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: Log
}

interface Entry {
  readonly definition: UpstreamDefinition
  readonly scope: string
  readonly stop: AbortController
  readonly ready: Promise<Upstream>
  /** The connector's own object, once it is open; `ready` gives out the counted one. */
  connection: Upstream | undefined
  connectedAt: number
  touchedAt: number
  inFlight: number
  retired: boolean
}

const longestSweepMs = 5_000
/** Longer than the three graces of a child process together. */
const closeMs = 7_000

export function createPool ({ connector, clock, random, log }: PoolOptions): Pool {
  const entries = new Map<string, Entry>()
  /** Entries that are no longer given out but not closed yet. */
  const leaving = new Set<Entry>()
  const backoffs = createBackoffs({ clock, random })
  let sweepMs = longestSweepMs
  let sweeper: Timer | undefined
  let closed = false

  const keyOf = (definition: UpstreamDefinition, scope: string): string => `${definition.hash}\n${scope}`

  function forget (entry: Entry): void {
    const key = keyOf(entry.definition, entry.scope)
    if (entries.get(key) === entry) entries.delete(key)
  }

  function open (definition: UpstreamDefinition, scope: string, handshake: Handshake, events: UpstreamEvents, use: Use | undefined): Entry {
    const stop = new AbortController()
    const watched: UpstreamEvents = {
      listChanged: (kind) => events.listChanged(kind),
      notification: (notification) => events.notification(notification),
      ask: (request, options) => events.ask(request, options),
      closed (reason) {
        forget(entry)
        leaving.delete(entry)
        backoffs.died(keyOf(definition, scope), clock.now() - entry.connectedAt, reason)
        events.closed(reason)
      }
    }
    const ready = connector.connect(definition, handshake, watched, stop.signal, use).then((upstream) => {
      entry.connectedAt = entry.touchedAt = clock.now()
      entry.connection = upstream
      return counted(upstream, {
        began: () => { entry.inFlight++ },
        ended () {
          entry.inFlight--
          entry.touchedAt = clock.now()
          if (entry.retired && entry.inFlight === 0) void shut(entry)
        },
        close: () => shut(entry),
        destroyed () {
          forget(entry)
          leaving.delete(entry)
        }
      })
    }, (error: unknown) => {
      forget(entry)
      // Reaching one of our own limits, or giving up, is no fault of the upstream.
      if (!(error instanceof GatewayError) || (error.code !== 'cancelled' && error.code !== 'too_many')) {
        // The listing connection declares nothing, and is nobody's own.
        const failures = backoffs.failed(definition, keyOf(definition, scope), error as Error, use === 'listing' || error instanceof Down)
        // No warning: whoever asked is told, and the keeper of the listing warns once for all.
        log.debug({ err: error, upstream: definition.name, tenant: definition.tenant, failures }, 'cannot connect to the upstream')
      }
      throw error
    })
    const now = clock.now()
    const entry: Entry = { definition, scope, stop, ready, connection: undefined, connectedAt: now, touchedAt: now, inFlight: 0, retired: false }
    return entry
  }

  /** Closes one connection, or gives up connecting. Never rejects. */
  async function shut (entry: Entry): Promise<void> {
    forget(entry)
    leaving.add(entry)
    entry.stop.abort()
    try {
      await entry.ready
      await entry.connection?.close()
    } catch (err) {
      // It never opened, or would not close: either way it is out of use.
      log.debug({ err, upstream: entry.definition.name }, 'a connection ended while it was being closed')
    } finally {
      leaving.delete(entry)
    }
  }

  function sweep (): void {
    const now = clock.now()
    for (const entry of entries.values()) {
      if (entry.connection === undefined) continue
      backoffs.lives(entry.definition, keyOf(entry.definition, entry.scope), now - entry.connectedAt)
      if (entry.inFlight === 0 && now - entry.touchedAt >= entry.definition.idleMs) void shut(entry)
    }
    backoffs.sweep()
    sweeper?.refresh()
  }

  /** One timer for all, at least twice as fast as the shortest idle time. */
  function watch (definition: UpstreamDefinition): void {
    const wanted = Math.max(10, Math.min(sweepMs, Math.floor(definition.idleMs / 2)))
    if (sweeper !== undefined && wanted === sweepMs) return
    sweeper?.close()
    sweepMs = wanted
    sweeper = clock.timer(sweepMs, sweep)
    sweeper.unref()
  }

  function stopAll (): Entry[] {
    closed = true
    sweeper?.close()
    return [...entries.values(), ...leaving]
  }

  return {
    acquire (definition, scope, handshake, events, use) {
      if (closed) return Promise.reject(new GatewayError('shutting_down', 'The gateway is stopping. Retry; another process will answer.'))
      const key = keyOf(definition, scope)
      let entry = entries.get(key)
      if (entry === undefined) {
        const resting = backoffs.refusal(definition, key)
        if (resting !== undefined) return Promise.reject(resting)
        entry = open(definition, scope, handshake, events, use)
        entries.set(key, entry)
        watch(definition)
      }
      entry.touchedAt = clock.now()
      return entry.ready
    },

    touch (scope, only) {
      const now = clock.now()
      for (const entry of entries.values()) if (entry.scope === scope && (only === undefined || entry.definition.hash === only.hash)) entry.touchedAt = now
    },

    async release (scope) {
      await Promise.all([...entries.values()].filter((entry) => entry.scope === scope).map(shut))
    },

    retain (hashes) {
      backoffs.retain(hashes)
      for (const entry of entries.values()) {
        if (hashes.has(entry.definition.hash)) continue
        if (entry.inFlight === 0) {
          void shut(entry)
          continue
        }
        // Calls keep the configuration they began with.
        forget(entry)
        leaving.add(entry)
        entry.retired = true
      }
    },

    health () {
      const now = clock.now()
      return [...backoffs.all()].map(({ definition, backoff }) => {
        const ours = [...entries.values()].filter((entry) => entry.definition.hash === definition.hash)
        const ready = ours.filter((entry) => entry.connection !== undefined).length
        const resting = backoff.retryAt > now
        return {
          upstream: definition.name,
          tenant: definition.tenant,
          state: ready > 0 ? 'ready' : ours.length > 0 ? 'connecting' : resting ? 'backoff' : 'idle',
          connections: ready,
          failures: backoff.failures,
          ...backoff.lastError === undefined ? {} : { lastError: backoff.lastError },
          ...resting ? { retryAt: backoff.retryAt } : {}
        } as const
      })
    },

    async close () {
      const all = stopAll()
      await within(clock, closeMs, Promise.all(all.map(shut)))
    },

    destroy () {
      const reason = new GatewayError('shutting_down', 'The gateway is stopping.')
      for (const entry of stopAll()) {
        forget(entry)
        leaving.delete(entry)
        entry.stop.abort()
        entry.connection?.destroy(reason)
      }
    }
  }
}
