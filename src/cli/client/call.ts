// `call` and `list`: a client of an endpoint, for people and scripts.

import { parse } from 'yaml'
import { parseJson } from '../../protocol/json.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { nearest } from '../../config/problems.ts'
import { visible, cellText } from '../../observe/text-log.ts'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import { jsonText, tableText, visibleLines } from '../printed.ts'
import { McpRefusal, openMcpClient, type McpClient } from './mcp-client.ts'
import { endpointUrl, headersOf, timeoutOf } from './target.ts'

const kinds = {
  tools: { method: 'tools/list', name: 'name' },
  prompts: { method: 'prompts/list', name: 'name' },
  resources: { method: 'resources/list', name: 'uri' },
  templates: { method: 'resources/templates/list', name: 'uriTemplate' }
} as const

/** @returns the exit code: 1 where the tool fails or the call is refused. @throws UsageError */
export async function runCall(given: Given, io: Io): Promise<number> {
  const [endpoint = '', tool = '', text = '{}'] = given.operands
  const args = argumentsOf(text)
  const { stdout, stderr } = io
  return await withClient(endpoint, given, io, async (client) => {
    let result: JsonObject
    try {
      result = await client.request('tools/call', { name: tool, arguments: args, _meta: { progressToken: 1 } })
    } catch (error) {
      throw error instanceof McpRefusal ? await withNearest(error, tool, client) : error
    }
    if (given.options['json'] !== undefined) stdout.write(jsonText(result))
    // Control characters are escaped for a terminal, which would interpret them, and kept for files and programs.
    else stdout.write(stdout.isTTY ? visibleLines(textOfResult(result)) : textOfResult(result))
    if (result['isError'] !== true) return 0
    stderr.write('gatehouse: the tool says that it has failed (isError)\n')
    return 1
  })
}

/** @returns the exit code. @throws UsageError */
export async function runList(given: Given, io: Io): Promise<number> {
  const [endpoint = '', wanted = 'tools'] = given.operands
  if (!Object.hasOwn(kinds, wanted))
    throw new UsageError(`There is no list of "${wanted}". Lists: ${Object.keys(kinds).join(', ')}.`)
  const { method, name } = kinds[wanted as keyof typeof kinds]
  return await withClient(endpoint, given, io, async (client) => {
    const items = await client.list(method, wanted === 'templates' ? 'resourceTemplates' : wanted)
    if (given.options['json'] !== undefined) io.stdout.write(jsonText(items))
    else {
      const rows = items.map((item) => [String(item[name]), argumentNames(item), firstSentence(item['description'])])
      io.stdout.write(tableText([name.toUpperCase(), wanted === 'tools' ? 'ARGUMENTS' : '', 'DESCRIPTION'], rows))
    }
    return 0
  })
}

async function withClient(
  endpoint: string,
  given: Given,
  io: Io,
  act: (client: McpClient) => Promise<number>
): Promise<number> {
  const { env, stderr, version } = io
  const url = endpointUrl(endpoint, env)
  const headers = await headersOf(given, env)
  let client: McpClient | undefined
  try {
    client = await openMcpClient({
      url,
      headers,
      version,
      timeoutMs: timeoutOf(given),
      notified(method, params) {
        if (method !== 'notifications/progress' && method !== 'notifications/message') return
        const { progress, total, message, data } = params
        const done = total === undefined ? cellText(progress) : `${cellText(progress)}/${cellText(total)}`
        stderr.write(`${visible([done, cellText(message ?? data)].join(' ').trim())}\n`)
      }
    })
    return await act(client)
  } catch (error) {
    if (error instanceof UsageError) throw error
    const said = error instanceof McpRefusal ? error.message : connectionFault(error)
    stderr.write(`gatehouse: ${url}: ${visible(said)}\n`)
    if (error instanceof McpRefusal && error.answer.status === 401)
      stderr.write('Give an API key or token: --key-file FILE, or GATEHOUSE_KEY.\n')
    const advice = error instanceof McpRefusal ? error.advice : undefined
    stderr.write(`${visible(advice ?? `What a host would meet on its way: gatehouse doctor --url ${url}`)}\n`)
    return 1
  } finally {
    await client?.close()
  }
}

/** Adds the most similar tool name to a refusal: the gateway's refusal does not list the tools. */
async function withNearest(error: McpRefusal, tool: string, client: McpClient): Promise<McpRefusal> {
  if (reasonOf(error) !== 'invalid_params') return error
  try {
    const names = (await client.list('tools/list', 'tools')).map(({ name }) => String(name))
    const near = nearest(tool, names)
    const known = near === undefined ? `Tools: ${names.slice(0, 20).join(', ') || 'none'}.` : `Did you mean "${near}"?`
    if (!names.includes(tool)) error.advice = `There is no tool "${tool}" here. ${known}`
  } catch {
    // The first refusal is the more useful one.
  }
  return error
}

function reasonOf({ answer }: McpRefusal): unknown {
  const error = answer.message?.['error']
  return isObject(error) && isObject(error['data']) ? error['data']['reason'] : undefined
}

/** @throws UsageError */
function argumentsOf(text: string): JsonObject {
  try {
    // JSON has a parser of its own, because the YAML parser would round long numbers.
    const value: unknown = /^\s*\{\s*["}]/.test(text) ? parseJson(Buffer.from(text)) : parse(text)
    if (isObject(value)) return value
  } catch {
    // Said below.
  }
  throw new UsageError(`The arguments of a tool are an object in JSON or YAML, such as '{ "path": "a.txt" }'.`)
}

function textOfResult(result: JsonObject): string {
  const { content, structuredContent } = result
  const texts = (Array.isArray(content) ? content : []).filter(isObject).map((item) => {
    if (item['type'] === 'text') return String(item['text'])
    const { data, ...rest } = item
    const size = typeof data === 'string' ? { bytes: Math.floor((data.length * 3) / 4) } : {}
    return JSON.stringify({ ...rest, ...size })
  })
  if (texts.length === 0 && structuredContent !== undefined) texts.push(JSON.stringify(structuredContent, null, 2))
  return texts.map((text) => `${text}\n`).join('')
}

function argumentNames({ inputSchema }: JsonObject): string {
  const schema = isObject(inputSchema) ? inputSchema : {}
  const required: unknown[] = Array.isArray(schema['required']) ? schema['required'] : []
  const names = Object.keys(isObject(schema['properties']) ? schema['properties'] : {})
  return names.map((name) => (required.includes(name) ? name : `[${name}]`)).join(' ')
}

const firstSentence = (description: unknown): string =>
  typeof description === 'string' ? (/^.*?(?:[.!?](?=\s)|$)/m.exec(description)?.[0] ?? '').slice(0, 100) : ''

/** Why there is no connection, as far as the system says. */
export function connectionFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  if (error.name === 'TimeoutError') return 'no answer in time'
  if (cause instanceof Error) {
    const code = 'code' in cause ? String(cause.code) : ''
    if (code === 'ECONNREFUSED') return 'nothing listens there (ECONNREFUSED)'
    return cause.message === '' ? code : cause.message
  }
  return error.message
}
