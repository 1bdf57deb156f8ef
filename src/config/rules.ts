// Rules between values of a configuration: names must exist, nothing is given twice, and nobody is let in by accident.
// They read trees that may have other faults, so that all problems are reported at once. At the end: rules between the
// configuration in use and the next one.

import { checkAdmin } from './admin-rules.ts'
import { checkIssuers } from './auth/issuer-rules.ts'
import { checkKeys, keyDigest } from './auth/key-rules.ts'
import { checkLogin, checkSignIn } from './auth/login-rules.ts'
import { isLoopback } from './formats.ts'
import { checkUpstreamAuth } from './auth/upstream-auth-rules.ts'
import { checkCallLimits, checkPolicy } from './policy/policy-rules.ts'
import { checkDoubles, didYouMean, quoted, type Path, type Report } from './problems.ts'
import { reservedEndpointNames } from './schema/config.ts'
import { isTree, listOf, stringOrNone, treeOf, type Tree } from './shape.ts'

interface RulesContext {
  /** These override the listen address of the file. */
  readonly host?: string | undefined
  readonly port?: number | undefined
  /** A tenant that is being made gets its keys afterwards. */
  readonly mayLetNobodyIn?: boolean
  /** Texts that come from references. */
  readonly inserted?: ReadonlyArray<{ readonly path: Path }>
}

export function checkRules(
  config: unknown,
  report: Report,
  { host, port, mayLetNobodyIn = false, inserted = [] }: RulesContext = {}
): void {
  const insertedPaths = new Set(inserted.map(({ path }) => JSON.stringify(path)))
  const isInserted = (path: Path): boolean => insertedPaths.has(JSON.stringify(path))
  const { publicUrl, tenants, listen, audit, vault, store } = treeOf(config)
  const bound = host ?? stringOrNone(treeOf(listen)['host']) ?? '127.0.0.1'
  if (!isLoopback(bound) && publicUrl === undefined) {
    report.add(
      ['publicUrl'],
      'is missing, and the gateway listens beyond this machine',
      'Give the origin that clients use, such as https://mcp.example.com: tokens are checked against it. Or ' +
        'listen on 127.0.0.1.'
    )
  }
  const apiKeys = Object.values(treeOf(tenants)).flatMap((tenant) => listOf(treeOf(treeOf(tenant)['auth'])['keys']))
  const digests = new Set(apiKeys.map((each) => keyDigest(treeOf(each))))
  checkVault(treeOf(vault), report)
  checkAdmin(treeOf(config), { host: bound, port: port ?? treeOf(listen)['port'] }, digests, report)
  const local = isLoopback(bound) && isOwnMachine(stringOrNone(publicUrl))
  for (const [id, value] of Object.entries(treeOf(tenants))) {
    const path = ['tenants', id]
    const tenant = treeOf(value)
    checkAuth(tenant, [...path, 'auth'], report, { local, mayLetNobodyIn, publicUrl })
    for (const [name, upstream] of Object.entries(treeOf(tenant['upstreams'])))
      checkUpstream(treeOf(upstream), [...path, 'upstreams', name], report, {
        vault,
        store,
        tenantAuth: treeOf(tenant['auth'])
      })
    if ((audit === undefined || audit === 'none') && treeOf(tenant['audit'])['required'] === true)
      report.add(
        [...path, 'audit', 'required'],
        'is true, but nothing is recorded',
        'Say where records go under audit, such as audit: {} for the store, or take it out.'
      )
    checkEndpoints(tenant, path, report)
    checkPolicy(tenant, path, report, tenant, isInserted)
    checkCallLimits(tenant, path, report)
    for (const [name, endpoint] of Object.entries(treeOf(tenant['endpoints'])))
      checkPolicy(treeOf(endpoint), [...path, 'endpoints', name], report, tenant, isInserted)
  }
}

function checkVault({ keys }: Tree, report: Report): void {
  const all = listOf(keys).map(treeOf)
  all.forEach(({ key, awsKms }, index) => {
    if ((key === undefined) === (awsKms === undefined))
      report.add(['vault', 'keys', index], 'needs one of key and awsKms', 'Give 32 random bytes, or a key of AWS KMS.')
  })
  checkDoubles(
    all.map(({ id }) => stringOrNone(id)),
    (index) => ['vault', 'keys', index, 'id'],
    'is the same id as that of',
    report
  )
}

/** With a public name, a proxy makes a gateway that listens on loopback reachable for everybody. */
export function isOwnMachine(publicUrl: string | undefined): boolean {
  return publicUrl === undefined || !URL.canParse(publicUrl) || isLoopback(new URL(publicUrl).hostname)
}

/** @param auth of a tenant: a configuration file has none like this, the admin API gives a new tenant its keys later */
export const letsNobodyIn = ({ issuers, keys, login }: Tree): boolean =>
  listOf(issuers).length === 0 && listOf(keys).length === 0 && login === undefined

function checkAuth(
  { auth, endpoints }: Tree,
  path: Path,
  report: Report,
  { local, mayLetNobodyIn, publicUrl }: { local: boolean; mayLetNobodyIn: boolean; publicUrl: unknown }
): void {
  if (auth === 'none' && !local) {
    report.add(
      path,
      'must not be none: the gateway can be reached from beyond this machine',
      'Add issuers or keys, or listen on 127.0.0.1 without a publicUrl of another machine.'
    )
  }
  if (!isTree(auth)) return
  const issuers = listOf(auth['issuers']).map(treeOf)
  const keys = listOf(auth['keys'])
  if (auth['login'] !== undefined) checkLogin(auth, path, report, publicUrl)
  if (auth['signIn'] !== undefined) checkSignIn(auth, path, report)
  if (letsNobodyIn(auth) && !mayLetNobodyIn)
    report.add(
      path,
      'lets nobody in: it has neither issuers nor keys',
      'Add an issuer or a key; auth: none is for loopback only.'
    )
  checkIssuers(issuers, treeOf(endpoints), [...path, 'issuers'], report)
  checkKeys(keys, Object.keys(treeOf(endpoints)), [...path, 'keys'], report)
}

function checkUpstream(
  upstream: Tree,
  path: Path,
  report: Report,
  around: Parameters<typeof checkUpstreamAuth>[3]
): void {
  const { type, era, headers } = upstream
  checkUpstreamAuth(upstream, path, report, around)
  // HTTP+SSE is the transport of 2024-11-05; revisions without a handshake do not have it.
  if (type === 'sse' && era === 'modern') {
    report.add(
      [...path, 'era'],
      'must not be modern where type is sse: HTTP+SSE has no such revision',
      'Remove era, or give the URL of its Streamable HTTP endpoint and type: streamable-http.'
    )
  }
  // Header names are case-insensitive, so that a YAML map can contain one twice.
  const names = Object.keys(treeOf(headers))
  checkDoubles(
    names.map((name) => name.toLowerCase()),
    (index) => [...path, 'headers', names[index] ?? ''],
    'is the same header as',
    report
  )
}

function checkEndpoints(tenant: Tree, path: Path, report: Report): void {
  const known = new Set(Object.keys(treeOf(tenant['upstreams'])))
  const itHas =
    known.size === 0 ? 'Add it under upstreams.' : `It has: ${[...known].slice(0, 20).map(quoted).join(', ')}.`
  for (const [name, endpoint] of Object.entries(treeOf(tenant['endpoints']))) {
    const place = [...path, 'endpoints', name]
    if (reservedEndpointNames.includes(name))
      report.add(place, 'is a reserved name', `Choose another one; reserved are ${reservedEndpointNames.join(', ')}.`)
    const members = listOf(treeOf(endpoint)['upstreams'])
    const names = members.map((member) => stringOrNone(member) ?? stringOrNone(treeOf(member)['upstream']))
    const at = (index: number): Path => [...place, 'upstreams', index, ...(isTree(members[index]) ? ['upstream'] : [])]
    names.forEach((upstream, index) => {
      if (upstream === undefined || known.has(upstream)) return
      report.add(
        at(index),
        'names an upstream that this tenant does not have',
        () => didYouMean(upstream, known) ?? itHas
      )
    })
    checkDoubles(names, at, 'is the same upstream as', report)
    checkPatterns(treeOf(endpoint), new Set(names.filter((each) => each !== undefined)), place, report)
  }
}

/** Refuses patterns that match nothing: their author would believe that they protect something. */
function checkPatterns(endpoint: Tree, members: ReadonlySet<string>, path: Path, report: Report): void {
  const [first = 'files'] = members
  const example = quoted(`${first}/*`)
  const check = (pattern: unknown, place: Path): void => {
    const [upstream = ''] = String(pattern).split('/')
    if (typeof pattern !== 'string' || upstream.includes('*') || (pattern.includes('/') && members.has(upstream)))
      return
    report.add(
      place,
      'begins with no upstream of this endpoint',
      () => didYouMean(upstream, members) ?? `Write UPSTREAM/NAME, such as ${example}; * stands for any text.`
    )
  }
  for (const key of ['allow', 'deny'])
    for (const [kind, patterns] of Object.entries(treeOf(endpoint[key])))
      listOf(patterns).forEach((pattern, index) => check(pattern, [...path, key, kind, index]))
  listOf(endpoint['order']).forEach((pattern, index) => check(pattern, [...path, 'order', index]))
  const tools = Object.entries(treeOf(endpoint['tools']))
  for (const [tool] of tools) check(tool, [...path, 'tools', tool])
  checkDoubles(
    tools.map(([, change]) => stringOrNone(treeOf(change)['rename'])),
    (index) => [...path, 'tools', tools[index]?.[0] ?? '', 'rename'],
    'is the same name as that of',
    report
  )
  tools.forEach(([tool, change]) => {
    const { fixed, defaults } = treeOf(change)
    const both = Object.keys(treeOf(fixed)).find((name) => Object.hasOwn(treeOf(defaults), name))
    if (both !== undefined)
      report.add([...path, 'tools', tool, 'defaults', both], 'is fixed as well', 'Remove one of the two.')
  })
}
