// How long a failed upstream is left alone, by every caller or by one scope. Callers decide what their own connections
// declare, and so whether these fail: that counts for their scope only, and no other caller is told why. An upstream
// that is away for all is probed by calls sooner than it is tried again by itself.

import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, backoffMs } from '../../time/clock.ts'
import { hashOfEverybody } from '../rpc/personal-hash.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'

interface BackoffState {
  failures: number
  /** No attempt before this time, but for probes. */
  retryAt: number
  lastError: string | undefined
}

interface UpstreamState extends BackoffState {
  /** Of the first failure since it was last reached; undefined where it was reached after the last one. */
  awaySince: number | undefined
  /** When the last attempt began or failed. */
  attemptedAt: number
  /** When it was reached first after it was away. */
  reachedAt: number
}

const times = { firstMs: 1_000, maxMs: 60_000 }
/** A connection that ends younger than this never really worked, nor did an upstream that is away again so soon. */
const provenMs = 5_000
/** What failed longer ago is no pattern. */
const memoryMs = 120_000

/** Calls may try an upstream that is away so often, all of them together. */
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

/** By hash of the definition: of one upstream each person may have one of their own. */
function createUpstreamStates() {
  const states = new Map<string, UpstreamState>()
  /** The hashes there, by that of everybody. */
  const families = new Map<string, Set<string>>()
  return {
    get: (hash: string): UpstreamState | undefined => states.get(hash),
    entries: () => states.entries(),
    keys: () => states.keys(),
    /** Hashes of all that people have of an upstream. */
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
 * A `key` stands for a definition and one scope of it.
 * @param random between 0 and 1
 * @param maxScopes callers make scopes: the one that failed least recently is forgotten, and may try early
 */
export function createConnectBackoff(clock: Clock, random: () => number, maxScopes = 10_000) {
  const upstreams = createUpstreamStates()
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
    /**
     * Why no connection is tried now: upstream_unavailable with data.retryAfterMs. Undefined: it may be.
     * @param probing it is for a call, which may try an upstream that is away before its time
     */
    refusal({ name, hash }: UpstreamDefinition, key: string, probing: boolean): GatewayError | undefined {
      const own = upstreams.get(hash)
      const scope = scopes.get(key) ?? noFailures()
      const now = clock.now()
      const waitMs = Math.ceil(Math.max(own?.retryAt ?? 0, scope.retryAt) - now)
      if (waitMs <= 0) return undefined
      if (own?.awaySince !== undefined) {
        if (probing && own.attemptedAt + probeMs <= now) return undefined
        // What one caller's connection died of is told to nobody else.
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

    /** It failed for all callers, and was not reached since. */
    isAway: (hash: string): boolean => upstreams.get(hash)?.awaySince !== undefined,

    /** Of an upstream that is away: since when, and when it is tried again, by itself or by a call. */
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
     * For whoever runs the gateway. `awayMs` undefined: it answered when it was last tried, or was never tried.
     * @param hash of everybody's definition: where people have ones of their own, it is away when it is so for all who
     * tried
     * @param isReached by somebody, who has a connection
     */
    stateOf(hash: string, isReached: boolean) {
      const states = upstreams.of(hash).flatMap((each) => upstreams.get(each) ?? [])
      return toldOf(states, upstreams.get(hash)?.awaySince === undefined && isReached, clock.now())
    },

    /** Hashes of everybody's definitions that are away for somebody. */
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

    /** It may be tried at once, by everybody. */
    forget(hash: string): void {
      for (const each of upstreams.of(hash)) upstreams.delete(each)
    },

    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const hash of upstreams.keys()) if (!hashes.has(hash)) upstreams.delete(hash)
    }
  }
}
