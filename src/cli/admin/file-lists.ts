// Lists of tenants, upstreams and endpoints from a configuration file, without their running state. Lists hold no
// secrets: only the origin of a URL and the name of a command. A single entry has its secrets hidden, as in the admin
// API.

import { stringify } from 'yaml'
import { loadConfig } from '../../config/load.ts'
import { nearest } from '../../config/problems.ts'
import { treeOf, type Tree } from '../../config/shape.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { readSource } from '../../config/source.ts'
import { shownDocument } from '../../control/document/tenant-document.ts'
import type { JsonObject } from '../../protocol/messages.ts'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import { orProblems } from '../offline.ts'
import { jsonText, visibleLines } from '../printed.ts'
import { entriesText, textOfFile } from './run-admin.ts'

const tenantOf = ({ id, auth, upstreams, endpoints, policy }: Tenant): JsonObject => ({
  id,
  authentication: auth.mode,
  upstreams: upstreams.size,
  endpoints: endpoints.size,
  policyRules: policy?.rules.length ?? null
})

const upstreamsOf = ({ upstreams }: Tenant): JsonObject[] =>
  [...upstreams.values()].map((each) => ({
    name: each.name,
    type: each.type,
    target: each.type === 'stdio' ? each.command : new URL(each.url).origin,
    isolation: each.isolation
  }))

const endpointsOf = ({ endpoints }: Tenant): JsonObject[] =>
  [...endpoints.values()].map(({ name, path, members, maxTools, policy }) => ({
    name,
    path,
    upstreams: members.map(({ upstream, prefix }) => ({ name: upstream, prefix })),
    maxTools: maxTools ?? null,
    policyRules: policy?.rules.length ?? null
  }))

const listsOfTenants = { upstreams: upstreamsOf, endpoints: endpointsOf }
/** A list has the same columns where it is empty. */
const columns = {
  tenants: ['id', 'authentication', 'upstreams', 'endpoints', 'policyRules'],
  upstreams: ['name', 'type', 'target', 'isolation'],
  endpoints: ['name', 'path', 'upstreams', 'maxTools', 'policyRules']
}

type FileList = keyof typeof columns

/** A list, or one of those that are in it. */
export type FileAnswer = FileList | 'tenant' | 'upstream' | 'endpoint' | 'plan'

/** @returns the exit code: 1 where the file cannot be used. @throws UsageError */
export const runOfFile = async (what: Exclude<FileAnswer, 'plan'>, given: Given, io: Io): Promise<number> =>
  what === 'tenant' || what === 'upstream' || what === 'endpoint'
    ? await runGetOfFile(what, given, io)
    : await runListOfFile(what, given, io)

async function runGetOfFile(
  what: 'tenant' | 'upstream' | 'endpoint',
  given: Given,
  { env, stdout }: Io
): Promise<number> {
  const { config = '', json } = given.options
  const run = async (): Promise<number> => {
    const tenant = tenantIn([...(await loadConfig(config, { env })).tenants.values()], given, config)
    const { tenants } = treeOf(readSource(await textOfFile(config)).value)
    const written = shownDocument(treeOf(treeOf(tenants)[tenant.id]))
    const answer =
      what === 'tenant' ? { id: tenant.id, configuration: written } : partIn(what, tenant, written, given, config)
    stdout.write(
      json === undefined
        ? visibleLines(stringify(answer, { lineWidth: 0, aliasDuplicateObjects: false }))
        : jsonText(answer)
    )
    return 0
  }
  return await orProblems(config, stdout, run, json === undefined ? 'text' : 'json')
}

/** Finds a part of the file by name. @throws UsageError with the existing names */
function partIn(
  what: 'upstream' | 'endpoint',
  tenant: Tenant,
  written: Tree,
  { operands: [, wanted = ''] }: Given,
  file: string
): JsonObject {
  const all = listsOfTenants[`${what}s`](tenant)
  const found = all.find(({ name }) => name === wanted)
  const configuration = treeOf(written[`${what}s`])[wanted]
  if (found !== undefined) return { ...found, ...(configuration !== undefined && { configuration }) }
  const names = all.map(({ name }) => String(name))
  const near = nearest(wanted, names)
  const known = near === undefined ? `It has: ${names.join(', ')}.` : `Did you mean "${near}"?`
  throw new UsageError(`${file}: tenant "${tenant.id}" has no ${what} "${wanted}". ${known}`)
}

async function runListOfFile(list: FileList, given: Given, { env, stdout }: Io): Promise<number> {
  const { config = '', json } = given.options
  const run = async (): Promise<number> => {
    const tenants = [...(await loadConfig(config, { env })).tenants.values()]
    const items = list === 'tenants' ? tenants.map(tenantOf) : listsOfTenants[list](tenantIn(tenants, given, config))
    stdout.write(json === undefined ? entriesText(items, columns[list]) : jsonText(items))
    return 0
  }
  return await orProblems(config, stdout, run, json === undefined ? 'text' : 'json')
}

function tenantIn(tenants: readonly Tenant[], { operands: [wanted = ''] }: Given, file: string): Tenant {
  const found = tenants.find(({ id }) => id === wanted)
  if (found !== undefined) return found
  throw new UsageError(`${file} has no tenant "${wanted}". It has: ${tenants.map(({ id }) => id).join(', ')}.`)
}
