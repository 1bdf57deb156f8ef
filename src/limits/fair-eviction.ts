// Fair eviction: who gives up an entry when a fixed number of places is taken, so that no owner and no tenant crowds
// out the others. It only names the candidates: the caller picks one, ends it and deletes it.

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

export interface FairEviction<T> {
  add(tenant: string, owner: string, entry: T): void
  delete(tenant: string, owner: string, entry: T): void
  /**
   * Asked before `add`.
   * @returns undefined where there is a free place; else the entries of the owner that has to give one up, in the order
   * in which they were added: the asking owner itself where it has as many as any other. Empty where nothing may be
   * evicted
   */
  evictFrom(tenant: string, owner: string): ReadonlySet<T> | undefined
}

interface Tenant<T> {
  readonly owners: Map<string, Set<T>>
  size: number
}

export function createFairEviction<T>({
  perOwner,
  perTenant,
  max,
  evictable = () => true,
  withinTenant = false
}: FairEvictionOptions<T>): FairEviction<T> {
  const tenants = new Map<string, Tenant<T>>()
  let size = 0

  const mayLose = (entries: ReadonlySet<T>): boolean => {
    for (const entry of entries) if (evictable(entry)) return true
    return false
  }

  return {
    add(tenantId, owner, entry) {
      const tenant = tenants.get(tenantId) ?? { owners: new Map<string, Set<T>>(), size: 0 }
      tenants.set(tenantId, tenant)
      tenant.owners.set(owner, (tenant.owners.get(owner) ?? new Set<T>()).add(entry))
      tenant.size++
      size++
    },
    delete(tenantId, owner, entry) {
      const tenant = tenants.get(tenantId)
      const own = tenant?.owners.get(owner)
      if (tenant === undefined || own?.delete(entry) !== true) return
      size--
      if (own.size === 0) tenant.owners.delete(owner)
      if (--tenant.size === 0) tenants.delete(tenantId)
    },
    evictFrom(tenantId, owner) {
      const tenant = tenants.get(tenantId)
      const own = tenant?.owners.get(owner)
      if (own !== undefined && own.size >= perOwner) return own
      const tenantIsFull = tenant !== undefined && tenant.size >= perTenant
      if (!tenantIsFull && size < max) return undefined
      const crowded = tenantIsFull || withinTenant ? tenant : largest(tenants.values(), tenant)
      const owners = [...(crowded?.owners.values() ?? [])].filter(mayLose)
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
