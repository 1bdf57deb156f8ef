// How much memory callers and upstreams may make the process hold, in bytes. All of it is taken from one budget before
// it is used, and no tenant and no caller gets the whole of it. What is counted is an estimate from above.

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import type { JsonText } from '../protocol/json-text.ts'
import { GatewayError } from '../protocol/messages.ts'
import { memoryOfProcess } from './process-memory.ts'
import { type Sum, SharedSum, type SumLimit } from './shared-sum.ts'

/** The memory of a gateway that does nothing, in bytes; an estimate from above. */
const idleBytes = 160 * 1024 * 1024
/** Values that were let go of stay in memory until the collector has run. */
const garbageFactor = 2
/**
 * How much the heap may grow between two collections, in percent of what was live after the first. V8 would let it grow
 * to four times that as long as it is far from its own limit, which is a part of the machine's memory.
 */
const heapGrowthPercent = 25
/** The usable part of the heap that V8 allows: beyond it the process does little else than collect. */
const usableHeap = 0.7
/** Too small a budget would serve nobody; in bytes. */
const leastBudgetBytes = 32 * 1024 * 1024
/** One tenant may hold one part in so many of the budget, and one caller one part in so many of that. */
const shareDivisor = 2

/**
 * Has V8 collect more often where the process may use less than its heap could grow to.
 * @param memoryBytes `limits.memoryBytes`
 */
export function memoryAccountOfProcess(memoryBytes: number | undefined, available?: number): MemoryAccount {
  const ceiling = memoryOfProcess(memoryBytes, available)
  const heapBytes = getHeapStatistics().heap_size_limit
  // V8 reads this one at each collection, unlike its sizes, which are fixed once it has started.
  if (ceiling < heapBytes + idleBytes) setFlagsFromString(`--heap-growing-percent=${heapGrowthPercent}`)
  return createMemoryAccount(memoryBudget(ceiling, heapBytes))
}

/**
 * @param ceilingBytes of the resident set of the process
 * @param heapBytes the limit of V8's heap, where most of what is counted lives
 */
function memoryBudget(ceilingBytes: number, heapBytes: number): number {
  const budget = (Math.min(ceilingBytes, heapBytes * usableHeap + idleBytes) - idleBytes) / garbageFactor
  return Math.max(leastBudgetBytes, Math.floor(budget))
}

/** No tenant is called so. */
const everybody = '*'
/** The tenant of callers who are not known yet. */
const unknownTenant = ''

/** The settings of a tenant that limit its memory. */
interface TenantMemory {
  readonly resources?: { readonly memoryBytes?: number | undefined } | undefined
}

export type MemoryAccount = ReturnType<typeof createMemoryAccount>

export type MemoryShare = ReturnType<MemoryAccount['share']>

export function createMemoryAccount(budgetBytes = Infinity) {
  /** By key: those with bytes taken. */
  const taken = new Map<string, Sum>()
  const tenantBytes = budgetBytes / shareDivisor
  const ofEverybody: SumLimit = { amount: budgetBytes }
  /** Those of tenants that were asked for; shared by all their callers, so that a changed one holds at once. */
  const limits = new Map<string, { readonly tenant: SumLimit; readonly caller: SumLimit }>()
  let configured: ReadonlyMap<string, TenantMemory> = new Map()

  const amountOf = (tenant: string): number =>
    Math.min(tenantBytes, configured.get(tenant)?.resources?.memoryBytes ?? Infinity)

  function limitsOf(tenant: string) {
    const known = limits.get(tenant)
    if (known !== undefined) return known
    const amount = amountOf(tenant)
    const made = { tenant: { amount }, caller: { amount: amount / shareDivisor } }
    limits.set(tenant, made)
    return made
  }

  return {
    /** Takes the limits of the tenants; to be called after each reload. */
    configure(tenants: ReadonlyMap<string, TenantMemory>): void {
      configured = tenants
      for (const [name, { tenant, caller }] of limits) {
        tenant.amount = amountOf(name)
        caller.amount = tenant.amount / shareDivisor
        if (!tenants.has(name) && name !== unknownTenant) limits.delete(name)
      }
    },
    /** @returns bytes that its callers hold, and may hold */
    ofTenant(tenant: string): { readonly used: number; readonly limit: number } {
      return { used: taken.get(tenant)?.amount ?? 0, limit: limitsOf(tenant).tenant.amount }
    },
    /** @param caller whose holdings count together within the tenant: a person, or an upstream that serves many */
    share(tenant: string, caller: string) {
      const most = limitsOf(tenant)
      const own = new SharedSum(taken, `${tenant}/${caller}`, most.caller, 'this caller')
      const ofTenant = new SharedSum(taken, tenant, most.tenant, 'the tenant of this caller')
      const ofAll = new SharedSum(taken, everybody, ofEverybody, 'all callers')
      const full = (bytes: number): SharedSum | undefined =>
        [own, ofTenant, ofAll].find((account) => !account.has(bytes))
      const has = (bytes: number): boolean => own.has(bytes) && ofTenant.has(bytes) && ofAll.has(bytes)
      /** Whatever the limits say: for what is there already, or is given back. */
      const move = (bytes: number): void => {
        own.add(bytes)
        ofTenant.add(bytes)
        ofAll.add(bytes)
      }
      return {
        tenant,
        caller,
        move,
        has,
        /** @returns false where a limit would be exceeded, and then nothing is taken */
        take(bytes: number): boolean {
          if (!has(bytes)) return false
          move(bytes)
          return true
        },
        /** @param what would need the memory, as the subject of a sentence */
        refusal(bytes: number, what: string): GatewayError {
          const short = full(bytes) ?? own
          const { limit, whose } = short
          const isOwn = short !== ofAll && most.tenant.amount < tenantBytes
          const name = isOwn ? 'resources.memoryBytes' : 'limits.memoryBytes'
          return new GatewayError(
            'too_many',
            `${what} would need more memory than is left for ${whose}: ${Math.floor(limit / 1024 / 1024)} MiB, a ` +
              `share of ${name}. Wait for open requests, read their answers, or send and ask for less.`,
            isOwn ? { data: { limit: name } } : {}
          )
        }
      }
    },
    /** The most bytes that the whole process may hold. */
    budgetBytes,
    /** The bytes that are held now. */
    get held() {
      return taken.get(everybody)?.amount ?? 0
    }
  }
}

/**
 * What one request, stream or message holds of a share. Where it has holders, it is given back when the last of them
 * has released it; nothing is counted after that, because nobody would give it back. A class, because there are two
 * for each call: their methods are not made anew.
 */
export class HeldMemory {
  readonly share: MemoryShare
  private held = 0
  private holding = 0
  private over = false

  constructor(share: MemoryShare) {
    this.share = share
  }

  get bytes(): number {
    return this.held
  }

  get holders(): number {
    return this.holding
  }

  /** @returns false where the share is used up, and then nothing is taken */
  take(more: number): boolean {
    if (this.over) return true
    if (!this.share.take(more)) return false
    this.held += more
    return true
  }

  /** @throws GatewayError too_many */
  require(more: number, what: string): void {
    if (!this.take(more)) throw this.share.refusal(more, what)
  }

  /** Sets the bytes that are held from now on, whatever the limits say. */
  set(now: number): void {
    if (this.over) return
    this.share.move(now - this.held)
    this.held = now
  }

  /**
   * Sets the bytes that are held, within the limits.
   * @returns false where the share is used up, and then nothing changes
   */
  fit(now: number): boolean {
    if (this.over || now === this.held) return true
    if (now > this.held && !this.share.take(now - this.held)) return false
    if (now < this.held) this.share.move(now - this.held)
    this.held = now
    return true
  }

  /** @returns how this holder releases it; idempotent */
  retain(): () => void {
    this.holding++
    let released = false
    return () => {
      if (released) return
      released = true
      if (--this.holding > 0) return
      this.set(0)
      this.over = true
    }
  }
}

export const holdMemory = (share: MemoryShare): HeldMemory => new HeldMemory(share)

/**
 * Takes the memory for what another limit has let in.
 * @param release gives back what that limit has taken
 * @returns what gives back both; undefined where there is no memory, and then `release` was called
 */
export function withMemory(share: MemoryShare, bytes: number, release: () => void): (() => void) | undefined {
  const held = holdMemory(share)
  const taken = held.take(bytes)
  if (!taken) release()
  const giveBack = (): void => {
    held.set(0)
    release()
  }
  return taken ? giveBack : undefined
}

/** The most bytes of a character of text in memory. */
export const bytesPerChar = 2

export const textBytes = (text: JsonText): number =>
  typeof text === 'string' ? text.length * bytesPerChar : text.length
