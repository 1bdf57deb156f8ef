// What tenants had right before they were removed: a rollback that brings one back brings its kill switches back with
// it, and none of the API keys that were revoked by then.

import type { Tree } from '../config/shape.ts'
import { documentPrefix, documentsIn, type Documents } from './compiled-documents.ts'
import type { createJournal } from './journal.ts'
import { killsIn, type DatedKill } from './kills.ts'

export interface RemovedTenant {
  readonly tree: Tree
  readonly kills: readonly DatedKill[]
}

/**
 * @param wanted tenants; those that `now` has are left out
 * @returns without those whose removal is not among the versions that are kept
 * @throws GatewayError unavailable
 */
export async function removedTenants(
  journal: Pick<ReturnType<typeof createJournal>, 'at' | 'history'>,
  wanted: Iterable<string>,
  now: Documents
): Promise<ReadonlyMap<string, RemovedTenant>> {
  const missing = new Set([...wanted].filter((id) => !now.has(id)))
  const removed = new Map<string, RemovedTenant>()
  if (missing.size === 0) return removed
  for (const { version, names } of await journal.history(Infinity, Infinity)) {
    const ids = [...missing].filter((id) => names.includes(documentPrefix + id))
    if (ids.length === 0) continue
    const texts = (await journal.at(version - 1)) ?? new Map()
    const [documents, kills] = [documentsIn(texts, new Map()), killsIn(texts, new Map())]
    for (const id of ids) {
      missing.delete(id)
      const document = documents.get(id)
      if (document !== undefined) removed.set(id, { tree: document.tree, kills: kills.get(id)?.kills ?? [] })
    }
  }
  return removed
}
