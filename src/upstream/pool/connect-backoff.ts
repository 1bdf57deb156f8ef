// How long no connection to a failed upstream is tried, by all callers or in one scope. What a caller's connection
// declares may be the reason for its failure, so that counts for its scope only, and no other caller gets its error. An
// upstream that is away for all callers may be probed by calls before the pool itself tries it again.

import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, backoffMs } from '../../time/clock.ts'
import { hashOfEverybody } from '../rpc/personal-hash.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'

interface BackoffState {
  failures: number
  /** No attempt but a probe is made before this time, in milliseconds since the epoch. */
  retryAt: number
  lastError: string | undefined
}

interface UpstreamState extends BackoffState {
  /** When it failed first after it was last reached; undefined: it was reached after its last failure. */
  awaySince: number | undefined
  /** When the last attempt began or failed. */
  attemptedAt: number
  /** When it was reached for the first time after it was away. */
  reachedAt: number
}

const times = { firstMs: 1_000, maxMs: 60_000 }
/** A connection that ends before this age counts as a failed one; so does an upstream that is away again so soon. */
const provenMs = 5_000
/** Failures are forgotten after this time. */
const memoryMs = 120_000

/** The shortest time between two probes of an upstream that is away, of all calls together. */
const probeMs = 1_000

const noFailures = (): BackoffState => ({ failures: 0, retryAt: 0, lastError: undefined })
const noAbsence = (): UpstreamState => ({
  ...noFailures(),
  awaySince: undefined,
  attemptedAt: -Infinity,
  reachedAt: -Infinity
})

const isAwayIn = ({ awaySince }: UpstreamState): boolean => awaySince !== undefined

const secondsOf = (ms: number): string => `${Math.max(1, Math.ceil(ms / 1000))} s`

function toldOf(states: readonly UpstreamState[], isReached: boolean, now: number) {
  const away = isReached ? [] : states.filter(isAwayIn)
  const isAway = away.length > 0
  return {
    awayMs: isAway ? now - Math.min(...away.map(({ awaySince = now }) => awaySince)) : undefined,
    retriedInMs: isAway ? Math.max(0, Math.ceil(Math.min(...away.map(({ retryAt }) => retryAt)) - now)) : undefined,
    lastError: (away.at(-1) ?? states.at(-1))?.lastError
  }
}

/** The states of upstreams by hash of the definition. Each person may have a definition of their own of an upstream. */
function createUpstreamStates() {
  const states = new Map<string, UpstreamState>()
  /** The hashes of `states`, by the hash of the definition without personal credentials. */
  const families = new Map<string, Set<string>>()
  return {
    get: (hash: string): UpstreamState | undefined => states.get(hash),
    entries: () => states.entries(),
    keys: () => states.keys(),
    /** Returns the hashes of all personal definitions of an upstream. */
    of: (hashOfAll: string): readonly string[] => [...(families.get(hashOfAll) ?? [])],
    made(hash: string): UpstreamState {
      const known = states.get(hash)
      if (known !== undefined) return known
      const state = noAbsence()
      states.set(hash, state)
      const ofEverybody = hashOfEverybody(hash)
      families.set(ofEverybody, (families.get(ofEverybody) ?? new Set<string>()).add(hash))
      return state
    },
    delete(hash: string): void {
      if (!states.delete(hash)) return
      const ofEverybody = hashOfEverybody(hash)
      const family = families.get(ofEverybody)
      family?.delete(hash)
      if (family?.size === 0) families.delete(ofEverybody)
    }
  }
}

/**
 * A `key` identifies a definition and a scope (`connectionKeyOf`).
 * @param random returns a number from 0 to 1 (1 excluded)
 * @param maxScopes callers create scopes, so they are bounded: the state of the one that failed longest ago is dropped
 */
export function createConnectBackoff(clock: Clock, random: () => number, maxScopes = 10_000) {
  const upstreams = createUpstreamStates()
  /** By key, the one that failed longest ago first. */
  const scopes = new Map<string, BackoffState>()

  function ofScope(key: string): BackoffState {
    const state = scopes.get(key) ?? noFailures()
    scopes.delete(key)
    scopes.set(key, state)
    const [oldest = key] = scopes.size > maxScopes ? scopes.keys() : []
    if (oldest !== key) scopes.delete(oldest)
    return state
  }

  /** Failures before `retryAt` count once: a hundred sessions that fail together are one failure of the upstream. */
  function note(state: BackoffState, { message }: Error): number {
    const now = clock.now()
    state.lastError = message
    if (now >= state.retryAt) state.retryAt = now + backoffMs(state.failures++, { ...times, random })
    return state.failures
  }

  return {
    /**
     * Returns why no connection may be tried now: upstream_unavailable with `data.retryAfterMs`; undefined: one may be.
     * @param probing whether it is for a call, which may try an upstream that is away before `retryAt`
     */
    refusal({ name, hash }: UpstreamDefinition, key: string, probing: boolean): GatewayError | undefined {
      const own = upstreams.get(hash)
      const scope = scopes.get(key) ?? noFailures()
      const now = clock.now()
      const waitMs = Math.ceil(Math.max(own?.retryAt ?? 0, scope.retryAt) - now)
      if (waitMs <= 0) return undefined
      if (own?.awaySince !== undefined) {
        if (probing && own.attemptedAt + probeMs <= now) return undefined
        // The error of one caller's connection is told to no other caller.
        const { lastError } = own.retryAt >= scope.retryAt ? own : scope
        const last = lastError === undefined ? '' : ` Its last error: ${lastError}`
        const { text, data } = this.outlook(hash)
        return new GatewayError('upstream_unavailable', `Upstream ${name} is down. ${text}${last}`, {
          data: { upstream: name, ...data }
        })
      }
      const last = scope.lastError === undefined ? '' : ` Its last error: ${scope.lastError}`
      const when = `it is tried again in ${secondsOf(waitMs)}. Retry then.`
      return new GatewayError(
        'upstream_unavailable',
        `Upstream ${name} failed when it was connected for this client; ${when}${last}`,
        { data: { upstream: name, retryAfterMs: waitMs } }
      )
    },

    /** Whether it failed for all callers and was not reached since. */
    isAway: (hash: string): boolean => upstreams.get(hash)?.awaySince !== undefined,

    /** For an upstream that is away: how long it is away, and when the pool or a call tries it again. */
    outlook(hash: string) {
      const { awaySince, attemptedAt, retryAt } = upstreams.get(hash) ?? noAbsence()
      const now = clock.now()
      const awayMs = awaySince === undefined ? 0 : now - awaySince
      const retriedInMs = Math.max(0, Math.ceil(retryAt - now))
      const probedInMs = Math.max(0, Math.ceil(attemptedAt + probeMs - now))
      const away = awayMs < 1_000 ? '' : `It has been away for ${secondsOf(awayMs)}. `
      const probe = probedInMs < retriedInMs ? `, or by a call ${secondsOf(probedInMs)} from now` : ''
      return {
        text: `${away}It is tried again in ${secondsOf(retriedInMs)}${probe}. Retry then.`,
        data: { retryAfterMs: Math.min(retriedInMs, probedInMs), retriedInMs }
      }
    },

    /**
     * The state of an upstream for operators. `awayMs` undefined: it answered the last try, or was never tried.
     * @param hash of the definition without personal credentials; with personal definitions, the upstream is away if it
     * is so for all of them that were tried
     * @param isReached whether anybody has an open connection to it
     */
    stateOf(hash: string, isReached: boolean) {
      const states = upstreams.of(hash).flatMap((each) => upstreams.get(each) ?? [])
      return toldOf(states, upstreams.get(hash)?.awaySince === undefined && isReached, clock.now())
    },

    /** Returns the hashes, without personal credentials, of the upstreams that are away for at least one person. */
    away: (): ReadonlySet<string> =>
      new Set([...upstreams.entries()].flatMap(([hash, state]) => (isAwayIn(state) ? [hashOfEverybody(hash)] : []))),

    /** A connection is being opened. */
    attempted({ hash }: UpstreamDefinition): void {
      const own = upstreams.get(hash)
      if (own !== undefined) own.attemptedAt = clock.now()
    },

    /** A connection was opened: whatever failed for all callers while it was away may be tried at once. */
    reached({ hash }: UpstreamDefinition): void {
      const own = upstreams.get(hash)
      if (own?.awaySince === undefined) return
      own.awaySince = undefined
      own.reachedAt = own.retryAt = clock.now()
      for (const key of scopes.keys()) if (key.startsWith(hash)) scopes.delete(key)
    },

    /**
     * A connection could not be opened.
     * @param forAll the upstream fails so for every caller
     * @returns how many failures that makes in a row
     */
    failed({ hash }: UpstreamDefinition, key: string, error: Error, forAll: boolean): number {
      if (!forAll) return note(ofScope(key), error)
      const state = upstreams.made(hash)
      state.attemptedAt = clock.now()
      if (state.awaySince === undefined && state.attemptedAt - state.reachedAt > memoryMs) state.failures = 0
      state.awaySince ??= state.attemptedAt
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

    /** An open connection has reached this age. Over HTTP it stays open while its server is away. */
    alive({ hash }: UpstreamDefinition, key: string, ageMs: number): void {
      if (ageMs < provenMs) return
      scopes.delete(key)
      const own = upstreams.get(hash)
      if (own?.awaySince === undefined && clock.now() - (own?.reachedAt ?? 0) >= provenMs) upstreams.delete(hash)
    },

    sweep(): void {
      const now = clock.now()
      for (const [key, { retryAt }] of scopes) if (now - retryAt > memoryMs) scopes.delete(key)
    },

    /** Forgets the failures, so that all callers may try it at once. */
    forget(hash: string): void {
      for (const each of upstreams.of(hash)) upstreams.delete(each)
    },

    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const hash of upstreams.keys()) if (!hashes.has(hash)) upstreams.delete(hash)
    }
  }
}
