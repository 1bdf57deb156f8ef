// Whether a change may be made: by this author, of a tenant that the file does not have, within the limits, to
// documents that compile.

import { countOf, maxProblems, type Problem } from '../config/problems.ts'
import type { Environment } from '../config/references.ts'
import type { Tree } from '../config/shape.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { tenantId } from '../protocol/messages.ts'
import { canonicalJsonOf } from '../protocol/json-text.ts'
import { compileDocument } from './compile-document.ts'
import { checkMembers, checkSizes, textOfDocument, type DocumentChange, type Documents } from './compiled-documents.ts'
import { ControlError } from './control-error.ts'
import { checkTenantAdmin } from './permissions.ts'
import type { RemovedTenant } from './removed-tenants.ts'
import { hasReference, keepsReferences, notUsable, storedDocument } from './tenant-document.ts'
import type { ChangeAuthor } from './version-record.ts'

/** New trees by tenant, without their secrets where they keep them; undefined: the tenant is removed. */
export type WantedChange = ReadonlyMap<string, Tree | undefined>

export interface Wish {
  readonly author: ChangeAuthor
  /** Such as `tenant.put`. */
  readonly action: string
  /** Judges the documents of the moment; called again where another writer was first. @throws whatever refuses it */
  readonly change: (documents: Documents) => WantedChange
  /** Judges what would be another document than now. @throws whatever refuses it */
  readonly admit?: (change: DocumentChange) => void
  /** Of tenants of the file, too: what is written is in force once the file has them no more. */
  readonly isBehindFile?: boolean
  /** Of a rollback: tenants that it makes anew get the kill switches that they had last. */
  readonly removed?: ReadonlyMap<string, RemovedTenant>
}

interface JudgeOptions {
  /** What the file says, with the settings that hold until the process ends. */
  readonly file: () => Snapshot
  readonly env: Environment
  /** Those of the moment, and the number of the last version. */
  readonly documents: () => Documents
  readonly version: () => number
}

export function createJudge({ file, env, documents: documentsNow, version }: JudgeOptions) {
  function checkOwner(tenant: string): void {
    if (!file().tenants.has(tenantId(tenant))) return
    throw new ControlError(
      'managed_by_file',
      `The tenant ${tenant} stands in the configuration file, where alone it can be changed.`,
      'Change the file: it is applied while the gateway runs.'
    )
  }

  /** What a change comes to, without what changes nothing. @throws ControlError */
  function judge({ author, change, admit, isBehindFile = false }: Wish): DocumentChange[] {
    const documents = documentsNow()
    const changes = [...change(documents)].flatMap(([tenant, wanted]): DocumentChange[] => {
      if (!isBehindFile || author.role !== 'platform-admin') checkOwner(tenant)
      const before = documents.get(tenant)
      const tree = wanted && storedDocument(wanted, before?.tree)
      if (author.role !== 'platform-admin') {
        const { admin } = file()
        checkTenantAdmin(before?.tree, tree, admin ?? { allowedHosts: [] })
      }
      if (tree === undefined || canonicalJsonOf(tree) === canonicalJsonOf(before?.tree))
        return tree === undefined && before !== undefined ? [{ tenant, before, after: undefined }] : []
      // A tenant-admin leaves references as they are, or takes them out.
      const mayRefer =
        author.role === 'platform-admin' || (before?.byPlatform === true && keepsReferences(before.tree, tree))
      const byPlatform = mayRefer && hasReference(tree)
      const chars = textOfDocument({ tree, byPlatform }).length
      return [{ tenant, before, after: { version: version() + 1, tree, byPlatform, chars } }]
    })
    for (const each of changes) admit?.(each)
    checkSizes(documents, changes)
    checkUse(changes)
    checkMembers(changes)
    return changes
  }

  /** @throws ControlError not_usable, with the faults of all documents together within the limit of one */
  function checkUse(changes: readonly DocumentChange[]): void {
    const problems: Problem[] = []
    let unread = 0
    for (const { tenant, after } of changes) {
      if (after === undefined) continue
      if (problems.length >= maxProblems) {
        unread++
        continue
      }
      const found = compileDocument(tenant, after, file(), env)
      const faults = 'tenant' in found ? found.barred : found.problems
      problems.push(
        ...(changes.length === 1 ? faults : faults.map((each) => ({ ...each, path: `${tenant}.${each.path}` })))
      )
    }
    if (problems.length === 0) return
    if (problems.length <= maxProblems && unread === 0) throw notUsable(problems)
    const shown = problems.slice(0, maxProblems - 1)
    const more = countOf(problems.length - shown.length, 'more problem')
    const message = `has ${more}, and ${countOf(unread, 'tenant')} not read yet`
    throw notUsable([...shown, { path: '', message, suggestion: 'Mend these first.' }])
  }

  return { judge, checkOwner }
}
