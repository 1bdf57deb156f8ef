// How a PATCH of the admin API changes a document, or a part of one.

import { isTree, treeOf } from '../../config/shape.ts'

/** JSON Merge Patch (RFC 7396 section 2). */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isTree(patch)) return patch
  const result = new Map(Object.entries(treeOf(target)))
  for (const [name, value] of Object.entries(patch))
    if (value === null) result.delete(name)
    else result.set(name, mergePatch(result.get(name), value))
  return Object.fromEntries(result)
}
