// How many calls are made, of whom and of what: the limits of a tenant. Which of them a call is within is found once
// for each caller and route, by the rules' own matchers; a call then takes a token of each.

import { LRUCache } from 'lru-cache'
import type { Principal } from '../auth/principal.ts'
import { countOf } from '../config/problems.ts'
import type { CallLimit, CallLimitsConfig, Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import { limitKey } from '../store/keys.ts'
import { createLeasedBuckets, type LeasedBuckets, type Shortage } from '../store/leased-buckets.ts'
import type { Bucket } from '../store/refill.ts'
import type { Store } from '../store/port.ts'
import type { Clock } from '../time/clock.ts'
import { countersOf, rateLimitHeaders, type Counter, type Window } from './counters.ts'
import { limitUses, type LimitUse } from './limit-uses.ts'
import { createRouteFacts, type JudgedRoute } from './route-facts.ts'
import { anyMatcher } from '../protocol/glob.ts'
import { factsAt, principalMatcher, routeMatcher, type RouteKind, type Rule } from './rules.ts'

export interface LimitedCall {
  readonly tenant: Tenant
  readonly principal: Principal
  readonly record?: { readonly replyHeaders?: Record<string, string> | undefined } | undefined
}

export type CallLimits = ReturnType<typeof createCallLimits>

/** One number of one limit, as it applies to a caller and a route. */
interface Applied {
  readonly counter: Counter
  /** The one of those that are counted apart. */
  readonly whose: string
  /** The day or month of now. */
  window: Window
  bucket: Bucket
}

/** Buckets that were used here last: what is told of limits is told of these. */
const maxBucketsTold = 10_000
type Used = LRUCache<string, Applied>
/** Callers of one tenant and routes of which the limits are remembered: beyond it, all are forgotten and found anew. */
const maxFound = 50_000

/** The limits that a call has to be within. */
interface Limits {
  readonly applied: readonly Applied[]
  /** The concurrent calls, by limit and those that are counted apart. */
  readonly concurrent: ReadonlyArray<{ readonly name: string; readonly key: string; readonly max: number }>
}

export function createCallLimits({
  store,
  clock,
  wall,
  node,
  log
}: {
  readonly store: Store
  readonly clock: Clock
  /** The time of day, of days and months. */
  readonly wall: { now(): number }
  readonly node: string
  readonly log: Log
}) {
  // Most configurations have none.
  let buckets: LeasedBuckets | undefined
  const perTenant = new WeakMap<Tenant, ReturnType<typeof createLimitsOf>>()
  const running = new Map<string, number>()
  const used: Used = new LRUCache({ max: maxBucketsTold })

  function bucketOf(applied: Applied): Bucket {
    const now = wall.now()
    if (now >= applied.window.until) {
      applied.window = applied.counter.windowAt(now)
      applied.bucket = makeBucket(applied.counter, applied.whose, applied.window, now)
      used.set(applied.bucket.key, applied)
    }
    return applied.bucket
  }

  /** @throws GatewayError too_many. @returns what ends it */
  function enter({ concurrent }: Limits): () => void {
    for (const { name, key, max } of concurrent)
      if ((running.get(key) ?? 0) >= max)
        throw new GatewayError(
          'too_many',
          `More than ${countOf(max, 'call')} at once (limit ${name}). Wait for one to end.`,
          { data: { limit: name } }
        )
    for (const { key } of concurrent) running.set(key, (running.get(key) ?? 0) + 1)
    return () => {
      for (const { key } of concurrent) {
        const left = (running.get(key) ?? 1) - 1
        if (left > 0) running.set(key, left)
        else running.delete(key)
      }
    }
  }

  function stateOf(applied: Applied) {
    const { counter, window, bucket } = applied
    return { counter, remaining: buckets?.remaining(bucket) ?? 0, resetMs: counter.resetMs(window, wall.now()) }
  }

  function refusalOf({ applied }: Limits, { bucket, waitMs }: Shortage): GatewayError {
    const short = applied.find((each) => each.bucket.key === bucket.key)
    if (short === undefined) throw new Error('a bucket is short that the call has none of')
    const { counter } = short
    const retryAfterMs = Number.isFinite(waitMs) ? Math.max(1, waitMs) : counter.resetMs(short.window, wall.now())
    const seconds = Math.ceil(retryAfterMs / 1000)
    const state = { counter, remaining: 0, resetMs: retryAfterMs }
    return new GatewayError(
      counter.isQuota ? 'quota_exceeded' : 'rate_limited',
      `More than ${counter.says} (limit ${counter.limit}). Retry in ${seconds} s.`,
      {
        data: { limit: counter.limit, retryAfterMs: Math.ceil(retryAfterMs) },
        headers: { 'Retry-After': String(seconds), ...rateLimitHeaders([state]) }
      }
    )
  }

  async function runWithin<T>(limits: Limits, { record }: LimitedCall, run: () => Promise<T>): Promise<T> {
    const leave = enter(limits)
    try {
      buckets ??= createLeasedBuckets({ store, clock, node, log })
      const taken = buckets.take(limits.applied.map(bucketOf))
      const shortage = taken instanceof Promise ? await taken : taken
      if (shortage !== undefined) throw refusalOf(limits, shortage)
      if (record?.replyHeaders !== undefined)
        Object.assign(record.replyHeaders, rateLimitHeaders(limits.applied.map(stateOf)))
      return await run()
    } finally {
      leave()
    }
  }

  return {
    /**
     * Runs a call, where the limits of its tenant let it. It counts whatever becomes of it.
     * @throws GatewayError rate_limited, quota_exceeded, too_many; whatever `run` throws
     */
    within<T>(call: LimitedCall, kind: RouteKind, route: JudgedRoute, run: () => Promise<T>): Promise<T> {
      const { tenant, principal } = call
      if (tenant.limits === undefined) return run()
      const limitsOf = perTenant.get(tenant) ?? createLimitsOf(tenant, tenant.limits, wall, used)
      perTenant.set(tenant, limitsOf)
      const limits = limitsOf(principal, kind, route)
      return limits === undefined ? run() : runWithin(limits, call, run)
    },
    /** How much of each limit of a tenant is used, as far as this process knows. */
    usesOf: (tenant: Tenant): LimitUse[] =>
      limitUses(tenant, used.values(), wall.now(), (bucket) => buckets?.remaining(bucket) ?? bucket.capacity),
    close: async (): Promise<void> => await buckets?.close()
  }
}

const makeBucket = ({ tenant, limit, unit, capacity, perMs }: Counter, whose: string, window: Window, now: number) => ({
  key: limitKey(tenant, `${limit} ${unit}`, whose, window.name),
  capacity,
  perMs,
  ttlMs: window.until === Infinity ? Math.ceil(capacity / perMs) + rememberedMs : window.until - now + hourMs
})

/** The time for which a bucket is remembered after it is full again, or may be. */
const rememberedMs = 30_000
const hourMs = 3_600_000

function createLimitsOf(tenant: Tenant, limits: CallLimitsConfig, wall: { now(): number }, used: Used) {
  const factsOf = createRouteFacts(tenant.tags)
  const compiled = Object.entries(limits).map(([name, limit]) => ({
    name,
    limit,
    isAbout: principalMatcher(limit.who),
    covers: coveringMatcher(limit),
    counters: countersOf(tenant.id, name, limit)
  }))
  let known = new WeakMap<Principal, ReturnType<typeof byKind>>()
  let found = 0

  function find(principal: Principal, kind: RouteKind, route: JudgedRoute): Limits | undefined {
    const facts = factsOf(kind, route)
    const now = wall.now()
    const own = compiled.flatMap(({ name, limit, isAbout, covers, counters }) => {
      const whose =
        isAbout(principal) && covers(factsAt(`limits/${name}`, tenant, facts))
          ? countedApart(limit, principal, kind, route)
          : undefined
      return whose === undefined ? [] : [{ name, limit, counters, whose }]
    })
    if (own.length === 0) return undefined
    return {
      applied: own.flatMap(({ counters, whose }) =>
        counters.map((counter) => {
          const window = counter.windowAt(now)
          const applied = { counter, whose, window, bucket: makeBucket(counter, whose, window, now) }
          used.set(applied.bucket.key, applied)
          return applied
        })
      ),
      concurrent: own.flatMap(({ name, limit: { concurrent }, whose }) =>
        concurrent === undefined ? [] : [{ name, key: limitKey(tenant.id, name, whose, ''), max: concurrent }]
      )
    }
  }

  return (principal: Principal, kind: RouteKind, route: JudgedRoute): Limits | undefined => {
    const routes = known.get(principal)?.[kind]
    if (routes?.has(route) === true) return routes.get(route)
    const limits = find(principal, kind, route)
    if (++found > maxFound) [known, found] = [new WeakMap(), 1]
    const kinds = known.get(principal) ?? byKind()
    known.set(principal, kinds)
    kinds[kind].set(route, limits)
    return limits
  }
}

type ByRoute = WeakMap<JudgedRoute, Limits | undefined>

const byKind = (): Record<RouteKind, ByRoute> => ({
  tool: new WeakMap(),
  prompt: new WeakMap(),
  resource: new WeakMap(),
  template: new WeakMap()
})

/** Returns the matcher of a limit, as of a rule that refuses: a URI is counted in whatever spelling it comes. */
const coveringMatcher = ({ what }: CallLimit): Rule['covers'] => {
  const covers = routeMatcher({ effect: 'deny', what })
  const matchesUpstream = anyMatcher(what.upstreams)
  return (facts) => matchesUpstream(facts.upstream) && covers(facts)
}

/** @returns undefined where the limit is not about it */
function countedApart({ per }: CallLimit, principal: Principal, kind: RouteKind, route: JudgedRoute) {
  const { kind: credential, issuer, subject } = principal
  if (per.includes('key') && credential !== 'key') return undefined
  if (per.includes('tool') && kind !== 'tool') return undefined
  const isPerCaller = per.includes('principal') || per.includes('key')
  const parts = [
    ...(isPerCaller ? [credential, issuer, subject] : []),
    ...(per.includes('upstream') || per.includes('tool') ? [route.upstream] : []),
    ...(per.includes('tool') ? [route.name] : [])
  ]
  return JSON.stringify(parts)
}
