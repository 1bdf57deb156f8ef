// Runs one command over the admin API.

import { readFile } from 'node:fs/promises'
import { text as textOf } from 'node:stream/consumers'
import { parse, stringify } from 'yaml'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { cellText } from '../../observe/text-log.ts'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import { timeAfter } from '../api-key.ts'
import { jsonText, tableText, visibleLines, wrapped } from '../printed.ts'
import { AdminRefusal, openAdminApi, type AdminApi } from './admin-client.ts'
import type { AdminRow } from './change-rows.ts'

/** @returns the exit code: 1 where the API refuses. @throws UsageError */
export async function runAdminRow(row: AdminRow, given: Given, io: Io): Promise<number> {
  return await orRefusal(io, async () => {
    const api = await openAdminApi(given, io.env)
    const { json, undo } = given.options
    const isList = row.path.endsWith('*')
    const path = pathOf(row, given) + queryOf(row, given)
    const body = await bodyOf(row, given, io)
    if (isList || row.body === 'catalog') {
      const items = isList ? await api.all(path) : await pagesOf(api, path, body as JsonObject)
      if (json !== undefined) io.stdout.write(jsonText(items))
      else if (row.name === 'problems' && items.length > 0) io.stdout.write(items.map(problemText).join('\n'))
      else io.stdout.write(entriesText(items, row.columns ?? []))
      return 0
    }
    const method = undo === undefined ? row.method : 'DELETE'
    const file = fileOf(row, given)
    const sent = api.send(method, path, body, await ifMatchOf(row, path, api))
    const answer = await (file === undefined ? sent : inFile(file, sent))
    if (json !== undefined) io.stdout.write(jsonText(answer.body === '' ? null : answer.body))
    else if (row.done !== undefined)
      io.stdout.write(`${undo === undefined ? row.done : 'taken back'}\n${besidesText(answer.body)}`)
    else if (row.body === 'key') io.stdout.write(`${String((answer.body as JsonObject)['key'])}\n`)
    else io.stdout.write(visibleLines(stringify(answer.body, { lineWidth: 0 })))
    return 0
  })
}

/** Its sentence and what to do, as a few lines. */
const problemText = ({ severity, sentence, remedy }: JsonObject): string =>
  wrapped(`${cellText(severity)}: ${cellText(sentence)}`) + `  ${wrapped(cellText(remedy))}`

/** The text about a kill switch: what else it stops, and what it does not stop. */
function besidesText(body: unknown): string {
  const { also, besides } = isObject(body) ? body : {}
  const lineOf = (said: string, names: unknown): string =>
    Array.isArray(names) && names.length > 0 ? visibleLines(`${said}: ${names.map(cellOf).join(', ')}\n`) : ''
  return (
    lineOf('stopped with it, as other names of the same', also) +
    lineOf('not stopped, though they lead to the same server', besides)
  )
}

/** Runs a command; a refusal of the API is printed in the API's words. @returns the exit code */
export async function orRefusal({ stderr }: Pick<Io, 'stderr'>, act: () => Promise<number>): Promise<number> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof AdminRefusal)) throw error
    stderr.write(`gatehouse: ${error.message}\n`)
    return 1
  }
}

/** Statuses that concern the key, the rate or the gateway, and not the content that was sent. */
const notOfContent: ReadonlySet<number> = new Set([0, 401, 403, 429])

/** A refusal of what a file holds names the file. @throws AdminRefusal */
export const inFile = async <T>(file: string, sent: Promise<T>): Promise<T> =>
  await sent.catch((error: unknown) => {
    throw error instanceof AdminRefusal && !notOfContent.has(error.status) && error.status < 500
      ? error.in(file)
      : error
  })

/** @throws UsageError */
export const textOfFile = async (file: string): Promise<string> =>
  await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${error.code})`
    throw new UsageError(`${file}: ${why}.`)
  })

export const entriesText = (items: readonly JsonObject[], columns: readonly string[]): string =>
  tableText(
    columns.map((column) => column.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toUpperCase()),
    items.map((item) => columns.map((column) => cellOf(item[column])))
  )

function cellOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(cellOf).join(', ')
  // A member of an endpoint.
  return cellText(isObject(value) ? (value['upstream'] ?? value['name'] ?? value) : value)
}

/** @throws UsageError */
function newKeyBody({ options, operands: [, name] }: Given): JsonObject {
  if (name === undefined) throw new UsageError('key new needs a tenant and a name, or --name for a configuration file.')
  const { scopes = 'mcp', endpoints, expires } = options
  return {
    name,
    scopes: scopes.split(','),
    ...(endpoints !== undefined && { endpoints: endpoints.split(',') }),
    ...(expires !== undefined && { expires: timeAfter('expires', expires, Date.now()) })
  }
}

const pathOf = ({ path, name }: AdminRow, { operands }: Given): string =>
  path
    .replace(/\*$/, '')
    .replace(/\{(\d)\}/g, (_all, at: string) =>
      encodeURIComponent(operands[Number(at)] ?? (name === 'catalog' ? 'default' : ''))
    )

const sentOf = (names: AdminRow['sent'] = [], { options }: Given): Array<[name: string, value: string]> =>
  names.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]]))

function queryOf({ sent, body }: AdminRow, given: Given): string {
  const isSent = body === undefined && given.options['undo'] === undefined
  // An option without a value is there or not.
  const values = isSent ? sentOf(sent, given).map(([name, value]): [string, string] => [name, value || 'true']) : []
  const query = new URLSearchParams(values).toString()
  return query === '' ? '' : `?${query}`
}

/** The If-Match header with the version that was read before, so that no other change is overwritten unseen. */
async function ifMatchOf({ method, body }: AdminRow, path: string, api: AdminApi): Promise<string | undefined> {
  // Without --version any present version is changed.
  if (path === '/v1/apply') return '*'
  if (method === 'POST' || method === 'GET' || /\/(?:keys|sessions|kills)\b/.test(path)) return undefined
  if (method === 'PUT' && body !== 'file') return undefined
  try {
    return (await api.send('GET', path)).etag
  } catch (error) {
    if (error instanceof AdminRefusal && error.status === 404) return undefined
    throw error
  }
}

async function pagesOf(api: AdminApi, path: string, body: JsonObject): Promise<JsonObject[]> {
  const items: JsonObject[] = []
  let cursor: unknown
  do {
    const { body: page } = await api.send('POST', path, {
      ...body,
      limit: 200,
      ...(cursor !== undefined && { cursor })
    })
    const found = isObject(page) ? page : {}
    items.push(...(Array.isArray(found['items']) ? found['items'] : []).filter(isObject))
    cursor = typeof found['nextCursor'] === 'string' ? found['nextCursor'] : undefined
  } while (cursor !== undefined)
  return items
}

/** That the body comes from. */
const fileOf = ({ body, operands }: AdminRow, { operands: given }: Given): string | undefined =>
  body === 'file' || body === 'tenants' ? (given[(operands?.split(' ').length ?? 1) - 1] ?? '') : undefined

/** @throws UsageError */
async function bodyOf(row: AdminRow, given: Given, io: Io): Promise<unknown> {
  const { body, sent } = row
  const { options } = given
  if (body === 'key') return newKeyBody(given)
  // An option without a value is there or not.
  if (body === 'options') return Object.fromEntries(sentOf(sent, given).map(([name, value]) => [name, value || true]))
  if (body === 'catalog') {
    const { caller, kind = 'tool' } = options
    return {
      kind,
      ...(caller !== undefined && {
        caller: objectOf(caller, '--caller', ", such as '{ subject: ada }' or '{ key: ci }'")
      })
    }
  }
  if (body === 'version') {
    const { tenant } = options
    return { version: wholeNumber(given.operands[0], 'The version'), ...(tenant !== undefined && { tenant }) }
  }
  const file = fileOf(row, given)
  if (file === undefined) return undefined
  const text = file === '-' ? await textOf(io.stdin ?? process.stdin) : await textOfFile(file)
  const value = objectOf(text, file)
  if (body === 'file') return value
  const { version } = options
  return {
    tenants: value['tenants'] ?? value,
    ...(version !== undefined && { version: wholeNumber(version, '--version') })
  }
}

/** @throws UsageError */
function objectOf(text: string, place: string, example = ''): JsonObject {
  try {
    const value: unknown = parse(text)
    if (isObject(value)) return value
  } catch (error) {
    throw new UsageError(`${place} is neither YAML nor JSON: ${(error as Error).message.split('\n')[0]}`)
  }
  throw new UsageError(`${place} has to be an object${example}.`)
}

/** @throws UsageError */
function wholeNumber(text: string | undefined, what: string): number {
  if (text === undefined || !/^\d{1,15}$/.test(text)) throw new UsageError(`${what} is a number, not "${text}".`)
  return Number(text)
}
