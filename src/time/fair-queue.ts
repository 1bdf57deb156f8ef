// Whose work is next: tenants take turns, and so do the callers of each: none waits for all the work of another.

/** The owner of a piece of work. */
export interface WorkOwner {
  readonly tenant: string
  readonly caller: string
}

/**
 * @param take removes the next one of a caller's, of which so many were taken without a pause. Default: in their order
 */
export function createFairQueue<T>(
  take: (waiting: T[], taken: number) => T | undefined = (waiting) => waiting.shift()
) {
  // Both in the order of turns.
  const tenants = new Map<string, Map<string, { readonly waiting: T[]; taken: number }>>()

  return {
    add(each: T, { tenant, caller }: WorkOwner): void {
      const callers = tenants.get(tenant) ?? new Map<string, { readonly waiting: T[]; taken: number }>()
      const own = callers.get(caller) ?? { waiting: [], taken: 0 }
      own.waiting.push(each)
      tenants.set(tenant, callers.set(caller, own))
    },
    get isEmpty(): boolean {
      return tenants.size === 0
    },
    /**
     * Of the tenant, and of its callers, who had a turn longest ago.
     * @param isIn whether a tenant takes part. Default: all do
     */
    next(isIn?: (tenant: string) => boolean): T | undefined {
      for (const [tenant, callers] of tenants) {
        if (isIn?.(tenant) === false) continue
        tenants.delete(tenant)
        for (const [caller, own] of callers) {
          callers.delete(caller)
          const next = take(own.waiting, own.taken++)
          if (own.waiting.length > 0) callers.set(caller, own)
          if (callers.size > 0) tenants.set(tenant, callers)
          return next
        }
      }
      return undefined
    }
  }
}
