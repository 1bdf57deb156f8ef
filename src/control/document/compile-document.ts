// From the document of a tenant to its part of the snapshot, by the same schema, rules and compiler as the file's.

import { hash } from 'node:crypto'
import { compile, frozenMap } from '../../config/compile.ts'
import type { JudgedConfig } from '../../config/load.ts'
import { createReport, type Path, type Problem, type Report } from '../../config/problems.ts'
import { resolveReferences, type Environment } from '../../config/references.ts'
import { checkRules } from '../../config/rules.ts'
import { ConfigSchema, type ConfigInput } from '../../config/schema/config.ts'
import { checkShape, treeOf, type Tree } from '../../config/shape.ts'
import { isAllowedHost } from '../../config/formats.ts'
import type { AuthConfig } from '../../config/auth/auth-config.ts'
import type { AdminConfig, Snapshot, Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import { endpointName, tenantId, upstreamName, type UpstreamName } from '../../protocol/messages.ts'
import { documentOf, hasReference, type TenantDocument } from './tenant-document.ts'
import { withTenantHints } from './tenant-hints.ts'

/** Relative paths would depend on where a gateway keeps its file: those of documents are absolute. */
const folder = '/'

/** Variables that would make another program of an allowed command. */
const programVariables = /^(?:PATH|LD_.*|DYLD_.*|NODE_OPTIONS|PYTHONPATH|PYTHONHOME|BASH_ENV|ENV)$/

/** The part of the file that tenants of documents are judged and compiled with. */
type DocumentContext = ReturnType<typeof contextOfFile>

export const contextOfFile = ({ listen, publicUrl, audit, admin, vault, store }: Snapshot) => ({
  /** The members beside the tenants. */
  members: {
    listen,
    ...(store.kind === 'redis' && { store: store.url }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(audit !== undefined && { audit: {} }),
    ...(vault !== undefined && { vault }),
    ...(admin !== undefined && { admin: adminOf(admin) })
  },
  allowedCommands: admin?.allowedCommands ?? [],
  allowedHosts: admin?.allowedHosts ?? []
})

export interface JudgeWork {
  /** The id of the tenant. */
  readonly id: string
  /** The text of the document, as the store keeps it. */
  readonly text: string
  readonly context: DocumentContext
}

interface Barred {
  /** Why upstreams are left out that start programs: the list of programs may be shorter than it was. */
  readonly barred: readonly Problem[]
}

/** A document that can be compiled, or all problems of it. */
export type JudgedDocument =
  | (Omit<JudgedConfig, 'digest'> & Barred & Pick<TenantDocument, 'tenantHosts' | 'tenantHints'>)
  | { readonly problems: readonly Problem[] }

export type Compiled = ({ readonly tenant: Tenant } & Barred) | { readonly problems: readonly Problem[] }

export function judgeDocument({ id, text, context }: JudgeWork, env: Environment): JudgedDocument {
  const { tree = {}, byPlatform = false, tenantHosts = [], tenantHints = [] } = documentOf(text, 0) ?? {}
  // Those of a tenant-admin were refused when it was written; what is here all the same is not looked up.
  if (!byPlatform && hasReference(tree)) {
    const message = 'refers to variables or files'
    const suggestion = 'Only a platform-admin may do so.'
    return { problems: [{ path: '', message, suggestion }] }
  }
  const report = createReport(() => undefined)
  const whole = { tenants: { [id]: tree } }
  const { value, isReference, inserted } = resolveReferences(whole, folder, env, report)
  const { members, allowedCommands } = context
  const config = checkShape(ConfigSchema, { ...treeOf(value), ...members }, report, isReference)
  checkRules(config, report, { ...members.listen, mayLetNobodyIn: true, inserted })
  const input = treeOf(config)
  const wanted = treeOf(treeOf(input['tenants'])[id])
  const barred = createReport(() => undefined)
  const upstreams = Object.entries(treeOf(wanted['upstreams'])).map(([name, upstream]) => {
    const path = ['tenants', id, 'upstreams', name]
    const isAllowed = checkProgram(treeOf(upstream), allowedCommands, path, barred)
    return [name, isAllowed ? upstream : { ...treeOf(upstream), disabled: true }]
  })
  const problemsIn = (found: Report): Problem[] =>
    found.problems().map((each) => ({ ...each, path: withoutPrefix(each.path, `tenants.${id}.`) }))
  const problems = problemsIn(report)
  if (problems.length > 0) return { problems: [...problems, ...problemsIn(barred)] }
  const checked = { ...input, tenants: { [id]: { ...wanted, upstreams: Object.fromEntries(upstreams) } } }
  // What has no problems has the type of the schema.
  return { config: checked as unknown as ConfigInput, inserted, barred: problemsIn(barred), tenantHosts, tenantHints }
}

/** @param judged by `judgeDocument`, with the same tenant and context */
export function compileDocument(id: string, judged: JudgedDocument, context: DocumentContext): Compiled {
  if ('problems' in judged) return judged
  const { config, inserted, barred, tenantHosts, tenantHints } = judged
  const { tenants } = compile(config, { folder, dataDir: undefined, ...context.members.listen, inserted })
  const tenant = tenants.get(tenantId(id))
  if (tenant === undefined) throw new Error('a document was compiled to no tenant')
  const hosts = context.allowedHosts
  const mayBeOfTenant = (url: URL): boolean => isAllowedHost(url, hosts) || tenantHosts.includes(url.hostname)
  /** A host that the operator lists by its own name is reached wherever it is; one below `*.` is whatever DNS says. */
  const publicIn: PublicIn = (urls) => {
    const meant = urls.flatMap((url) => (url === undefined ? [] : new URL(url))).filter(mayBeOfTenant)
    const publicHosts = new Set(meant.map(({ hostname }) => hostname)).difference(new Set(hosts))
    return publicHosts.size === 0 ? {} : { publicHosts: [...publicHosts] }
  }
  const auth = confined(tenant.auth, (issuer) => (mayBeOfTenant(new URL(issuer)) ? { hosts } : {}), publicIn)
  const upstreams = limited(tenant.upstreams, context.allowedCommands, publicIn)
  const endpoints = frozenMap(Object.fromEntries(tenant.endpoints), endpointName, (each) =>
    withTenantHints(each, tenantHints)
  )
  return { tenant: { ...tenant, auth, upstreams, endpoints }, barred }
}

/** Returns the hosts of URLs that have to be public. */
type PublicIn = (urls: ReadonlyArray<string | undefined>) => { readonly publicHosts?: readonly string[] }

/**
 * What may be reached is part of a definition: a program whose digest the operator has named is another one with
 * another digest.
 */
const limited = (
  upstreams: Tenant['upstreams'],
  allowed: AdminConfig['allowedCommands'],
  publicIn: PublicIn
): ReadonlyMap<UpstreamName, UpstreamDefinition> =>
  frozenMap(Object.fromEntries(upstreams), upstreamName, (definition): UpstreamDefinition => {
    if (definition.type === 'stdio') {
      const sha256 = allowed.find(({ command }) => command === definition.command)?.sha256
      if (sha256 === undefined) return definition
      return { ...definition, sha256, hash: hash('sha256', `${definition.hash} ${sha256}`) }
    }
    const { publicHosts } = publicIn([definition.url, ...urlsIn(definition.auth)])
    if (publicHosts === undefined) return definition
    return { ...definition, publicHosts, hash: hash('sha256', `${definition.hash} ${publicHosts.join(' ')}`) }
  })

/** Whichever of them the gateway goes to. */
const urlsIn = (auth: unknown): readonly string[] =>
  Object.values(treeOf(auth)).flatMap((value) =>
    typeof value === 'object' ? urlsIn(value) : typeof value === 'string' && URL.canParse(value) ? value : []
  )

/**
 * Confines an issuer that a tenant-admin may have named: its answers lead to no host that a tenant-admin may not name.
 */
function confined(
  { issuers, login, signIn, ...auth }: AuthConfig,
  hostsOf: (issuer: string) => { readonly hosts?: readonly string[] },
  publicIn: PublicIn
): AuthConfig {
  const within = ({ issuer }: { readonly issuer: string }, ...others: ReadonlyArray<string | undefined>) => ({
    ...hostsOf(issuer),
    ...publicIn([issuer, ...others])
  })
  return {
    ...auth,
    ...(login && { login: { ...login, provider: { ...login.provider, ...within(login.provider) } } }),
    ...(signIn && { signIn: { ...signIn, ...within(signIn) } }),
    issuers: issuers.map((each) => ({ ...each, ...within(each, each.jwksUri, each.introspection?.url) }))
  }
}

/**
 * Returns the admin settings whose digests no API key may have, and whose audience no token for an endpoint may have.
 */
const adminOf = ({ listen, keys, oidc }: AdminConfig) => ({
  listen,
  behindTlsProxy: true,
  keys,
  ...(oidc && {
    oidc: {
      audience: oidc.audience,
      issuers: oidc.issuers.slice(0, 1).map(({ issuer }) => ({ issuer })),
      access: [{ role: 'viewer', subjects: ['nobody'] }]
    }
  })
})

const withoutPrefix = (path: string, prefix: string): string =>
  path.startsWith(prefix) ? path.slice(prefix.length) : path === prefix.slice(0, -1) ? '' : path

/** @param allowed programs that documents may start. @returns may this one be started? */
function checkProgram(
  { command, cwd, env, disabled, sandboxRead, sandboxWrite }: Tree,
  allowed: AdminConfig['allowedCommands'],
  path: Path,
  report: Report
): boolean {
  if (typeof command !== 'string' || disabled === true) return true
  let isAllowed = true
  const bar = (place: Path, message: string, remedy: string): void => {
    isAllowed = false
    report.add([...path, ...place], message, remedy)
  }
  if (!allowed.some((each) => each.command === command))
    bar(
      ['command'],
      'is no program that the admin API may start',
      'The configuration file lists those under admin.allowedCommands.'
    )
  for (const [name, paths] of Object.entries({ cwd: [cwd], sandboxRead, sandboxWrite }))
    for (const path of Array.isArray(paths) ? paths : [])
      if (typeof path === 'string' && !path.startsWith('/')) bar([name], 'is not absolute', 'Begin it with /.')
  for (const name of Object.keys(treeOf(env)))
    if (programVariables.test(name))
      bar(['env', name], 'could make another program of the command', 'Put the upstream into the configuration file.')
  return isAllowed
}
