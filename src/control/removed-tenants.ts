// What tenants had right before they were removed: a rollback that brings one back brings its kill switches back with
// it, and none of the API keys that were revoked by then.

import { treeOf, type Tree } from '../config/shape.ts'
import { documentPrefix, documentsIn, type DocumentChange, type Documents } from './compiled-documents.ts'
import type { createJournal } from './journal.ts'
import { killsIn, killsPrefix, killTexts, targetsPrefix, withKill, type DatedKill } from './kills.ts'
import { withoutGone } from './same-targets.ts'

export interface RemovedTenant {
  readonly tree: Tree
  readonly kills: readonly DatedKill[]
}

/** Of what the journal has of a tenant. */
export const textNamesOf = (tenant: string): readonly string[] =>
  [documentPrefix, killsPrefix, targetsPrefix].map((prefix) => prefix + tenant)

/** @returns the version that changed a tenant last, its document or its kill switches, or removed them; 0: none has */
export const lastChangeOf = (journal: Pick<ReturnType<typeof createJournal>, 'versionsOf'>, tenant: string): number =>
  Math.max(0, ...textNamesOf(tenant).map((name) => journal.versionsOf(name).at(-1) ?? 0))

/**
 * @param wanted tenants; those that `now` has are left out
 * @returns without those whose removal is forgotten
 * @throws GatewayError unavailable
 */
export async function removedTenants(
  journal: Pick<ReturnType<typeof createJournal>, 'at' | 'versionsOf'>,
  wanted: Iterable<string>,
  now: Documents
): Promise<ReadonlyMap<string, RemovedTenant>> {
  const removed = new Map<string, RemovedTenant>()
  for (const id of wanted) {
    const removal = journal.versionsOf(documentPrefix + id).at(-1)
    if (now.has(id) || removal === undefined) continue
    const texts = await journal.at(removal - 1, textNamesOf(id))
    const document = documentsIn(texts ?? new Map()).get(id)
    const kills = killsIn(texts ?? new Map(), new Map()).get(id)?.kills ?? []
    if (document !== undefined) removed.set(id, { tree: document.tree, kills })
  }
  return removed
}

/**
 * The lists of kill switches that a change of documents changes: with a tenant they go, and they come back where its
 * removal is taken back; and where an upstream goes, it is not one any more that was there when something was stopped.
 * @param changes of tenants that the file does not have: where it has them they stay, and what is stopped of them
 * @param removed of a rollback
 * @returns new texts by name; undefined: removed
 * @throws ControlError limit_reached
 */
export function killTextsAfter(
  changes: readonly DocumentChange[],
  killsOf: (tenant: string) => readonly DatedKill[],
  removed: ReadonlyMap<string, RemovedTenant> = new Map()
): ReadonlyMap<string, string | undefined> {
  const texts = changes.flatMap(({ tenant, before, after }) => {
    const kills = killsOf(tenant)
    const last = removed.get(tenant)?.kills ?? []
    if (after === undefined) return kills.length === 0 ? [] : [...killTexts(tenant, kills, [])]
    if (before === undefined) return last.length === 0 ? [] : [...killTexts(tenant, kills, withKills(kills, last))]
    const names = new Set(Object.keys(treeOf(after.tree['upstreams'])))
    const now = kills.map(({ same, ...kill }) => ({ ...kill, ...(same && { same: withoutGone(same, names) }) }))
    const isAnyGone = now.some(({ same }, at) => same !== kills[at]?.same)
    // The list itself stays as it is.
    return isAnyGone ? [...killTexts(tenant, kills, now)].filter(([name]) => !name.startsWith(killsPrefix)) : []
  })
  return new Map(texts)
}

/** @throws ControlError limit_reached */
const withKills = (kills: readonly DatedKill[], others: readonly DatedKill[]): readonly DatedKill[] =>
  others.reduce((all, kill) => withKill(all, kill) ?? all, kills)
