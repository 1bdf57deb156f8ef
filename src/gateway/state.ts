// What all phases of the composition share: the options of the gateway, its clocks, and what changes while it runs.

import type { Snapshot } from '../config/snapshot.ts'
import type { ServerAddress } from '../http/headers.ts'
import type { MemoryAccount } from '../limits/memory.ts'
import type { Log } from '../observe/log.ts'
import type { Store } from '../store/port.ts'
import { steadyClock, wallClock } from '../time/clock.ts'
import type { WorkerProcess } from '../workers/messages.ts'

interface GatewayOverrides {
  readonly keepAliveMs?: number
  readonly parkedMs?: number
  readonly store?: Store
  readonly memory?: MemoryAccount
  readonly nameServers?: readonly string[]
}

export interface GatewayOptions {
  readonly log: Log
  readonly version: string
  /** What stdio children may inherit from (a few harmless names only; the rest comes from the configuration). */
  readonly env: Readonly<Record<string, string | undefined>>
  /** It is one of several processes on one port. */
  readonly worker?: WorkerProcess | undefined
  /** Replaced in tests, at the seams only. */
  readonly overrides?: GatewayOverrides
}

export interface GatewayState {
  /** The configuration of the file. */
  file: Snapshot
  /** The same with what the admin API has made. */
  snapshot: Snapshot
  /** undefined: the gateway does not listen yet. */
  address: ServerAddress | undefined
  /** Not ready any more, but every request that still comes is served. */
  leaving: boolean
  /** Requests are refused. */
  draining: boolean
}

export const newState = (initial: Snapshot): GatewayState => ({
  file: initial,
  snapshot: initial,
  address: undefined,
  leaving: false,
  draining: false
})

/** `clock` measures durations, `wall` tells the time of day. */
export const clocks = { clock: steadyClock, wall: wallClock }
