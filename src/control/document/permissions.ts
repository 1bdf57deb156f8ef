// What a tenant-admin may not put into the document of a tenant: what would reach beyond the tenant (programs of the
// gateway's machine, its secrets, hosts that only its network reaches), and what a platform-admin has reserved: parts,
// and what reserved rules look at.

import { isAllowedHost } from '../../config/formats.ts'
import type { Problem } from '../../config/problems.ts'
import { pathText } from '../../config/problems.ts'
import type { AdminConfig } from '../../config/snapshot.ts'
import { isTree, listOf, stringOrNone, treeOf, type Tree } from '../../config/shape.ts'
import { canonicalJsonOf } from '../../protocol/json-text.ts'
import { ControlError } from '../control-error.ts'
import { checkReservedRules } from './reserved-rules.ts'
import { hasReference } from './tenant-document.ts'

/**
 * @param before undefined: there is none yet
 * @throws ControlError forbidden
 */
export function checkTenantAdmin(
  before: Tree | undefined,
  next: Tree | undefined,
  { allowedHosts }: Pick<AdminConfig, 'allowedHosts'>
): void {
  if (before === undefined || next === undefined)
    throw refused('Only a platform-admin makes and removes tenants.', 'Ask a platform-admin.')
  checkReserved(before, next)
  checkReservedRules(before, next)
  checkReferences(new Map(unitsOf(before)), unitsOf(next))
  const problems = [...upstreamFaults(before, next, allowedHosts), ...issuerFaults(before, next, allowedHosts)]
  if (problems.length === 0) return
  throw new ControlError('forbidden', 'Only a platform-admin may change this.', 'See errors.', problems)
}

/** Checks that reserved parts, the list of them, and the tenant's resources are unchanged. */
function checkReserved(before: Tree, next: Tree): void {
  for (const place of [...listOf(before['reserved']).map(String), 'reserved', 'grantableScopes', 'resources'])
    if (!isSame(partAt(before, place) ?? null, partAt(next, place) ?? null))
      throw refused(`${place} is reserved for platform-admins.`, 'Ask a platform-admin.')
}

const partAt = (tree: Tree, place: string): unknown =>
  place
    .split('/')
    .reduce<unknown>((part, name) => (isTree(part) && Object.hasOwn(part, name) ? part[name] : undefined), tree)

/** Parts that lead a secret somewhere else only together; each as often as it is there, whatever its form. */
function unitsOf(tree: Tree): ReadonlyArray<readonly [unit: string, value: unknown]> {
  const { upstreams, endpoints, auth, ...others } = tree
  const { keys, issuers, ...rest } = isTree(auth) ? auth : {}
  const named = (kind: string, list: unknown, name: string): Array<[string, unknown]> =>
    Array.isArray(list)
      ? list.map((each: unknown) => [`${kind} ${stringOrNone(treeOf(each)[name])}`, each])
      : [[`all of kind ${kind}`, list]]
  return [
    ...Object.entries(others).map(([member, value]) => [`member ${member}`, value] as const),
    ['upstreams and endpoints', [upstreams, endpoints]],
    ['auth', isTree(auth) ? rest : auth],
    ...named('key', keys, 'name'),
    ...named('issuer', issuers, 'issuer')
  ]
}

/** Checks that references to secrets of the gateway are unchanged, or removed. */
function checkReferences(before: ReadonlyMap<string, unknown>, next: ReturnType<typeof unitsOf>): void {
  for (const [unit, value] of next) {
    const old = before.get(unit)
    if (isSame(value, old)) continue
    if (hasReference(old))
      throw refused(
        `This (${unit}) refers to secrets of the gateway (\${…}): only a platform-admin may change it.`,
        'Ask a platform-admin.'
      )
    if (hasReference(value))
      throw refused('Only a platform-admin may refer to variables and files (${…}).', 'Give the value itself.')
  }
}

const refused = (message: string, remedy: string): ControlError => new ControlError('forbidden', message, remedy)

const isSame = (one: unknown, other: unknown): boolean => canonicalJsonOf(one) === canonicalJsonOf(other)

function upstreamFaults(before: Tree, next: Tree, allowedHosts: readonly string[]): Problem[] {
  const old = treeOf(before['upstreams'])
  return Object.entries(treeOf(next['upstreams'])).flatMap(([name, upstream]): Problem[] => {
    if (isSame(upstream, Object.hasOwn(old, name) ? old[name] : undefined) || !isTree(upstream)) return []
    const path = pathText(['upstreams', name])
    const { command, url } = upstream
    const auth = treeOf(upstream['auth'])
    if (command !== undefined)
      return [{ path, message: 'starts a program', suggestion: 'A platform-admin may add it.' }]
    return [
      ...hostFault(url, `${path}.url`, allowedHosts),
      ...['issuer', 'authorizationUrl', 'tokenUrl', 'revocationUrl', 'accountUrl'].flatMap((member) =>
        hostFault(auth[member], `${path}.auth.${member}`, allowedHosts)
      )
    ]
  })
}

/** The gateway asks an issuer for its keys, and a provider where people sign in for tokens. */
function issuerFaults(before: Tree, next: Tree, allowedHosts: readonly string[]): Problem[] {
  const providersOf = ({ auth }: Tree): Array<readonly [path: string, provider: unknown]> => [
    ['auth.login.provider', treeOf(treeOf(auth)['login'])['provider']],
    ['auth.signIn', treeOf(auth)['signIn']]
  ]
  const known = new Map(providersOf(before))
  const providers = providersOf(next).flatMap(([path, provider]) =>
    isSame(known.get(path) ?? null, provider ?? null)
      ? []
      : hostFault(treeOf(provider)['issuer'], `${path}.issuer`, allowedHosts)
  )
  const issuersOf = (tree: Tree): readonly unknown[] => listOf(treeOf(tree['auth'])['issuers'])
  const old = new Set(issuersOf(before).map(canonicalJsonOf))
  const issuers = issuersOf(next).flatMap((each, index): Problem[] => {
    if (!isTree(each) || old.has(canonicalJsonOf(each))) return []
    const path = pathText(['auth', 'issuers', index])
    const { issuer, jwksUri, introspection } = each
    return Object.entries({ issuer, jwksUri, 'introspection.url': treeOf(introspection)['url'] }).flatMap(
      ([member, url]) => (url === undefined ? [] : hostFault(url, `${path}.${member}`, allowedHosts))
    )
  })
  return [...issuers, ...providers]
}

function hostFault(url: unknown, path: string, allowedHosts: readonly string[]): Problem[] {
  // What is no URL is a fault of its own, which the compiler names.
  if (typeof url !== 'string' || !URL.canParse(url)) return []
  if (isAllowedHost(new URL(url), allowedHosts)) return []
  const suggestion = 'The configuration file lists those that tenant-admins may use under admin.allowedHosts.'
  return [{ path, message: 'names a host that is not allowed', suggestion }]
}
