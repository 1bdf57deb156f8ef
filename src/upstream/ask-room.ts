// How much of what servers ask may wait for an answer. Wherever a question of an older server waits, with a session, a parked call or a
// task, it came in by `asks.ts`, and is counted until it leaves there; what newer ones ask, `relay/fulfil-asks` counts.

import { createShares } from '../protocol/shares.ts'
import type { UpstreamDefinition } from '../config/snapshot.ts'

/** In bytes as `protocol/weight` counts them: of one question, and of all that wait on a connection (of a newer server: in a session), of an upstream, of a tenant, and in all. */
export interface AskLimits {
  readonly one: number
  readonly connection: number
  readonly upstream: number
  readonly tenant: number
  readonly all: number
}

const MiB = 1024 * 1024
const defaultLimits: AskLimits = { one: MiB, connection: 4 * MiB, upstream: 8 * MiB, tenant: 16 * MiB, all: 64 * MiB }

/** That of one connection, or of whoever else asks or is asked. */
export interface AskRoom {
  /** What a single question may weigh. */
  readonly one: number
  /** @returns what gives it back, once; undefined where there is no room left */
  take (weight: number): (() => void) | undefined
}

export interface AskRooms {
  /** @param holder all that has the same name counts together, as a connection does; default a name of its own */
  open (definition: Pick<UpstreamDefinition, 'tenant' | 'name'>, holder?: string): AskRoom
  /** Accounts that have anything: connections, upstreams, tenants, and the process. */
  readonly size: number
}

/** One for each process. */
export function createAskRooms (limits: AskLimits = defaultLimits): AskRooms {
  const shares = createShares()
  let connections = 0
  return {
    open ({ tenant, name }, holder = `connection ${++connections}`) {
      const accounts = [
        [holder, limits.connection],
        [`upstream ${tenant} ${name}`, limits.upstream],
        [`tenant ${tenant}`, limits.tenant],
        ['all', limits.all]
      ] as const
      return { one: limits.one, take: (weight) => shares.take(weight, accounts) }
    },
    get size () { return shares.size }
  }
}
