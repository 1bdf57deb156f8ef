// Rules between values of `admin`: the listen address, the keys and the roles.

import { checkIssuers } from './auth/issuer-rules.ts'
import { isLoopback } from './formats.ts'
import { checkDoubles, type Path, type Report } from './problems.ts'
import { isTree, listOf, stringOrNone, treeOf, type Tree } from './shape.ts'

/**
 * @param bound where the gateway itself listens
 * @param apiKeys digests of the keys of tenants
 */
export function checkAdmin(
  config: Tree,
  bound: { readonly host: string; readonly port: unknown },
  apiKeys: ReadonlySet<string | undefined>,
  report: Report
): void {
  const admin = treeOf(config['admin'])
  const { host, port } = treeOf(admin['listen'])
  if (typeof host === 'string' && !isLoopback(host) && admin['behindTlsProxy'] !== true)
    report.add(
      ['admin', 'listen', 'host'],
      'is beyond this machine, where admin keys would travel in the clear',
      'Listen on 127.0.0.1. Or put a proxy before it that speaks TLS, keep everybody else from the port, and set ' +
        'admin.behindTlsProxy to true.'
    )
  if (port !== undefined && port !== 0 && port === bound.port && (host === bound.host || isAny(host, bound.host)))
    report.add(['admin', 'listen', 'port'], 'is the port of the gateway itself', 'Choose another one, such as 8081.')
  const keys = listOf(admin['keys']).map(treeOf)
  const at =
    (...rest: readonly string[]) =>
    (index: number): Path => ['admin', 'keys', index, ...rest]
  checkDoubles(
    keys.map(({ name }) => stringOrNone(name)),
    at('name'),
    'is the same name as that of',
    report
  )
  checkDoubles(
    keys.map(({ sha256 }) => stringOrNone(sha256)?.toLowerCase()),
    at('sha256'),
    'is the same key as',
    report
  )
  checkPrograms(listOf(admin['allowedCommands']), report)
  if (config['admin'] === undefined && isTree(config['tenants']) && Object.keys(config['tenants']).length === 0)
    report.add(['tenants'], 'is empty', 'Give at least one entry, or an admin API that makes them.')
  checkOidc(admin, treeOf(config['tenants']), report)
  const access = listOf(treeOf(admin['oidc'])['access']).map(treeOf)
  access.forEach((each, index) => checkScope(each, ['admin', 'oidc', 'access', index], report))
  keys.forEach(({ role, tenants, sha256 }, index) => {
    checkScope({ role, tenants }, at()(index), report)
    if (typeof sha256 === 'string' && apiKeys.has(sha256.toLowerCase()))
      report.add(at('sha256')(index), 'is an API key of a tenant, too', 'Make one with: gatehouse admin-key new.')
  })
}

const isAny = (...hosts: readonly unknown[]): boolean => hosts.some((host) => host === '0.0.0.0' || host === '::')

/** Refuses two entries for one program: which digest is checked would depend on their order. */
function checkPrograms(allowed: readonly unknown[], report: Report): void {
  const commandOf = (each: unknown): string | undefined =>
    typeof each === 'string' ? each : stringOrNone(treeOf(each)['command'])
  const byDigest = new Set(allowed.filter(isTree).map(commandOf))
  checkDoubles(
    allowed.map((each) => (byDigest.has(commandOf(each)) ? commandOf(each) : undefined)),
    (index) => ['admin', 'allowedCommands', index],
    'is the same program as that of',
    report
  )
}

/** Checks for which tenants a role is. */
function checkScope({ role, tenants }: Tree, path: Path, report: Report): void {
  if (role === 'tenant-admin' && tenants === undefined)
    report.add(path, 'names no tenants', 'List those that it may change under tenants.')
  if ((role === 'platform-admin' || role === 'metrics') && tenants !== undefined)
    report.add([...path, 'tenants'], `belongs to other roles: ${role} is for all tenants`, 'Remove it.')
}

/** Checks the rules for administrators who authenticate by tokens. */
function checkOidc({ oidc }: Tree, tenants: Tree, report: Report): void {
  if (!isTree(oidc)) return
  const path = ['admin', 'oidc']
  const issuers = listOf(oidc['issuers']).map(treeOf)
  checkIssuers(issuers, {}, [...path, 'issuers'], report)
  const { audience, login } = oidc
  if (isTree(login) && !listOf(login['scopes'] ?? ['openid']).includes('openid'))
    report.add([...path, 'login', 'scopes'], 'has no openid', 'Add it: nobody can sign in without.')
  const places = new Set([...issuers.map((each) => each['issuer']), treeOf(login)['issuer']].filter(Boolean))
  const audiencesOf = (each: unknown): readonly unknown[] =>
    ['audiences', 'otherAudiences'].flatMap((member) => listOf(treeOf(each)[member]))
  for (const [id, tenant] of Object.entries(tenants)) {
    const { auth, endpoints } = treeOf(tenant)
    const all = [...listOf(treeOf(auth)['issuers']), ...Object.values(treeOf(endpoints))].flatMap(audiencesOf)
    if (all.includes(audience))
      report.add(
        ['tenants', id],
        'accepts tokens that are for the admin API',
        'Take admin.oidc.audience out of audiences and otherAudiences: administrators have tokens of their own.'
      )
  }
  if (typeof audience === 'string' && /\/t\/[^/]+\/(?:[^/]+\/)?mcp$/.test(audience))
    report.add([...path, 'audience'], 'is the URL of an endpoint', 'Use one for the admin API alone.')
  listOf(oidc['access']).forEach((each, index) => {
    const { issuers: ofIssuers, subjects, groups, roles } = treeOf(each)
    const place = [...path, 'access', index]
    if (subjects === undefined && groups === undefined && roles === undefined)
      report.add(place, 'lets in whoever has a token', 'Say which subjects, groups or roles.')
    if (places.size > 1 && ofIssuers === undefined)
      report.add(place, 'names no issuer, and there are several: the same name at two is two', 'Add issuers.')
  })
}
