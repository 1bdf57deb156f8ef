// The names that stand in the series of each tenant: of tools and prompts, of upstreams, and codes of errors, each
// within bounds of its own. A name has its place as long as it has a series.

import type { Attributes } from './call-attributes.ts'

export type LabelKind = 'names' | 'upstreams' | 'codes'

/** Of a tenant; names are those of tools and prompts. Further ones count as `other`. */
const maxPerTenant: Readonly<Record<LabelKind, number>> = { names: 200, upstreams: 200, codes: 50 }

const kindOf: Readonly<Record<string, LabelKind>> = {
  'gen_ai.tool.name': 'names',
  'gen_ai.prompt.name': 'names',
  'gatehouse.upstream': 'upstreams',
  'rpc.response.status_code': 'codes'
}

export type LabelNames = ReturnType<typeof createLabelNames>

export function createLabelNames() {
  /** Of each tenant and kind, how many series have a name. */
  const tenants = new Map<string, Record<LabelKind, Map<string, number>>>()

  function count(tenant: string, attributes: Attributes, change: 1 | -1): void {
    const counts = tenants.get(tenant) ?? { names: new Map(), upstreams: new Map(), codes: new Map() }
    tenants.set(tenant, counts)
    for (const [label, kind] of Object.entries(kindOf)) {
      const name = attributes[label]
      if (name === undefined || name === 'other') continue
      const now = (counts[kind].get(name) ?? 0) + change
      if (now > 0) counts[kind].set(name, now)
      else counts[kind].delete(name)
    }
    if (Object.values(counts).every((names) => names.size === 0)) tenants.delete(tenant)
  }

  return {
    /** It has its place, or there is room for it. */
    has(tenant: string, kind: LabelKind, name: string): boolean {
      const known = tenants.get(tenant)?.[kind]
      return known === undefined || known.has(name) || known.size < maxPerTenant[kind]
    },
    /** A series was made. */
    added: (tenant: string, attributes: Attributes): void => count(tenant, attributes, 1),
    /** A series has made room. */
    removed: (tenant: string, attributes: Attributes): void => count(tenant, attributes, -1)
  }
}
