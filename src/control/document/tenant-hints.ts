// Whose the hints are that endpoints give tools (their annotations): rules that a platform-admin has reserved allow
// by none of a tenant-admin, who would decide them otherwise.

import { hintTags } from '../../config/policy/policy-config.ts'
import { treeOf, type Tree } from '../../config/shape.ts'
import type { Endpoint } from '../../config/snapshot.ts'

/** As `HINT ENDPOINT UPSTREAM/NAME`, with the value. */
function hintsIn(tree: Tree = {}): ReadonlyMap<string, unknown> {
  return new Map(
    Object.entries(treeOf(tree['endpoints'])).flatMap(([endpoint, each]) =>
      Object.entries(treeOf(treeOf(each)['tools'])).flatMap(([tool, change]) => {
        const annotations = treeOf(treeOf(change)['annotations'])
        return hintTags.flatMap(([hint]) =>
          annotations[hint] === undefined ? [] : [[`${hint} ${endpoint} ${tool}`, annotations[hint]] as const]
        )
      })
    )
  )
}

/** All hints of a document whose authors are not known: versions before did not keep them. */
export const placesOfHints = (tree: Tree): string[] => [...hintsIn(tree).keys()]

/** Whoever leaves a hint as it is has not given it: it is whose it was. */
export function tenantHintsIn(
  tree: Tree,
  before: { readonly tree: Tree; readonly tenantHints: readonly string[] } | undefined,
  isPlatform: boolean
): readonly string[] {
  const known = hintsIn(before?.tree)
  const kept = new Set(before?.tenantHints)
  return [...hintsIn(tree)].flatMap(([place, value]) =>
    (known.get(place) === value ? kept.has(place) : !isPlatform) ? place : []
  )
}

/** The endpoint, with the hints of its tools marked that a tenant-admin gave. */
export function withTenantHints(endpoint: Endpoint, tenantHints: readonly string[]): Endpoint {
  const { tools, name } = endpoint
  if (tools === undefined) return endpoint
  const own = new Set(tenantHints)
  const marked = Object.entries(tools).map(([tool, change]) => {
    const found = hintTags.flatMap(([hint]) => (own.has(`${hint} ${name} ${tool}`) ? hint : []))
    return [tool, found.length === 0 ? change : { ...change, tenantHints: found }]
  })
  return { ...endpoint, tools: Object.fromEntries(marked) }
}
