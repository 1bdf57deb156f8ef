// What the relays take from the process that they run in. Replaced in tests, so that time and randomness hold still.

import type { Log } from '../../observe/log.ts'
import type { Implementation } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'

export interface Runtime {
  /** For how long something lasts. */
  readonly clock: Clock
  /** The time of day, for what expires. */
  readonly wall: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  /** 128 random bits in base64url. */
  readonly newId: () => string
  /** What the gateway calls itself towards upstreams. */
  readonly clientInfo: Implementation
  readonly log: Log
}
