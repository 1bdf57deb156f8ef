// Rules between values of `admin`: who reaches it, and who may do what with which key.

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
  if (config['admin'] === undefined && isTree(config['tenants']) && Object.keys(config['tenants']).length === 0)
    report.add(['tenants'], 'is empty', 'Give at least one entry, or an admin API that makes them.')
  keys.forEach(({ role, tenants, sha256 }, index) => {
    if (typeof sha256 === 'string' && apiKeys.has(sha256.toLowerCase()))
      report.add(at('sha256')(index), 'is an API key of a tenant, too', 'Make one with: gatehouse admin-key new.')
    if (role === 'tenant-admin' && tenants === undefined)
      report.add(at()(index), 'names no tenants', 'List those that it may change under tenants.')
    if ((role === 'platform-admin' || role === 'metrics') && tenants !== undefined)
      report.add(at('tenants')(index), `belongs to other roles: ${role} is for all tenants`, 'Remove it.')
  })
}

const isAny = (...hosts: readonly unknown[]): boolean => hosts.some((host) => host === '0.0.0.0' || host === '::')
