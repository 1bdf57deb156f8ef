// Whether a change may be made: by this author, of a tenant that the file does not have, within the limits, to
// documents that compile.

import { countOf, maxProblems, type Problem } from '../config/problems.ts'
import type { Tree } from '../config/shape.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { tenantId } from '../protocol/messages.ts'
import type { createCompiledDocuments, DocumentChange, Documents } from './compiled-documents.ts'
import { checkMembers, checkSizes } from './document-limits.ts'
import { ControlError } from './control-error.ts'
import type { WorkerJudge } from './document/judge-in-worker.ts'
import { checkTenantAdmin } from './document/permissions.ts'
import type { RemovedTenant } from './removed-tenants.ts'
import { documentOf, notUsable } from './document/tenant-document.ts'
import type { ChangeAuthor } from './version-record.ts'

/** New trees by tenant, without their secrets where they keep them; undefined: the tenant is removed. */
export type WantedChange = ReadonlyMap<string, Tree | undefined>

export interface ChangeRequest {
  readonly author: ChangeAuthor
  /** Such as `tenant.put`. */
  readonly action: string
  /** Judges the documents of the moment; called again where another writer was first. @throws whatever refuses it */
  readonly change: (documents: Documents) => WantedChange
  /** Counts what judging a document costs, before it is judged. @throws whatever refuses it */
  readonly charge?: (chars: number) => void
  /** Judges what would be another document than now. @throws whatever refuses it */
  readonly admit?: (change: DocumentChange) => void
  /** Of tenants of the file, too: what is written is in force once the file has them no more. */
  readonly isBehindFile?: boolean
  /** Of a rollback: tenants that it makes anew get the kill switches that they had last. */
  readonly removed?: ReadonlyMap<string, RemovedTenant>
  /** Of a rollback: the documents that it takes up again, by tenant. */
  readonly past?: Documents
}

interface JudgeOptions {
  /** What the file says, with the settings that hold until the process ends. */
  readonly file: () => Snapshot
  readonly compiled: Pick<ReturnType<typeof createCompiledDocuments>, 'documents' | 'compileApart'>
  readonly workerJudge: Pick<WorkerJudge, 'draft'>
  /** The number of the last version. */
  readonly version: () => number
}

export function createJudge({ file, compiled, workerJudge, version }: JudgeOptions) {
  function checkOwner(tenant: string): void {
    if (!file().tenants.has(tenantId(tenant))) return
    throw new ControlError(
      'managed_by_file',
      `The tenant ${tenant} stands in the configuration file, where alone it can be changed.`,
      'Change the file: it is applied while the gateway runs.'
    )
  }

  /** @returns undefined where it changes nothing. @throws ControlError */
  async function changeOf(
    { author: { role }, isBehindFile = false, charge, past }: ChangeRequest,
    tenant: string,
    wanted: Tree | undefined
  ): Promise<DocumentChange | undefined> {
    const isPlatform = role === 'platform-admin'
    if (!isBehindFile || !isPlatform) checkOwner(tenant)
    const before = compiled.documents.get(tenant)
    const { egress, admin: { allowedHosts } = { allowedHosts: [] } } = file()
    if (wanted === undefined) {
      if (!isPlatform) checkTenantAdmin(before?.tree, undefined, { allowedHosts })
      return before && { tenant, before, after: undefined }
    }
    const draft = JSON.stringify(wanted)
    const old = before?.text
    charge?.(Math.max(draft.length, old?.length ?? 0))
    const { tenantHosts, tenantHints } = past?.get(tenant) ?? {}
    const restored = tenantHosts && tenantHints && { tenantHosts, tenantHints }
    const text = await workerJudge.draft({
      role,
      reach: { allowedHosts, egress },
      before: old,
      wanted: draft,
      restored
    })
    return text === undefined ? undefined : { tenant, before, after: documentOf(text, version() + 1) }
  }

  /** What a change comes to, without what changes nothing. @throws ControlError */
  async function judge(request: ChangeRequest): Promise<DocumentChange[]> {
    const { documents } = compiled
    const changes: DocumentChange[] = []
    for (const [tenant, wanted] of request.change(documents)) {
      const change = await changeOf(request, tenant, wanted)
      if (change !== undefined) changes.push(change)
    }
    for (const each of changes) request.admit?.(each)
    checkSizes(documents, changes)
    await checkUse(changes)
    checkMembers(changes)
    return changes
  }

  /** @throws ControlError not_usable, with the faults of all documents together within the limit of one */
  async function checkUse(changes: readonly DocumentChange[]): Promise<void> {
    const problems: Problem[] = []
    let unread = 0
    for (const { tenant, after } of changes) {
      if (after === undefined) continue
      if (problems.length >= maxProblems) {
        unread++
        continue
      }
      const made = await compiled.compileApart(tenant, after)
      const faults = 'tenant' in made ? made.barred : made.problems
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
