// How long what failed is left alone: an upstream, for everybody, or one scope of it. Callers decide what their own connections declare, and
// so whether these fail: that counts for their scope only, and nobody else is told why.

import { GatewayError } from '../protocol/errors.ts'
import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Clock } from './clock.ts'

export interface Backoff {
  failures: number
  /** No attempt before this time. */
  retryAt: number
  lastError: string | undefined
}

/** Everywhere: `key` stands for a definition and one scope of it. */
export interface Backoffs {
  /** What counts for everybody. */
  all (): Iterable<{ readonly definition: UpstreamDefinition, readonly backoff: Readonly<Backoff> }>
  /** Why no connection is tried now: upstream_unavailable with data.retryAfterMs. Undefined: it may be. */
  refusal (definition: UpstreamDefinition, key: string): GatewayError | undefined
  /**
   * A connection could not be opened.
   * @param everybodys it says something of the upstream itself, whoever asked
   * @returns how many failures that makes in a row
   */
  failed (definition: UpstreamDefinition, key: string, error: Error, everybodys: boolean): number
  /** An open connection ended by itself. */
  died (key: string, ageMs: number, reason: Error): void
  /** An open connection is so old by now. */
  lives (definition: UpstreamDefinition, key: string, ageMs: number): void
  /** Forgets what is long ago. */
  sweep (): void
  retain (hashes: ReadonlySet<string>): void
}

export interface BackoffsOptions {
  readonly clock: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  /** Scopes are made by callers. Of more than so many, that which failed least recently is forgotten: it may try again early. */
  readonly maxScopes?: number
}

const firstMs = 1_000
const longestMs = 60_000
/** A connection that dies younger than this never really worked. */
const provenMs = 5_000
const memoryMs = 120_000 // What failed longer ago is no pattern.

export function createBackoffs ({ clock, random, maxScopes = 10_000 }: BackoffsOptions): Backoffs {
  /** By hash of the definition. */
  const upstreams = new Map<string, { readonly definition: UpstreamDefinition, readonly backoff: Backoff }>()
  /** By key. The least recent failure first. */
  const scopes = new Map<string, Backoff>()

  const fresh = (): Backoff => ({ failures: 0, retryAt: 0, lastError: undefined })

  function of (definition: UpstreamDefinition): Backoff {
    let found = upstreams.get(definition.hash)
    if (found === undefined) upstreams.set(definition.hash, found = { definition, backoff: fresh() })
    return found.backoff
  }

  function ofScope (key: string): Backoff {
    const backoff = scopes.get(key) ?? fresh()
    scopes.delete(key)
    scopes.set(key, backoff)
    const [oldest = key] = scopes.size > maxScopes ? scopes.keys() : []
    if (oldest !== key) scopes.delete(oldest)
    return backoff
  }

  /** Those of one wave count once: a hundred sessions that fail together are one failure of the upstream. */
  function note (backoff: Backoff, { message }: Error): number {
    const now = clock.now()
    backoff.lastError = message
    if (now < backoff.retryAt) return backoff.failures
    backoff.failures += 1
    const delay = Math.min(longestMs, firstMs * 2 ** Math.min(backoff.failures - 1, 10))
    // Replicas that lost the same upstream must not come back in step.
    backoff.retryAt = now + Math.min(longestMs, Math.round(delay * (1 + random() * 0.25)))
    return backoff.failures
  }

  return {
    all: () => upstreams.values(),

    refusal (definition, key) {
      const now = clock.now()
      const own = of(definition)
      const scope = scopes.get(key) ?? fresh()
      const everybodys = own.retryAt >= scope.retryAt
      const { retryAt, lastError } = everybodys ? own : scope
      return retryAt > now ? restingError(definition, Math.ceil(retryAt - now), lastError, everybodys) : undefined
    },

    failed: (definition, key, error, everybodys) => note(everybodys ? of(definition) : ofScope(key), error),

    died (key, ageMs, reason) {
      if (ageMs >= provenMs) return void scopes.delete(key)
      const before = scopes.has(key)
      const backoff = ofScope(key)
      if (before) return void note(backoff, reason)
      // The first early death may be an accident, so the next call tries at once; after that it is left alone for ever longer.
      backoff.retryAt = clock.now()
      backoff.lastError = reason.message
    },

    lives (definition, key, ageMs) {
      if (ageMs < provenMs) return
      Object.assign(of(definition), fresh())
      scopes.delete(key)
    },

    sweep () {
      const now = clock.now()
      for (const [key, { retryAt }] of scopes) if (now - retryAt > memoryMs) scopes.delete(key)
    },

    retain (hashes) {
      for (const hash of upstreams.keys()) if (!hashes.has(hash)) upstreams.delete(hash)
    }
  }
}

function restingError ({ name }: UpstreamDefinition, retryAfterMs: number, lastError: string | undefined, everybodys: boolean): GatewayError {
  const text = `Upstream ${name} ${everybodys ? 'is down' : 'failed when it was connected for this client'}; it is tried again in ${Math.ceil(retryAfterMs / 1000)} s. Retry then.${lastError === undefined ? '' : ` Its last error: ${lastError}`}`
  return new GatewayError('upstream_unavailable', text, { data: { upstream: name, retryAfterMs } })
}
