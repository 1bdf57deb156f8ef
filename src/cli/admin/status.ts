// `status`: the state of all upstreams of all tenants, at the process that answers.

import type { JsonObject } from '../../protocol/messages.ts'
import { isModernRevision, isObject } from '../../protocol/messages.ts'
import { jsonText, tableText } from '../printed.ts'
import type { Given, Io } from '../commands/command.ts'
import { visible, cellText } from '../../observe/text-log.ts'
import { besideLastLine } from '../../upstream/stdio/start-error.ts'
import { openAdminApi, type AdminApi } from './admin-client.ts'
import { orRefusal } from './run-admin.ts'

const heads = [
  ...['TENANT', 'UPSTREAM', 'TRANSPORT', 'STATE', 'ERA', 'REVISION', 'TOOLS', 'CONNECTIONS', 'PROCESSES', 'CALLS'],
  'NEXT TRY'
]

/** @returns the exit code: 1 where an upstream is away, or the API refuses. @throws UsageError */
export const runStatus = async (given: Given, io: Io): Promise<number> =>
  await orRefusal(io, async () => await runStatusOf(await openAdminApi(given, io.env), given, io))

/** @returns the exit code: 1 where an upstream is away. @throws AdminRefusal */
export async function runStatusOf(api: AdminApi, { options }: Given, { stdout }: Io): Promise<number> {
  const { tenant: only, json } = options
  const ids = only === undefined ? (await api.all('/v1/tenants')).map(({ id }) => String(id)) : [only]
  const upstreams: JsonObject[] = []
  for (const tenant of ids)
    for (const each of await api.all(`/v1/tenants/${encodeURIComponent(tenant)}/upstreams`))
      upstreams.push({ tenant, ...each })
  if (json !== undefined) stdout.write(jsonText(upstreams))
  else {
    stdout.write(tableText(heads, upstreams.map(rowOf)))
    for (const each of upstreams.filter(({ state }) => state === 'away')) stdout.write(`\n${reasonText(each)}`)
    for (const each of upstreams.filter(({ strayLines }) => Number(strayLines) > 0))
      stdout.write(`\n${strayText(each)}`)
  }
  return upstreams.some(({ state }) => state === 'away') ? 1 : 0
}

function rowOf(each: JsonObject): string[] {
  const { tenant, name, type, transport, state, revisions, listing, connections, calls, nextTryAt } = each
  const spoken = Array.isArray(revisions) ? revisions.filter((each) => typeof each === 'string') : []
  const eras = new Set(spoken.map((revision) => (isModernRevision(revision) ? 'modern' : 'legacy')))
  // Each connection to a server over stdio is a process of its own.
  const processes = type === 'stdio' ? connections : ''
  const tools = isObject(listing) ? String(listing['tools']) : ''
  const next = typeof nextTryAt === 'string' ? inSeconds(nextTryAt) : ''
  const era = [...eras].join(', ')
  const revision = spoken.join(', ')
  // Which of the two of HTTP is found out when it is connected.
  const cells = [tenant, name, transport ?? type, state, era, revision, tools, connections, processes, calls, next]
  return cells.map(cellText)
}

function reasonText({ tenant, name, awaySince, lastError, lastStderr }: JsonObject): string {
  const isSaid = typeof lastStderr === 'string'
  const lines = [
    `${String(tenant)}/${String(name)} is away${typeof awaySince === 'string' ? ` since ${awaySince}` : ''}`,
    ...(typeof lastError === 'string' ? [`  ${isSaid ? besideLastLine(lastError) : lastError}`] : []),
    ...(isSaid ? [`  its last line on standard error: ${lastStderr}`] : [])
  ]
  return lines.map((line) => `${visible(line)}\n`).join('')
}

const strayText = ({ tenant, name, strayLines }: JsonObject): string =>
  `${visible(`${String(tenant)}/${String(name)}`)} writes to its standard output what is no message: ` +
  `${String(strayLines)} ${strayLines === 1 ? 'line' : 'lines'} so far\n` +
  '  have it write its log to standard error: an answer among these lines is lost, and its call fails\n'

const inSeconds = (time: string): string => `in ${Math.max(0, Math.ceil((Date.parse(time) - Date.now()) / 1_000))} s`
