// The lists that a configuration file answers by itself: what it says, and nothing of how that does. No secret is in
// them: of a URL the origin, of a command its name.

import { loadConfig } from '../../config/load.ts'
import type { Tenant } from '../../config/snapshot.ts'
import type { JsonObject } from '../../protocol/messages.ts'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import { orProblems } from '../offline.ts'
import { jsonText } from '../printed.ts'
import { entriesText } from './run-admin.ts'

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

export type FileList = keyof typeof columns

/** @returns the exit code: 1 where the file cannot be used. @throws UsageError */
export async function runListOfFile(list: FileList, given: Given, { env, stdout }: Io): Promise<number> {
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
