// The document of a tenant: what the configuration file holds under `tenants.{id}`, as a tree without defaults. Secrets
// in it can be written and never read: where one stands, a reader gets `{ "secret": true }`, and a writer who sends
// that back keeps what is there.

import { forAllEndpoints, hasEmptyEndpoints, keyDigest } from '../../config/auth/key-rules.ts'
import { createReport, type Path } from '../../config/problems.ts'
import { isTree, listOf, treeOf, type Tree } from '../../config/shape.ts'
import { canonicalJsonOf } from '../../protocol/json-text.ts'
import { ControlError } from '../control-error.ts'
import { placesOfHints } from './tenant-hints.ts'

export interface TenantDocument {
  /** The version that changed it last. */
  readonly version: number
  readonly tree: Tree
  /** Does it have references of a platform-admin? Nobody else's are resolved. */
  readonly byPlatform: boolean
  /** Hosts of its URLs that a tenant-admin named first. */
  readonly tenantHosts: readonly string[]
  /** Hints of tools that a tenant-admin gave, or nobody knows who. */
  readonly tenantHints: readonly string[]
  /** The text as the store keeps it. */
  readonly text: string
}

export const textOfDocument = (document: Omit<TenantDocument, 'version' | 'text'>): string => {
  const { tree, byPlatform, tenantHosts, tenantHints } = document
  return JSON.stringify({
    tree,
    byPlatform,
    ...(tenantHosts.length > 0 && { tenantHosts }),
    // Also where there is none: without the member it is not known.
    ...(placesOfHints(tree).length > 0 && { tenantHints })
  })
}

/** @returns undefined where it is none */
export function documentOf(text: string, version: number): TenantDocument | undefined {
  const value: unknown = JSON.parse(text)
  if (!isTree(value) || !isTree(value['tree'])) return undefined
  const tree = forAllEndpoints(value['tree'])
  const tenantHosts = listOf(value['tenantHosts']).map(String)
  const { tenantHints: hints } = value
  const tenantHints = hints === undefined ? placesOfHints(tree) : listOf(hints).map(String)
  return { version, tree, byPlatform: value['byPlatform'] === true, tenantHosts, tenantHints, text }
}

/** In place of a secret. */
const hidden = { secret: true } as const

const isHidden = (value: unknown): boolean =>
  isTree(value) && value['secret'] === true && Object.keys(value).length === 1

/** One reference to a secret that is kept elsewhere, at most after the scheme of an Authorization header. */
const plainReference = /^(?:[A-Za-z]{1,20} )?\$\{(?:[A-Za-z_][A-Za-z0-9_]*|principal\.[^{}]+|file:[^{}]+)\}$/

/** Members of an upstream whose values are secrets. */
const secretMaps = ['env', 'headers'] as const

const mapped = (tree: unknown, change: (value: unknown, name: string) => unknown): unknown =>
  isTree(tree) ? Object.fromEntries(Object.entries(tree).map(([name, value]) => [name, change(value, name)])) : tree

/** The same tree, with each of its members that `changes` names replaced, where it is there. */
const withMembers = (tree: Tree, changes: Readonly<Record<string, (value: unknown) => unknown>>): Tree =>
  Object.fromEntries(
    Object.entries(tree).map(([name, value]) => [name, Object.hasOwn(changes, name) ? changes[name]?.(value) : value])
  )

/** Members of the `auth` of an upstream whose values are secrets. */
const authSecrets = ['clientSecret', 'privateKey'] as const

const withAuthSecrets = (auth: unknown, change: (secret: unknown, path: Path) => unknown, at: Path = []): unknown => {
  const secret = (member: string) => [member, (value: unknown) => change(value, [...at, member])] as const
  const inner = (value: unknown): unknown => withAuthSecrets(value, change, [...at, 'identityAssertion'])
  return isTree(auth)
    ? withMembers(auth, { ...Object.fromEntries(authSecrets.map(secret)), identityAssertion: inner })
    : auth
}

/** What the admin API shows of an upstream. */
export const shownUpstream = (upstream: unknown): unknown =>
  isTree(upstream)
    ? withMembers(upstream, {
        ...Object.fromEntries(secretMaps.map((member) => [member, (values: unknown) => mapped(values, shownSecret)])),
        auth: (auth) => withAuthSecrets(auth, shownSecret)
      })
    : upstream

/** References tell nothing: what they stand for is kept elsewhere. */
const shownSecret = (value: unknown): unknown =>
  typeof value === 'string' && plainReference.test(value) ? value : hidden

/**
 * `auth` with each secret replaced that the gateway has at an identity provider.
 * @param change called with the secret, its path, and what leads to where it is sent
 */
function withClientSecrets(auth: Tree, change: (secret: unknown, path: Path, target: string) => unknown): Tree {
  const secretIn = (path: Path, target: unknown) => (holder: unknown) =>
    isTree(holder)
      ? withMembers(holder, {
          clientSecret: (secret) =>
            change(
              secret,
              ['auth', ...path, 'clientSecret'],
              canonicalJsonOf([target, holder['url'], holder['issuer'], holder['clientId']])
            )
        })
      : holder
  return withMembers(auth, {
    issuers: (issuers) =>
      Array.isArray(issuers)
        ? issuers.map((each: unknown, index) =>
            isTree(each)
              ? withMembers(each, { introspection: secretIn(['issuers', index, 'introspection'], each['issuer']) })
              : each
          )
        : issuers,
    signIn: secretIn(['signIn'], null),
    login: (login) => (isTree(login) ? withMembers(login, { provider: secretIn(['login', 'provider'], null) }) : login)
  })
}

/** What the admin API shows of a document. */
export function shownDocument(tree: Tree): Tree {
  const shownKey = (key: unknown): unknown =>
    isTree(key) ? withMembers(key, { sha256: () => hidden, previousSha256: () => hidden, key: shownSecret }) : key
  const shownAuth = (auth: Tree): Tree =>
    withClientSecrets(withMembers(auth, { keys: (keys) => listOf(keys).map(shownKey) }), shownSecret)
  return withMembers(tree, {
    upstreams: (upstreams) => mapped(upstreams, shownUpstream),
    auth: (auth) => (isTree(auth) ? shownAuth(auth) : auth)
  })
}

/** Where a secret of the upstream goes: a secret that its writer does not know must not go elsewhere. */
const targetOf = (upstream: unknown): string => {
  const { type, url, command, args, cwd } = treeOf(upstream)
  return canonicalJsonOf({ type, url, command, args, cwd })
}

/** Do these lead their secrets to the same place? */
const sameBut = (auth: unknown, old: Tree): boolean => {
  const [one, other] = [auth, old].map((each) => canonicalJsonOf(withAuthSecrets(each, () => null)))
  return one === other
}

/**
 * A document as it is stored: with the secrets that it keeps of the one before, and keys as their digests.
 * @throws ControlError not_usable
 */
export function storedDocument(wanted: Tree, before: Tree | undefined): Tree {
  const report = createReport(() => undefined)
  const kept = (value: unknown, old: unknown, path: Path, mayKeep: boolean): unknown => {
    if (!isHidden(value)) return value
    if (old !== undefined && mayKeep) return old
    report.add(
      path,
      old === undefined ? 'keeps a secret that is not there' : 'keeps a secret, but leads elsewhere now',
      'Give the secret itself.'
    )
    return value
  }
  const oldUpstreams = treeOf(before?.['upstreams'])
  const storedUpstream = (upstream: unknown, name: string): unknown => {
    const old = Object.hasOwn(oldUpstreams, name) ? oldUpstreams[name] : undefined
    const isSame = targetOf(upstream) === targetOf(old)
    const storedMap = (member: string) => (values: unknown) => {
      const oldValues = treeOf(treeOf(old)[member])
      return mapped(values, (value, key) =>
        kept(
          value,
          Object.hasOwn(oldValues, key) ? oldValues[key] : undefined,
          ['upstreams', name, member, key],
          isSame
        )
      )
    }
    const oldAuth = treeOf(treeOf(old)['auth'])
    const storedAuth = (auth: unknown): unknown =>
      withAuthSecrets(auth, (secret, path) => {
        const before = path.reduce((tree: unknown, member) => treeOf(tree)[member], oldAuth)
        return kept(secret, before, ['upstreams', name, 'auth', ...path], isSame && sameBut(auth, oldAuth))
      })
    const maps = Object.fromEntries(secretMaps.map((member) => [member, storedMap(member)]))
    return isTree(upstream) ? withMembers(upstream, { ...maps, auth: storedAuth }) : upstream
  }
  const oldKeys = new Map(listOf(treeOf(before?.['auth'])['keys']).map((key) => [treeOf(key)['name'], treeOf(key)]))
  const storedKey = (key: unknown, index: number): unknown => {
    if (!isTree(key)) return key
    if (hasEmptyEndpoints(key))
      report.add(
        ['auth', 'keys', index, 'endpoints'],
        'is empty',
        'Give at least one entry, or remove it: then the key is for all endpoints of the tenant.'
      )
    const { key: plain, ...rest } = key
    // A reference is a key of the file's kind: what it stands for is not known here.
    if (typeof plain === 'string' && rest['sha256'] === undefined && plain.length >= 16 && !plain.includes('${'))
      return { ...rest, sha256: keyDigest({ key: plain }) }
    const old = oldKeys.get(key['name'])
    const keptMember = (member: string) => (value: unknown) =>
      kept(value, old?.[member], ['auth', 'keys', index, member], true)
    return withMembers(key, {
      sha256: keptMember('sha256'),
      previousSha256: keptMember('previousSha256'),
      key: keptMember('key')
    })
  }
  const oldSecrets = new Map<string, unknown>()
  withClientSecrets(treeOf(before?.['auth']), (secret, _path, target) => void oldSecrets.set(target, secret))
  const storedSecret = (secret: unknown, path: Path, target: string): unknown =>
    kept(secret, oldSecrets.get(target) ?? [...oldSecrets.values()][0], path, oldSecrets.has(target))
  const tree = withMembers(wanted, {
    upstreams: (upstreams) => mapped(upstreams, storedUpstream),
    auth: (auth) =>
      isTree(auth)
        ? withClientSecrets(
            withMembers(auth, { keys: (keys) => (Array.isArray(keys) ? keys.map(storedKey) : keys) }),
            storedSecret
          )
        : auth
  })
  const path = impossibleKey(tree, [])
  if (path !== undefined) report.add(path, 'is no possible key', 'Use a plain name.')
  const problems = report.problems()
  if (problems.length > 0) throw notUsable(problems)
  return tree
}

export const notUsable = (problems: ControlError['problems']): ControlError =>
  new ControlError('not_usable', 'The configuration cannot be used so.', 'Correct what errors names.', problems)

/** It would be no member of what it is copied into, but its prototype. */
function impossibleKey(value: unknown, path: Path): Path | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    const place = [...path, Array.isArray(value) ? Number(name) : name]
    const found = name === '__proto__' ? place : impossibleKey(member, place)
    if (found !== undefined) return found
  }
  return undefined
}

/** Does a text anywhere in it refer to a variable or file? `$${` stands for itself, and who calls is no secret. */
export const hasReference = (value: unknown): boolean =>
  typeof value === 'string'
    ? value.replaceAll('$${', '\0').replaceAll('${principal.', '\0').includes('${')
    : typeof value === 'object' && value !== null && Object.values(value).some(hasReference)
