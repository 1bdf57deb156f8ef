// What tenants had right before they were removed: a rollback that brings one back brings its kill switches back with
// it, and none of the API keys that were revoked by then.

import type { Tree } from '../config/shape.ts'
import { documentPrefix, documentsIn, type DocumentChange, type Documents } from './compiled-documents.ts'
import type { createJournal } from './journal.ts'
import { killsIn, killsPrefix, withKill, type DatedKill } from './kills.ts'

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

/**
 * The lists of kill switches that a change of documents changes: with a tenant they go, and they come back where its
 * removal is taken back.
 * @param removed of a rollback
 * @returns new texts by name; undefined: removed
 * @throws ControlError limit_reached
 */
export function killTextsAfter(
  changes: readonly DocumentChange[],
  killsOf: (tenant: string) => readonly DatedKill[],
  removed: ReadonlyMap<string, RemovedTenant> = new Map()
): ReadonlyMap<string, string | undefined> {
  const texts = new Map<string, string | undefined>()
  for (const { tenant, before, after } of changes) {
    const kills = killsOf(tenant)
    const last = removed.get(tenant)?.kills ?? []
    if (after === undefined && kills.length > 0) texts.set(killsPrefix + tenant, undefined)
    else if (before === undefined && last.length > 0)
      texts.set(killsPrefix + tenant, JSON.stringify(withKills(kills, last)))
  }
  return texts
}

/** @throws ControlError limit_reached */
const withKills = (kills: readonly DatedKill[], others: readonly DatedKill[]): readonly DatedKill[] =>
  others.reduce((all, kill) => withKill(all, kill) ?? all, kills)
