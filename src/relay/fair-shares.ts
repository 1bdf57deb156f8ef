// Places that are few, shared fairly: who has more than an equal part gives way to who has less, tenant by tenant and caller by caller.

export interface FairSharesOptions {
  readonly perOwner: number
  readonly perTenant: number
  readonly most: number
}

export interface FairShares<T> {
  add (tenant: string, owner: string, each: T): void
  delete (tenant: string, owner: string, each: T): void
  /** Who has to give a place up, so that this owner may have one more: what that owner has. @returns undefined where there is room */
  giver (tenant: string, owner: string): ReadonlySet<T> | undefined
}

interface Group<T> {
  readonly owners: Map<string, Set<T>>
  size: number
}

export function createFairShares<T> ({ perOwner, perTenant, most }: FairSharesOptions): FairShares<T> {
  const tenants = new Map<string, Group<T>>()
  let size = 0

  /** The one who asks, where it has an equal part already; else the one who has most. */
  function pick<G> (groups: ReadonlyMap<string, G>, asking: string, sizeOf: (group: G) => number, total: number): G | undefined {
    const own = groups.get(asking)
    if (own !== undefined && sizeOf(own) * groups.size >= total) return own
    let largest: G | undefined
    for (const group of groups.values()) if (largest === undefined || sizeOf(group) > sizeOf(largest)) largest = group
    return largest
  }

  return {
    add (tenant, owner, each) {
      const group = tenants.get(tenant) ?? { owners: new Map<string, Set<T>>(), size: 0 }
      tenants.set(tenant, group)
      group.owners.set(owner, (group.owners.get(owner) ?? new Set<T>()).add(each))
      group.size++
      size++
    },
    delete (tenant, owner, each) {
      const group = tenants.get(tenant)
      const own = group?.owners.get(owner)
      if (group === undefined || own?.delete(each) !== true) return
      size--
      if (own.size === 0) group.owners.delete(owner)
      if (--group.size === 0) tenants.delete(tenant)
    },
    giver (tenant, owner) {
      const group = tenants.get(tenant)
      const own = group?.owners.get(owner)
      if (own !== undefined && own.size >= perOwner) return own
      const full = group !== undefined && group.size >= perTenant ? group : size >= most ? pick(tenants, tenant, ({ size }) => size, size) : undefined
      return full && pick(full.owners, full === group ? owner : '', ({ size }) => size, full.size)
    }
  }
}
