// Rules between the API keys of a tenant.

import { createHash } from 'node:crypto'
import { checkDoubles, didYouMean, type Path, type Report } from '../problems.ts'
import { isTree, listOf, stringOrNone, treeOf, type Tree } from '../shape.ts'

/**
 * @param endpoints names of those of the tenant; empty where it has only the default one
 * @param path of `keys`
 */
export function checkKeys(keys: readonly unknown[], endpoints: readonly string[], path: Path, report: Report): void {
  checkDoubles(
    keys.map((key) => stringOrNone(treeOf(key)['name'])),
    (index) => [...path, index, 'name'],
    'is the same name as that of',
    report
  )
  const digests = keys.map((key) => keyDigest(treeOf(key)))
  checkDoubles(digests, (index) => [...path, index], 'is the same key as', report)
  // Two keys with one value: the holder of one would pass for the holder of the other.
  keys.forEach((key, index) => {
    const at = digests.indexOf(stringOrNone(treeOf(key)['previousSha256'])?.toLowerCase() ?? '')
    if (at !== -1)
      report.add(
        [...path, index, 'previousSha256'],
        `is the key of entry ${at + 1}`,
        'Remove or change one of the two.'
      )
  })
  const known = endpoints.length === 0 ? ['default'] : endpoints
  keys.forEach((item, index) => {
    if (!isTree(item)) return
    const { key, sha256, previousSha256, previousUntil } = item
    const place = [...path, index]
    if (key === undefined && sha256 === undefined)
      report.add(place, 'has neither key nor sha256', 'Give the key as key: "${NAME}", or its SHA-256.')
    if (key !== undefined && sha256 !== undefined)
      report.add(place, 'has both key and sha256', 'Remove one of the two.')
    if ((previousSha256 === undefined) !== (previousUntil === undefined))
      report.add(
        place,
        'has only one of previousSha256 and previousUntil',
        'Give both: which key it takes the place of, and until when that one is good.'
      )
    listOf(item['endpoints']).forEach((endpoint, at) => {
      if (typeof endpoint !== 'string' || known.includes(endpoint)) return
      report.add(
        [...place, 'endpoints', at],
        'names an endpoint that this tenant does not have',
        () => didYouMean(endpoint, known) ?? `It has: ${known.slice(0, 20).join(', ')}.`
      )
    })
  })
}

export const hasEmptyEndpoints = (key: unknown): boolean =>
  isTree(key) && Array.isArray(key['endpoints']) && key['endpoints'].length === 0

/**
 * Removes `endpoints: []` from the keys of a tenant. The first version stored that for keys of all endpoints; now it is
 * refused.
 */
export function forAllEndpoints(tree: Tree): Tree {
  const { auth } = tree
  const keys = listOf(treeOf(auth)['keys'])
  if (!keys.some(hasEmptyEndpoints)) return tree
  const mended = keys.map((key) => {
    if (!hasEmptyEndpoints(key)) return key
    const { endpoints: _none, ...rest } = treeOf(key)
    return rest
  })
  return { ...tree, auth: { ...treeOf(auth), keys: mended } }
}

/** SHA-256 of an API key in lower-case hexadecimal, given as itself or as its digest. */
export function keyDigest({ key, sha256 }: { readonly key?: unknown; readonly sha256?: unknown }): string | undefined {
  if (typeof sha256 === 'string') return sha256.toLowerCase()
  return typeof key === 'string' ? createHash('sha256').update(key).digest('hex') : undefined
}
