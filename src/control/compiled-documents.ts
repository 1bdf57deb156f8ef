// The documents of tenants, as the journal keeps them and as this process has compiled them.

import type { Problem } from '../config/problems.ts'
import type { Environment } from '../config/references.ts'
import type { Snapshot, Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { tenantId, type TenantId } from '../protocol/messages.ts'
import { nextTurn } from '../time/turns.ts'
import { compileDocument, contextOfFile, judgeDocument, type Compiled } from './document/compile-document.ts'
import type { KeptText } from './version-records.ts'
import { killsIn, stoppedTenant, type DatedKill, type KillsByTenant } from './kills.ts'
import type { WorkerJudge } from './document/judge-in-worker.ts'
import { stillTrusted } from './document/still-trusted.ts'
import { targetsIn, type KillTargets } from './same-targets.ts'
import { documentOf, type TenantDocument } from './document/tenant-document.ts'
import { createUnread, unreadProblems } from './document/unread.ts'

/** The prefix of the names of documents in the journal. */
export const documentPrefix = 'tenant/'

export type Documents = ReadonlyMap<string, TenantDocument>

/** A change of one document: before and after; undefined: there is none. */
export interface DocumentChange {
  readonly tenant: string
  readonly before: TenantDocument | undefined
  readonly after: TenantDocument | undefined
}

interface CompiledDocument {
  readonly document: TenantDocument
  readonly context: string
  /** The last that compiled here. */
  readonly tenant: Tenant | undefined
  readonly problems: readonly Problem[]
}

/** @param file what the file says, with the settings that hold until the process ends */
export function createCompiledDocuments({
  file,
  env,
  workerJudge,
  log
}: {
  readonly file: () => Snapshot
  readonly env: Environment
  readonly workerJudge: WorkerJudge
  readonly log: Log
}) {
  let documents: Documents = new Map()
  /** The documents that the next version is expected to have, which need not be parsed and compiled again. */
  let drafts: Documents = new Map()
  const found = new WeakMap<TenantDocument, { readonly context: string; readonly compiled: Compiled }>()
  let kills: KillsByTenant = new Map()
  /** The tenants with their kill switches, by the tenant without them. */
  const stopped = new WeakMap<Tenant, { readonly killed: readonly DatedKill[]; readonly tenant: Tenant }>()
  let compiled = new Map<string, CompiledDocument>()
  let isPrepared = true
  const unread = createUnread()

  /** Compiles a document at once, where it was not compiled before. */
  function compileNow(id: string, document: TenantDocument): Compiled {
    const context = contextOfFile(file())
    const known = found.get(document)
    if (known?.context === JSON.stringify(context)) return known.compiled
    return compileDocument(id, judgeDocument({ id, text: document.text, context }, env), context)
  }

  /** Holds nobody up, however long the document is. */
  async function compileApart(id: string, document: TenantDocument): Promise<Compiled> {
    const context = contextOfFile(file())
    const text = JSON.stringify(context)
    const known = found.get(document)
    if (known?.context === text) return known.compiled
    const made = compileDocument(id, await workerJudge.judge({ id, text: document.text, context }), context)
    found.set(document, { context: text, compiled: made })
    await nextTurn()
    return made
  }

  const isCompiled = (id: string, { version }: TenantDocument, context: string): boolean => {
    const before = compiled.get(id)
    return before?.document.version === version && before.context === context
  }

  function compiledOf(id: string, document: TenantDocument, context: string): CompiledDocument {
    const before = compiled.get(id)
    if (before !== undefined && isCompiled(id, document, context)) return before
    const made = unread.unless(id, () => compileNow(id, document))
    return { document, context: made === undefined ? '' : context, ...usedOf(id, document, made, before, log) }
  }

  function inUse(): Map<TenantId, Tenant> {
    const made = [...compiled].flatMap(([id, { tenant }]) =>
      tenant === undefined ? [] : [[tenantId(id), tenant] as const]
    )
    const all = new Map([...made, ...file().tenants])
    for (const [id, { kills: killed }] of kills) {
      const tenant = all.get(tenantId(id))
      if (tenant === undefined) continue
      const before = stopped.get(tenant)
      const made = before?.killed === killed ? before.tenant : stoppedTenant(tenant, killed)
      stopped.set(tenant, { killed, tenant: made })
      all.set(tenant.id, made)
    }
    return all
  }

  return {
    /** What the tenant has without its kill switches, here and by its newest document where that is not in use here. */
    targetsOf(id: string): readonly KillTargets[] {
      const ofFile = file().tenants.get(tenantId(id))
      if (ofFile !== undefined) return [ofFile]
      const { tenant, problems } = compiled.get(id) ?? {}
      const newest = problems?.length === 0 ? undefined : documents.get(id)
      return [...(tenant ? [tenant] : []), ...(newest ? [targetsIn(newest.tree)] : [])]
    },
    get documents() {
      return documents
    },
    killsOf: (id: string): readonly DatedKill[] => kills.get(id)?.kills ?? [],
    compileApart,
    /** undefined: it cannot be used here. */
    async tenantOfDocument(id: string, document: TenantDocument | undefined) {
      const made = document && (await compileApart(id, document))
      if (document === undefined || made === undefined || !('tenant' in made)) return undefined
      return { tenant: made.tenant, chars: document.text.length }
    },
    /** They are about to be written. */
    expect(changes: readonly DocumentChange[]): void {
      drafts = new Map(changes.flatMap(({ tenant, after }) => (after === undefined ? [] : [[tenant, after]])))
    },
    take(texts: ReadonlyMap<string, KeptText>): void {
      documents = documentsIn(texts, documents, drafts)
      kills = killsIn(texts, kills)
      drafts = new Map()
    },
    /** False where the last `prepare` has failed, or a document could not be read: it is to be tried again. */
    isPrepared: () => isPrepared && unread.isEmpty(),
    /** Has what is new compiled, so that `tenants` does not take long. Leaves out what cannot be read now. */
    async prepare(): Promise<void> {
      isPrepared = false
      unread.clear()
      const context = JSON.stringify(contextOfFile(file()))
      for (const [id, document] of documents)
        if (!isCompiled(id, document, context))
          await compileApart(id, document).catch((error: unknown) => unread.keep(id, error))
      isPrepared = true
    },
    /** Versions have other documents than before. */
    forget(): void {
      documents = new Map()
      kills = new Map()
      compiled = new Map([...compiled].map(([id, each]) => [id, outdated(each)]))
    },
    rereadReferences(): void {
      for (const document of documents.values()) if (document.byPlatform) found.delete(document)
      compiled = new Map([...compiled].map(([id, each]) => [id, each.document.byPlatform ? outdated(each) : each]))
    },
    /** Returns what `tenants` would return after these changes, which compile. */
    tenantsAfter(changes: readonly DocumentChange[]): Map<TenantId, Tenant> {
      const tenants = inUse()
      for (const { tenant: id, after } of changes) {
        // The file's stays, whatever is behind it.
        if (file().tenants.has(tenantId(id))) continue
        const made = after && compileNow(id, after)
        if (made !== undefined && 'tenant' in made)
          tenants.set(tenantId(id), stoppedTenant(made.tenant, kills.get(id)?.kills ?? []))
        else tenants.delete(tenantId(id))
      }
      return tenants
    },
    problemsOf: (id: string): readonly Problem[] => compiled.get(id)?.problems ?? [],
    /**
     * Whether the last `tenants` had a tenant for each document. One whose document cannot be used here was not
     * removed: its accounts and sessions stay.
     */
    hasAll: (): boolean =>
      [...compiled].every(([id, { tenant }]) => tenant !== undefined || file().tenants.has(tenantId(id))),
    /** Returns the tenants of documents and of the file, which wins where both have one. */
    tenants(): Map<TenantId, Tenant> {
      const context = JSON.stringify(contextOfFile(file()))
      compiled = new Map([...documents].map(([id, document]) => [id, compiledOf(id, document, context)]))
      return inUse()
    }
  }
}

/** @param made undefined: it could not be read. @param before what goes on where it cannot be used */
function usedOf(
  id: string,
  document: TenantDocument,
  made: Compiled | undefined,
  before: CompiledDocument | undefined,
  log: Log
): Pick<CompiledDocument, 'tenant' | 'problems'> {
  const { version } = document
  if (made !== undefined && 'tenant' in made) {
    const { tenant, barred } = made
    if (barred.length > 0)
      log.error({ tenant: id, version, problems: barred }, 'upstreams of a tenant may not be started, and are left out')
    return { tenant, problems: barred }
  }
  const { problems } = made ?? { problems: unreadProblems }
  if (made !== undefined)
    log.error(
      { tenant: id, version, problems },
      'the document of a tenant cannot be used at this process; the tenant stays as it was'
    )
  else if (before?.problems !== unreadProblems)
    log.error(
      { tenant: id, version, problems },
      'the document of a tenant cannot be read now; the tenant stays as it was, and it is tried again'
    )
  return { tenant: before && stillTrusted(before, document), problems }
}

const outdated = (document: CompiledDocument): CompiledDocument => ({ ...document, context: '' })

/** @param known those of before, and @param drafts those that may have been written, which need not be parsed again */
export function documentsIn(
  texts: ReadonlyMap<string, KeptText>,
  known: Documents = new Map(),
  drafts: Documents = new Map()
): Documents {
  const parsed = [...texts].flatMap(([name, { version, text }]): Array<[string, TenantDocument]> => {
    if (text === undefined || !name.startsWith(documentPrefix)) return []
    const id = name.slice(documentPrefix.length)
    const before = known.get(id)
    if (before?.version === version) return [[id, before]]
    const draft = drafts.get(id)
    if (draft?.version === version && draft.text === text) return [[id, draft]]
    const document = documentOf(text, version)
    return document === undefined ? [] : [[id, document]]
  })
  return new Map(parsed)
}

/** Undefined where one cannot be opened: to whoever goes back to these, it would be one that was not there. */
export const wholeDocumentsIn = (texts: ReadonlyMap<string, KeptText> | undefined): Documents | undefined =>
  texts?.values().every(({ text }) => text !== undefined) === true ? documentsIn(texts) : undefined
