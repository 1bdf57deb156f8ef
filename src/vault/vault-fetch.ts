// Requests to authorization servers and to what upstreams name: to origins that an operator wrote freely, elsewhere as
// the guard allows.

import { createFetch, type Fetch } from '../auth/fetch.ts'
import type { EgressGuard } from '../auth/egress-guard.ts'

const maxBytes = 128 * 1024
const timeoutMs = 10_000

export type VaultFetch = ReturnType<typeof createVaultFetch>

/** @returns the requests of one upstream of a tenant. @param written URLs of its configuration */
export function createVaultFetch(
  guard: EgressGuard
): (tenant: string, written: ReadonlyArray<string | undefined>) => Fetch {
  const free = createFetch({ maxBytes, timeoutMs })
  return (owner, written) => {
    const guarded = createFetch({ maxBytes, timeoutMs, guard, owner })
    const origins = new Set(written.flatMap((url) => (url === undefined ? [] : new URL(url).origin)))
    return (url, init) => (origins.has(new URL(url).origin) ? free : guarded)(url, init)
  }
}
