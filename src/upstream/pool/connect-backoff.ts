// How long a failed upstream is left alone, by every caller or by one scope. Callers decide what their own connections
// declare, and so whether these fail: that counts for their scope only, and no other caller is told why.

import { GatewayError } from '../../protocol/messages.ts'
import { backoffMs, type Clock } from '../../time/clock.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'

export interface BackoffState {
  failures: number
  /** No attempt before this time. */
  retryAt: number
  lastError: string | undefined
}

export interface UpstreamBackoff {
  readonly definition: UpstreamDefinition
  readonly backoff: Readonly<BackoffState>
}

/** `key` stands for a definition and one scope of it. */
export interface ConnectBackoff {
  /** Of what counts for all callers. */
  all(): Iterable<UpstreamBackoff>
  /** Why no connection is tried now: upstream_unavailable with data.retryAfterMs. Undefined: it may be. */
  refusal(definition: UpstreamDefinition, key: string): GatewayError | undefined
  /**
   * A connection could not be opened.
   * @param forAll the upstream fails so for every caller
   * @returns how many failures that makes in a row
   */
  failed(definition: UpstreamDefinition, key: string, error: Error, forAll: boolean): number
  /** An open connection ended by itself. */
  ended(key: string, ageMs: number, reason: Error): void
  /** An open connection has reached this age. */
  alive(definition: UpstreamDefinition, key: string, ageMs: number): void
  /** Forgets old failures of scopes. */
  sweep(): void
  retain(hashes: ReadonlySet<string>): void
}

export interface ConnectBackoffOptions {
  readonly clock: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  /** Callers make scopes, so they are limited: the one that failed least recently is forgotten, and may try early. */
  readonly maxScopes?: number
}

const times = { firstMs: 1_000, maxMs: 60_000 }
/** A connection that ends younger than this never really worked. */
const provenMs = 5_000
/** What failed longer ago is no pattern. */
const memoryMs = 120_000

const noFailures = (): BackoffState => ({ failures: 0, retryAt: 0, lastError: undefined })

export function createConnectBackoff({ clock, random, maxScopes = 10_000 }: ConnectBackoffOptions): ConnectBackoff {
  /** By hash of the definition. */
  const upstreams = new Map<string, { readonly definition: UpstreamDefinition; readonly backoff: BackoffState }>()
  /** By key, the least recent failure first. */
  const scopes = new Map<string, BackoffState>()

  function ofUpstream(definition: UpstreamDefinition): BackoffState {
    let found = upstreams.get(definition.hash)
    if (found === undefined) upstreams.set(definition.hash, (found = { definition, backoff: noFailures() }))
    return found.backoff
  }

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
    all: () => upstreams.values(),

    refusal(definition, key) {
      const own = ofUpstream(definition)
      const scope = scopes.get(key) ?? noFailures()
      const forAll = own.retryAt >= scope.retryAt
      const { retryAt, lastError } = forAll ? own : scope
      const retryAfterMs = Math.ceil(retryAt - clock.now())
      return retryAfterMs > 0 ? backoffError(definition, retryAfterMs, lastError, forAll) : undefined
    },

    failed: (definition, key, error, forAll) => note(forAll ? ofUpstream(definition) : ofScope(key), error),

    ended(key, ageMs, reason) {
      if (ageMs >= provenMs) return void scopes.delete(key)
      const isFirst = !scopes.has(key)
      const state = ofScope(key)
      if (!isFirst) return void note(state, reason)
      // The first early end may be an accident: the next call tries at once.
      state.retryAt = clock.now()
      state.lastError = reason.message
    },

    alive(definition, key, ageMs) {
      if (ageMs < provenMs) return
      Object.assign(ofUpstream(definition), noFailures())
      scopes.delete(key)
    },

    sweep() {
      const now = clock.now()
      for (const [key, { retryAt }] of scopes) if (now - retryAt > memoryMs) scopes.delete(key)
    },

    retain(hashes) {
      for (const hash of upstreams.keys()) if (!hashes.has(hash)) upstreams.delete(hash)
    }
  }
}

function backoffError(
  { name }: UpstreamDefinition,
  retryAfterMs: number,
  lastError: string | undefined,
  forAll: boolean
): GatewayError {
  const state = forAll ? 'is down' : 'failed when it was connected for this client'
  const last = lastError === undefined ? '' : ` Its last error: ${lastError}`
  return new GatewayError(
    'upstream_unavailable',
    `Upstream ${name} ${state}; it is tried again in ${Math.ceil(retryAfterMs / 1000)} s. Retry then.${last}`,
    { data: { upstream: name, retryAfterMs } }
  )
}
