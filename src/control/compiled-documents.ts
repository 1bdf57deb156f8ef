// The documents of tenants, as the journal keeps them and as this process has compiled them.

import type { Problem } from '../config/problems.ts'
import type { Environment } from '../config/references.ts'
import { isTree, listOf, treeOf } from '../config/shape.ts'
import type { Snapshot, Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { canonicalJsonOf } from '../protocol/json-text.ts'
import { tenantId, type TenantId } from '../protocol/messages.ts'
import { compileDocument, contextOfFile } from './compile-document.ts'
import { ControlError } from './control-error.ts'
import type { KeptText } from './version-records.ts'
import { killsIn, stoppedTenant, type DatedKill, type KillsByTenant } from './kills.ts'
import type { TenantDocument } from './tenant-document.ts'

/** Of a document as JSON, and of all. */
const maxDocumentChars = 256 * 1024
const maxAllChars = 16 * 1024 * 1024
const maxDocuments = 2_000
/** Upstreams of one document, and endpoints: each endpoint has a catalog of all that its upstreams offer. */
const maxMembers = 256

/** Of the names of documents in the journal. */
export const documentPrefix = 'tenant/'

export type Documents = ReadonlyMap<string, TenantDocument>

/** One document before and after a change; undefined: there is none. */
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
  log
}: {
  readonly file: () => Snapshot
  readonly env: Environment
  readonly log: Log
}) {
  let documents: Documents = new Map()
  let kills: KillsByTenant = new Map()
  /** By the tenant as it is without its kill switches. */
  const stopped = new WeakMap<Tenant, { readonly killed: readonly DatedKill[]; readonly tenant: Tenant }>()
  let compiled = new Map<string, CompiledDocument>()

  function compiledOf(id: string, document: TenantDocument, context: string): CompiledDocument {
    const before = compiled.get(id)
    if (before?.document.version === document.version && before.context === context) return before
    const found = compileDocument(id, document, file(), env)
    const { version } = document
    if ('tenant' in found) {
      const { tenant, barred } = found
      if (barred.length > 0)
        log.error(
          { tenant: id, version, problems: barred },
          'upstreams of a tenant may not be started, and are left out'
        )
      return { document, context, tenant, problems: barred }
    }
    const { problems } = found
    log.error(
      { tenant: id, version, problems },
      'the document of a tenant cannot be used at this process; the tenant stays as it was'
    )
    return { document, context, tenant: before && stillTrusted(before, document), problems }
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
    /** As it is without its kill switches; undefined where none compiles here. */
    tenantOf: (id: string): Tenant | undefined => file().tenants.get(tenantId(id)) ?? compiled.get(id)?.tenant,
    get documents() {
      return documents
    },
    killsOf: (id: string): readonly DatedKill[] => kills.get(id)?.kills ?? [],
    take(texts: ReadonlyMap<string, KeptText>): void {
      documents = documentsIn(texts, documents)
      kills = killsIn(texts, kills)
    },
    /** Versions have other documents than before. */
    forget(): void {
      documents = new Map()
      kills = new Map()
      compiled = new Map([...compiled].map(([id, each]) => [id, outdated(each)]))
    },
    rereadReferences(): void {
      compiled = new Map([...compiled].map(([id, each]) => [id, each.document.byPlatform ? outdated(each) : each]))
    },
    /** What `tenants` would answer after these changes, which compile. */
    tenantsAfter(changes: readonly DocumentChange[]): Map<TenantId, Tenant> {
      const tenants = inUse()
      for (const { tenant: id, after } of changes) {
        // The file's stays, whatever is behind it.
        if (file().tenants.has(tenantId(id))) continue
        const found = after && compileDocument(id, after, file(), env)
        if (found !== undefined && 'tenant' in found)
          tenants.set(tenantId(id), stoppedTenant(found.tenant, kills.get(id)?.kills ?? []))
        else tenants.delete(tenantId(id))
      }
      return tenants
    },
    problemsOf: (id: string): readonly Problem[] => compiled.get(id)?.problems ?? [],
    /** Those of documents and of the file, which wins where both have one. */
    tenants(): Map<TenantId, Tenant> {
      const context = contextOfFile(file())
      compiled = new Map([...documents].map(([id, document]) => [id, compiledOf(id, document, context)]))
      return inUse()
    }
  }
}

/**
 * What goes on of a document whose next version cannot be used here: without the keys and issuers that were taken away
 * or changed since, because a revocation must not wait until the rest of the document is mended.
 */
function stillTrusted({ document: before, tenant }: CompiledDocument, after: TenantDocument): Tenant | undefined {
  if (tenant === undefined) return undefined
  const isKept = (list: 'keys' | 'issuers', member: 'name' | 'issuer', name: string): boolean => {
    const [one, other] = [before, after].map(({ tree }) =>
      listOf(treeOf(tree['auth'])[list]).find((each) => treeOf(each)[member] === name)
    )
    return one !== undefined && other !== undefined && canonicalJsonOf(one) === canonicalJsonOf(other)
  }
  const { auth } = tenant
  return {
    ...tenant,
    auth: {
      ...auth,
      keys: auth.keys.filter(({ name }) => isKept('keys', 'name', name)),
      issuers: auth.issuers.filter(({ issuer }) => isKept('issuers', 'issuer', issuer))
    }
  }
}

const outdated = (document: CompiledDocument): CompiledDocument => ({ ...document, context: '' })

export const textOfDocument = ({ tree, byPlatform }: Pick<TenantDocument, 'tree' | 'byPlatform'>): string =>
  JSON.stringify({ tree, byPlatform })

/** @param known those of before, which need not be parsed again */
export function documentsIn(texts: ReadonlyMap<string, KeptText>, known: Documents): Documents {
  const parsed = [...texts].flatMap(([name, { version, text }]): Array<[string, TenantDocument]> => {
    if (text === undefined || !name.startsWith(documentPrefix)) return []
    const id = name.slice(documentPrefix.length)
    const before = known.get(id)
    if (before?.version === version) return [[id, before]]
    const value: unknown = JSON.parse(text)
    if (!isTree(value) || !isTree(value['tree'])) return []
    const { tree, byPlatform } = value
    return [[id, { version, tree, byPlatform: byPlatform === true, chars: text.length }]]
  })
  return new Map(parsed)
}

/** Undefined where one cannot be opened: to whoever goes back to these, it would be one that was not there. */
export const wholeDocumentsIn = (texts: ReadonlyMap<string, KeptText> | undefined): Documents | undefined =>
  texts?.values().every(({ text }) => text !== undefined) === true ? documentsIn(texts, new Map()) : undefined

/** @throws ControlError limit_reached */
export function checkSizes(documents: Documents, changes: readonly DocumentChange[]): void {
  const after = new Map(documents)
  for (const { tenant, after: document } of changes)
    if (document === undefined) after.delete(tenant)
    else after.set(tenant, document)
  if (changes.some(({ after: document }) => document !== undefined && document.chars > maxDocumentChars))
    throw isTooMuch('The document')
  if (after.size > maxDocuments && after.size > documents.size) throw isTooMuch('So many tenants')
  const all = [...after.values()].reduce((sum, document) => sum + document.chars, 0)
  if (all > maxAllChars) throw isTooMuch('All documents together')
}

/** @throws ControlError limit_reached */
export function checkMembers(changes: readonly DocumentChange[]): void {
  for (const { after } of changes)
    for (const kind of ['upstreams', 'endpoints'])
      if (Object.keys(treeOf(after?.tree[kind])).length > maxMembers) throw isTooMuch(`More than ${maxMembers} ${kind}`)
}

const isTooMuch = (what: string): ControlError =>
  new ControlError('limit_reached', `${what} would be more than is kept.`, 'Remove what is not needed.')
