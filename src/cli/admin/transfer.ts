// Tenants between files and the store of a gateway, both ways, over its admin API: `export` writes those that the API
// manages as a configuration file has them; `import` puts the tenants of such a file into the store.

import { dirname, resolve } from 'node:path'
import { stringify } from 'yaml'
import { countOf, problemLine } from '../../config/problems.ts'
import { letsNobodyIn } from '../../config/rules.ts'
import { readSource } from '../../config/source.ts'
import { isTree, listOf, stringOrNone, treeOf, type Tree } from '../../config/shape.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import { tableText } from '../printed.ts'
import { openAdminApi, type AdminApi } from './admin-client.ts'
import { inFile, orRefusal, textOfFile } from './run-admin.ts'

/** The most tenants, and the most characters, of one atomic request: less than the API's limits. */
const tenantsAtOnce = 50
const charsAtOnce = 200_000

/** @returns the exit code. @throws UsageError */
export async function runExport(given: Given, io: Io): Promise<number> {
  const { stdout, stderr } = io
  const { tenant: only, references } = given.options
  return await orRefusal(io, async () => {
    const api = await openAdminApi(given, io.env)
    const entries = only === undefined ? await api.all('/v1/tenants') : [{ id: only }]
    const tenants: Record<string, Tree> = {}
    const variables = new Set<string>()
    for (const id of entries.map((entry) => String(entry['id'])).sort()) {
      const { body } = await api.send('GET', `/v1/tenants/${encodeURIComponent(id)}`)
      const { configuration, managedBy } = isObject(body) ? body : {}
      const { auth } = treeOf(configuration)
      if (references !== undefined && isTree(auth) && letsNobodyIn(auth))
        stderr.write(
          `note: ${id} lets nobody in: a configuration file is refused until it has an issuer or key there.\n`
        )
      if (isTree(configuration))
        tenants[id] = references === undefined ? configuration : withReferences(id, configuration, variables)
      else if (managedBy === 'file') stderr.write(`note: ${id} stands in the configuration file, and is left out.\n`)
      else stderr.write(`note: ${id} is left out: the role of the key may not read its configuration.\n`)
    }
    const names = [...variables].map((name) => `# ${name}\n`).join('')
    if (names !== '') stdout.write(`# Secrets are never read from a gateway. Set these variables to them:\n${names}`)
    stdout.write(stringify({ tenants }, { lineWidth: 0 }))
    return 0
  })
}

const isHidden = (value: unknown): boolean =>
  isTree(value) && value['secret'] === true && Object.keys(value).length === 1

/** The same configuration with a reference to a variable in place of each secret. */
function withReferences(tenant: string, configuration: Tree, variables: Set<string>): Tree {
  const left = new Set(['upstreams', 'headers', 'env', 'auth', 'provider'])
  function walk(value: unknown, path: readonly string[]): unknown {
    if (isHidden(value)) {
      const parts = [tenant, ...path.filter((part) => !left.has(part))]
      const name = parts
        .join('_')
        .replaceAll(/[^A-Za-z0-9]+/g, '_')
        .replace(/^(?=\d)/, '_')
        .toUpperCase()
      const free = variables.has(name) ? `${name}_${variables.size}` : name
      variables.add(free)
      return `\${${free}}`
    }
    if (Array.isArray(value))
      return value.map((each, at) =>
        walk(each, [...path.slice(0, -1), 'key', stringOrNone(treeOf(each)['name']) ?? String(at)])
      )
    if (!isTree(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, walk(each, [...path, key])]))
  }
  return walk(configuration, []) as Tree
}

/** @param text of a gatehouse configuration. @returns the exit code. @throws UsageError */
export async function runStoreImport(file: string, given: Given, io: Io): Promise<number> {
  const { stdout } = io
  const { prune, 'dry-run': dryRun, 'behind-file': behind } = given.options
  const tenants = tenantsIn(await textOfFile(file), file)
  return await orRefusal(io, async () => {
    const api = await openAdminApi(given, io.env)
    const gone = prune === undefined ? [] : await managedByApi(api)
    const wanted = [...Object.entries(tenants), ...gone.flatMap((id) => (id in tenants ? [] : [[id, null] as const]))]
    const options = behind === undefined ? {} : { behindFile: true }
    let changed = 0
    for (const batch of batchesOf(wanted)) {
      const { body } = await inFile(file, api.send('POST', '/v1/plan', { tenants: batch, ...options }))
      const plan = isObject(body) ? body : {}
      const changes = listOf(plan['tenants']).filter(isObject)
      if (changes.length === 0) continue
      stdout.write(tableText(['TENANT', 'CHANGE', 'CALLERS', 'ENDPOINTS', 'UPSTREAMS'], changes.map(rowOf)))
      changed += changes.length
      if (dryRun !== undefined) continue
      // With the version of the plan: after another change meanwhile the request is refused.
      await inFile(file, api.send('POST', '/v1/apply', { tenants: batch, version: plan['version'], ...options }))
    }
    if (changed === 0) stdout.write('Everything is so already.\n')
    else stdout.write(`${countOf(changed, 'tenant')} ${dryRun === undefined ? 'imported' : 'would change'}.\n`)
    return 0
  })
}

function rowOf({ tenant, change, callersChange, endpoints, upstreams }: JsonObject): string[] {
  const names = (list: unknown, member: string): string =>
    listOf(list)
      .filter(isObject)
      .map((each) => `${String(each[member])} (${String(each['change'])})`)
      .join(', ')
  return [
    String(tenant),
    String(change),
    callersChange === true ? 'checked anew' : '',
    names(endpoints, 'endpoint'),
    names(upstreams, 'upstream')
  ]
}

async function managedByApi(api: AdminApi): Promise<string[]> {
  return (await api.all('/v1/tenants')).filter(({ managedBy }) => managedBy === 'api').map(({ id }) => String(id))
}

/**
 * Reads the tenants of a file, with absolute paths: relative ones depend on the folder of the file.
 * @throws UsageError
 */
export function tenantsIn(text: string, file: string): Tree {
  const { value, report } = readSource(text)
  const problems = report.problems()
  if (problems.length > 0) throw new UsageError(`${file} cannot be used:\n  ${problems.map(problemLine).join('\n  ')}`)
  const { tenants } = treeOf(value)
  if (!isTree(tenants)) throw new UsageError(`${file} has no "tenants". It has to be a configuration of gatehouse.`)
  const folder = dirname(resolve(file))
  return Object.fromEntries(
    Object.entries(tenants).map(([id, tenant]) => [id, tenant === null ? null : withAbsolutePaths(tenant, folder)])
  )
}

const pathMembers: ReadonlySet<string> = new Set(['cwd', 'sandboxRead', 'sandboxWrite'])

function withAbsolutePaths(tenant: unknown, folder: string): unknown {
  const absolute = (path: unknown): unknown =>
    typeof path === 'string' && !path.includes('${') ? resolve(folder, path) : path
  function walk(value: unknown): unknown {
    if (typeof value === 'string')
      return value.replace(/\$\$\{|\$\{file:([^{}]+)\}/g, (all, path: string | undefined) =>
        path === undefined ? all : `\${file:${resolve(folder, path)}}`
      )
    if (Array.isArray(value)) return value.map(walk)
    return isTree(value) ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, walk(each)])) : value
  }
  const tree = treeOf(walk(tenant))
  const upstreams = Object.entries(treeOf(tree['upstreams'])).map(([name, upstream]) => {
    const changed = Object.entries(treeOf(upstream)).map(([member, value]) => {
      if (!pathMembers.has(member)) return [member, value]
      return [member, Array.isArray(value) ? value.map(absolute) : absolute(value)]
    })
    return [name, Object.fromEntries(changed) as Tree]
  })
  return tree['upstreams'] === undefined ? tree : { ...tree, upstreams: Object.fromEntries(upstreams) as Tree }
}

export function batchesOf(entries: ReadonlyArray<readonly [string, unknown]>): Array<Record<string, unknown>> {
  const batches: Array<Record<string, unknown>> = []
  let size = Infinity
  let count = 0
  for (const [id, wanted] of entries) {
    const chars = JSON.stringify(wanted).length
    if (count >= tenantsAtOnce || size + chars > charsAtOnce) {
      batches.push({})
      size = 0
      count = 0
    }
    Object.assign(batches.at(-1) ?? {}, { [id]: wanted })
    size += chars
    count++
  }
  return batches
}
