// `gatehouse explain` at a running gateway, with its present configuration, including documents of the admin API and
// kill switches.

import { UsageError, type Given, type Io } from '../commands/command.ts'
import { questionOf, textOfAnswer } from '../policy.ts'
import { jsonText, visibleLines } from '../printed.ts'
import { openAdminApi } from './admin-client.ts'
import { orRefusal } from './run-admin.ts'

/** @returns the exit code: 1 where the API refuses. @throws UsageError */
export async function runExplainThere(given: Given, io: Io): Promise<number> {
  const { json, admin: _admin, 'admin-key-file': _file, config: _config, ...options } = given.options
  const { endpoint: wanted, route: name, args, now, ...question } = questionOf(options)
  const { tenant, endpoint } = endpointIn(wanted)
  const body = { ...question, name, arguments: args, ...(options['at'] !== undefined && { at: now.toISOString() }) }
  return await orRefusal(io, async () => {
    const api = await openAdminApi(given, io.env)
    const path = `/v1/tenants/${encodeURIComponent(tenant)}/endpoints/${encodeURIComponent(endpoint)}/explain`
    const { body: answer } = await api.send('POST', path, body)
    const text = textOfAnswer(answer as Parameters<typeof textOfAnswer>[0])
    io.stdout.write(json === undefined ? visibleLines(text) : jsonText(answer))
    return 0
  })
}

/** @param wanted `/t/TENANT/mcp`, `/t/TENANT/ENDPOINT/mcp`, TENANT or TENANT/ENDPOINT. @throws UsageError */
function endpointIn(wanted: string): { readonly tenant: string; readonly endpoint: string } {
  const [, tenant, endpoint = 'default'] =
    /^\/t\/([^/]+)(?:\/([^/]+))?\/mcp$/.exec(wanted) ?? /^([^/]+)(?:\/([^/]+))?$/.exec(wanted) ?? []
  if (tenant !== undefined) return { tenant, endpoint }
  throw new UsageError(`"${wanted}" names no endpoint. Write it as /t/TENANT/mcp, or TENANT/ENDPOINT.`)
}
