// What limits are made of: quotas, token buckets, semaphores, the size of JSON, and who gives way where all places are
// taken.

import { isStringOneByteRepresentation } from 'node:v8'
import { keptTextOf, namesOf } from '../protocol/json-text.ts'
import { isObject } from '../protocol/messages.ts'
import { abortable, type Clock } from '../time/clock.ts'

export type Quota = ReturnType<typeof createQuota>

/** Amounts that are taken at once, counted per key. */
export function createQuota() {
  /** By key: those with an amount taken. */
  const taken = new Map<string, { amount: number }>()
  return {
    /**
     * @param accounts the keys that the amount counts for, each with its limit
     * @returns a function that gives the amount back (once); undefined where a limit would be exceeded, and then
     * nothing is taken
     */
    take(amount: number, accounts: ReadonlyArray<readonly [key: string, limit: number]>): (() => void) | undefined {
      for (const [key, limit] of accounts) if ((taken.get(key)?.amount ?? 0) + amount > limit) return undefined
      for (const [key] of accounts) {
        const account = taken.get(key)
        if (account === undefined) taken.set(key, { amount })
        else account.amount += amount
      }
      let back = false
      return () => {
        if (back) return
        back = true
        for (const [key] of accounts) {
          const account = taken.get(key)
          if (account !== undefined && (account.amount -= amount) <= 0) taken.delete(key)
        }
      }
    },
    amountOf: (key: string): number => taken.get(key)?.amount ?? 0,
    /** Keys with an amount taken. */
    get size() {
      return taken.size
    }
  }
}

/** Bursts pass, floods do not: it holds up to `burst` tokens and gains `perSecond` of them. */
export function createTokenBucket(clock: Pick<Clock, 'now'>, perSecond: number, burst: number) {
  let tokens = burst
  let filledAt = clock.now()
  return {
    /** @returns false when the bucket is empty */
    take() {
      // Each time: what was gained before the bucket was full must not come on top of a burst.
      const now = clock.now()
      tokens = Math.min(burst, tokens + (Math.max(0, now - filledAt) * perSecond) / 1000)
      filledAt = now
      if (tokens < 1) return false
      tokens -= 1
      return true
    },
    /** Takes more than there may be: until it is made up for, `take` answers false. */
    spend(count: number): void {
      tokens -= count
    }
  }
}

/**
 * Settles as `run` does.
 * @param signal gives up the wait; then `run` is never called
 * @throws GatewayError cancelled
 */
export type Semaphore = <T>(run: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/** @param max how many run at a time; the others wait in the order in which they came */
export function createSemaphore(max: number): Semaphore {
  const waiting = new Set<() => void>()
  let running = 0

  /** Hands the place to the one that has waited longest, so that a newcomer cannot get in before. */
  function release(): void {
    const [next] = waiting
    if (next === undefined) running--
    else {
      waiting.delete(next)
      next()
    }
  }

  return async (run, signal) => {
    if (running < max) running++
    else {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.add(resolve)
      const giveUp = (error: unknown): never => {
        // The place may have been handed over at the same moment.
        if (!waiting.delete(resolve)) release()
        throw error
      }
      await (signal === undefined ? promise : abortable(promise, signal).catch(giveUp))
    }
    try {
      return await run()
    } finally {
      release()
    }
  }
}

/** Bytes: an empty object and its slot in an array in V8; other values take less beside their text. */
export const bytesPerValue = 64

/**
 * Estimates the memory that a JSON value takes, which its text does not tell: `{},` has three characters and takes 64
 * bytes once parsed. An upper estimate: the text, and a fixed cost for each value and each member name. Of an array
 * whose text is kept, it is the text alone: its values are those of a list, and count there.
 * @param value as JSON.parse returns it, nested no deeper than the stack allows
 * @returns bytes; above `limit` any larger number, because counting stops there
 */
export function jsonSizeOf(value: unknown, limit = Infinity): number {
  let size = 0
  function add(each: unknown): void {
    size += bytesPerValue
    if (typeof each === 'string') size += each.length > limit ? each.length : Buffer.byteLength(each)
    else if (Array.isArray(each)) {
      const text = keptTextOf(each)
      if (text !== undefined) size += text.length
      else
        for (const element of each) {
          if (size > limit) return
          add(element)
        }
    } else if (isObject(each)) {
      for (const name of namesOf(each)) {
        if (size > limit) return
        add(name)
        add(each[name])
      }
    }
  }
  add(value)
  return size
}

/** Bytes, as `jsonSizeOf` counts them: of a step. */
const stepBytes = 262_144

/** The same for a value of any size, in steps. Of a long text it is what that takes in V8, not its UTF-8. */
export function* jsonSizeSteps(value: unknown): Generator<undefined, number, undefined> {
  let size = 0
  let stepEnd = stepBytes

  function* add(each: unknown): Generator<undefined, void, undefined> {
    const whole = jsonSizeOf(each, stepBytes)
    if (whole <= stepBytes) size += whole
    else {
      size += bytesPerValue
      // Nobody looks into a long text that was put together from pieces: that would make another one of it.
      if (typeof each === 'string') size += each.length * (isStringOneByteRepresentation(each) ? 1 : 2)
      else if (Array.isArray(each)) {
        const text = keptTextOf(each)
        if (text !== undefined) size += text.length
        else for (const element of each) yield* add(element)
      } else if (isObject(each))
        for (const name of namesOf(each)) {
          size += jsonSizeOf(name)
          yield* add(each[name])
        }
    }
    if (size < stepEnd) return
    stepEnd = size + stepBytes
    yield
  }
  yield* add(value)
  return size
}

export interface FairEvictionOptions<T> {
  readonly perOwner: number
  readonly perTenant: number
  /** Of all tenants together. */
  readonly max: number
  /** Which entries may be evicted. Default: all. */
  readonly evictable?: (entry: T) => boolean
  /** Default: where all places are taken, the tenant that has most gives way. */
  readonly withinTenant?: boolean
}

/**
 * Who gives up an entry when a fixed number of places is taken, so that no owner and no tenant crowds out the others.
 * It only names the candidates: the caller picks one, ends it and deletes it.
 */
export function createFairEviction<T>({
  perOwner,
  perTenant,
  max,
  evictable = () => true,
  withinTenant = false
}: FairEvictionOptions<T>) {
  const tenants = new Map<string, { readonly owners: Map<string, Set<T>>; size: number }>()
  let size = 0

  return {
    add(tenantId: string, owner: string, entry: T): void {
      const tenant = tenants.get(tenantId) ?? { owners: new Map<string, Set<T>>(), size: 0 }
      tenants.set(tenantId, tenant)
      tenant.owners.set(owner, (tenant.owners.get(owner) ?? new Set<T>()).add(entry))
      tenant.size++
      size++
    },
    delete(tenantId: string, owner: string, entry: T): void {
      const tenant = tenants.get(tenantId)
      const own = tenant?.owners.get(owner)
      if (tenant === undefined || own?.delete(entry) !== true) return
      size--
      if (own.size === 0) tenant.owners.delete(owner)
      if (--tenant.size === 0) tenants.delete(tenantId)
    },
    /**
     * Asked before `add`.
     * @returns undefined where there is a free place; else the entries of the owner that has to give one up, in the
     * order in which they were added: the asking owner itself where it has as many as any other. Empty where nothing
     * may be evicted
     */
    evictFrom(tenantId: string, owner: string): ReadonlySet<T> | undefined {
      const tenant = tenants.get(tenantId)
      const own = tenant?.owners.get(owner)
      if (own !== undefined && own.size >= perOwner) return own
      const tenantIsFull = tenant !== undefined && tenant.size >= perTenant
      if (!tenantIsFull && size < max) return undefined
      const crowded = tenantIsFull || withinTenant ? tenant : largest(tenants.values(), tenant)
      const owners = [...(crowded?.owners.values() ?? [])].filter((entries) => entries.values().some(evictable))
      return largest(owners, own !== undefined && owners.includes(own) ? own : undefined) ?? new Set()
    }
  }
}

/** @returns the largest of the groups; `own` where it is as large as any */
function largest<Group extends { readonly size: number }>(
  groups: Iterable<Group>,
  own: Group | undefined
): Group | undefined {
  let found = own
  for (const group of groups) if (found === undefined || group.size > found.size) found = group
  return found
}
