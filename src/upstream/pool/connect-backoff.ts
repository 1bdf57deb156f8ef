// How long a failed upstream is left alone, by every caller or by one scope. Callers decide what their own connections
// declare, and so whether these fail: that counts for their scope only, and no other caller is told why.

import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, backoffMs } from '../../time/clock.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'

interface BackoffState {
  failures: number
  /** No attempt before this time. */
  retryAt: number
  lastError: string | undefined
}

const times = { firstMs: 1_000, maxMs: 60_000 }
/** A connection that ends younger than this never really worked. */
const provenMs = 5_000
/** What failed longer ago is no pattern. */
const memoryMs = 120_000

const noFailures = (): BackoffState => ({ failures: 0, retryAt: 0, lastError: undefined })

/**
 * A `key` stands for a definition and one scope of it.
 * @param random between 0 and 1
 * @param maxScopes callers make scopes: the one that failed least recently is forgotten, and may try early
 */
export function createConnectBackoff(clock: Clock, random: () => number, maxScopes = 10_000) {
  /** By hash of the definition. */
  const upstreams = new Map<string, BackoffState>()
  /** By key, the least recent failure first. */
  const scopes = new Map<string, BackoffState>()

  function ofScope(key: string): BackoffState {
    const state = scopes.get(key) ?? noFailures()
    scopes.delete(key)
    scopes.set(key, state)
    const [oldest = key] = scopes.size > maxScopes ? scopes.keys() : []
    if (oldest !== key) scopes.delete(oldest)
    return state
  }

  /** Those of one wave count once: a hundred sessions that fail together are one failure of the upstream. */
  function note(state: BackoffState, { message }: Error): number {
    const now = clock.now()
    state.lastError = message
    if (now >= state.retryAt) state.retryAt = now + backoffMs(state.failures++, { ...times, random })
    return state.failures
  }

  return {
    /** Why no connection is tried now: upstream_unavailable with data.retryAfterMs. Undefined: it may be. */
    refusal({ name, hash }: UpstreamDefinition, key: string): GatewayError | undefined {
      const own = upstreams.get(hash) ?? noFailures()
      const scope = scopes.get(key) ?? noFailures()
      const forAll = own.retryAt >= scope.retryAt
      const { retryAt, lastError } = forAll ? own : scope
      const retryAfterMs = Math.ceil(retryAt - clock.now())
      if (retryAfterMs <= 0) return undefined
      const state = forAll ? 'is down' : 'failed when it was connected for this client'
      const last = lastError === undefined ? '' : ` Its last error: ${lastError}`
      return new GatewayError(
        'upstream_unavailable',
        `Upstream ${name} ${state}; it is tried again in ${Math.ceil(retryAfterMs / 1000)} s. Retry then.${last}`,
        { data: { upstream: name, retryAfterMs } }
      )
    },

    /**
     * A connection could not be opened.
     * @param forAll the upstream fails so for every caller
     * @returns how many failures that makes in a row
     */
    failed({ hash }: UpstreamDefinition, key: string, error: Error, forAll: boolean): number {
      if (!forAll) return note(ofScope(key), error)
      const state = upstreams.get(hash) ?? noFailures()
      upstreams.set(hash, state)
      return note(state, error)
    },

    /** An open connection ended by itself. */
    ended(key: string, ageMs: number, reason: Error): void {
      if (ageMs >= provenMs) return void scopes.delete(key)
      const isFirst = !scopes.has(key)
      const state = ofScope(key)
      if (!isFirst) return void note(state, reason)
      // The first early end may be an accident: the next call tries at once.
      state.retryAt = clock.now()
      state.lastError = reason.message
    },

    /** An open connection has reached this age. */
    alive({ hash }: UpstreamDefinition, key: string, ageMs: number): void {
      if (ageMs < provenMs) return
      upstreams.delete(hash)
      scopes.delete(key)
    },

    sweep(): void {
      const now = clock.now()
      for (const [key, { retryAt }] of scopes) if (now - retryAt > memoryMs) scopes.delete(key)
    },

    retain(hashes: ReadonlySet<string>): void {
      for (const hash of upstreams.keys()) if (!hashes.has(hash)) upstreams.delete(hash)
    }
  }
}
