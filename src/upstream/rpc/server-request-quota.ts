// How much of what servers ask may wait for an answer. A request of a legacy server counts from when it comes until it
// is answered or withdrawn, wherever it waits meanwhile; input requests of a modern server are counted by relay/bridge.

import { createQuota } from '../../limits/limits.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'

/**
 * In bytes as `limits/json-size.ts` counts them: of one request, and of all that wait on a connection (of a modern
 * server: in a session), of an upstream, of a tenant, and in the process.
 */
export interface ServerRequestLimits {
  readonly request: number
  readonly connection: number
  readonly upstream: number
  readonly tenant: number
  readonly all: number
}

const MiB = 1024 * 1024
const defaultLimits: ServerRequestLimits = {
  request: MiB,
  connection: 4 * MiB,
  upstream: 8 * MiB,
  tenant: 16 * MiB,
  all: 64 * MiB
}

/** Of one connection, or of one session that a modern server asks. */
export interface ServerRequestQuota {
  /** Of a single request. */
  readonly maxBytes: number
  /** @returns what gives the bytes back, once; undefined where there are not so many left */
  take(bytes: number): (() => void) | undefined
}

export interface ServerRequestQuotas {
  /** @param holder whose requests count together; default: a new connection */
  open(definition: Pick<UpstreamDefinition, 'tenant' | 'name'>, holder?: string): ServerRequestQuota
  /** Connections, upstreams, tenants and the process, as far as requests of them wait. */
  readonly size: number
}

/** One for each process. */
export function createServerRequestQuotas(limits: ServerRequestLimits = defaultLimits): ServerRequestQuotas {
  const quota = createQuota()
  let connections = 0
  return {
    open({ tenant, name }, holder = `connection ${++connections}`) {
      const accounts = [
        [holder, limits.connection],
        [`upstream ${tenant} ${name}`, limits.upstream],
        [`tenant ${tenant}`, limits.tenant],
        ['all', limits.all]
      ] as const
      return { maxBytes: limits.request, take: (bytes) => quota.take(bytes, accounts) }
    },
    get size() {
      return quota.size
    }
  }
}
