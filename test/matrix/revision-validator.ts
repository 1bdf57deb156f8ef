// What one revision of MCP knows, and what it does not: the specification's own JSON schema of the revision, closed. A
// member, a method, a kind of content or an error code that came later (or is gone) is a fault, although peers would
// mostly tolerate it. schema.json has the definitions of schema/<revision>/schema.json in the specification's
// repository that are looked at here, without descriptions, under the revisions that define them in the same words.

import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { relatedTaskKey } from '../../src/protocol/translate/tasks.ts'
import type { Revision } from '../../src/protocol/messages.ts'
import type { Json } from '../kit/mcp-server.ts'

export interface RevisionValidator {
  /** What is wrong with a request or notification of a client, in sentences. */
  fromClient(message: Json): string[]
  /** The same for one of a server. */
  fromServer(message: Json): string[]
  /** What is wrong with the result that a request of this method got. */
  result(method: string, result: unknown): string[]
  /** What is wrong with an error that a peer of the revision got. */
  error(error: unknown): string[]
}

type Schema = Record<string, unknown>
type Definitions = Record<string, Schema>

export function revisionValidator(revision: Revision): RevisionValidator {
  const [, validator] = validators.find(([name]) => name === revision) ?? []
  if (validator === undefined) throw new Error(`no validator of ${revision}`)
  return validator
}

const tasksMethods = new Set(['tasks/get', 'tasks/update', 'tasks/cancel'])
const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

const schema = JSON.parse(readFileSync(new URL('schema.json', import.meta.url), 'utf8')) as Record<string, Definitions>

const definitionsOf = (revision: Revision): Definitions =>
  Object.assign({}, ...Object.keys(schema).flatMap((set) => (set.split(' ').includes(revision) ? [schema[set]] : [])))

function createValidator(revision: Revision): RevisionValidator {
  const modern = revision === '2026-07-28'
  const $defs = definitionsOf(revision)
  const closed = Object.fromEntries(
    Object.entries($defs).map(([name, schema]) => [name, close(flat(schema, $defs), name)])
  )
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'mcp', $defs: closed })
  const compiled = new Map<string, ValidateFunction>()

  function check(definition: string, value: unknown): string[] {
    let validate = compiled.get(definition)
    if (validate === undefined) {
      validate = ajv.compile({ $ref: `mcp#/$defs/${definition}` })
      compiled.set(definition, validate)
    }
    if (validate(value)) return []
    const faults = (validate.errors ?? [])
      .slice(0, 6)
      .map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
    return [`${revision} ${definition}: ${faults.join('; ')} in ${JSON.stringify(value).slice(0, 600)}`]
  }

  const byMethod = (sides: readonly string[]): Map<string, string> =>
    new Map(
      sides
        .flatMap((side) => refsOf($defs[side], side))
        .map((name) => {
          const properties = ($defs[name]?.['properties'] ?? {}) as Record<string, Schema>
          return [String(properties['method']?.['const']), name]
        })
    )
  const ofClient = byMethod(['ClientRequest', 'ClientNotification'])
  const ofServer = byMethod(['ServerRequest', 'ServerNotification'])

  function message(known: Map<string, string>, value: Json): string[] {
    const method = String(value['method'])
    if (modern && (tasksMethods.has(method) || method === 'notifications/tasks')) return [] // The extension has no schema here.
    const definition = known.get(method)
    if (definition === undefined) return [`${revision} has no ${method} in this direction`]
    const { jsonrpc: _jsonrpc, id: _id, ...bare } = value
    const whole = 'jsonrpc' in (($defs[definition]?.['properties'] ?? {}) as Json)
    return [...check(definition, whole ? value : bare), ...reserved(value['params'])]
  }

  /** `io.modelcontextprotocol/…` in `_meta` is of the era without sessions, one exception apart. */
  function reserved(holder: unknown): string[] {
    if (modern || !isJson(holder) || !isJson(holder['_meta'])) return []
    return Object.keys(holder['_meta'])
      .filter(
        (key) => key.startsWith('io.modelcontextprotocol/') && !(key === relatedTaskKey && revision === '2025-11-25')
      )
      .map((key) => `${revision} knows no ${key} in _meta`)
  }

  function result(method: string, value: unknown): string[] {
    if (!isJson(value)) return ['the result is no object']
    if (modern) return modernResult(method, value)
    if (method === 'tools/call' && revision === '2025-11-25' && 'task' in value) return check('CreateTaskResult', value)
    const name = method === 'tasks/result' ? 'CallToolResult' : resultOf(method)
    if (name === undefined)
      return Object.keys(value)
        .filter((member) => member !== '_meta')
        .map((member) => `${revision}: ${member} in an empty result`)
    return [...check(name, value), ...reserved(value)]
  }

  function modernResult(method: string, value: Json): string[] {
    const { resultType } = value
    const ends = ['tools/call', 'prompts/get', 'resources/read'].includes(method)
    if (resultType === 'input_required')
      return ends ? check('InputRequiredResult', value) : [`${method} cannot be answered by input_required`]
    if (resultType === 'task')
      return method === 'tools/call' &&
        typeof value['taskId'] === 'string' &&
        typeof value['status'] === 'string' &&
        'ttlMs' in value
        ? []
        : ['no task of the extension']
    if (resultType !== 'complete') return [`resultType is ${String(resultType)}`]
    const name = resultOf(method)
    return name === undefined || tasksMethods.has(method) ? [] : check(name, value)
  }

  function resultOf(method: string): string | undefined {
    const definition = ofClient.get(method) ?? ofServer.get(method) ?? asked[method]
    const name = definition?.replace(/Request$/, 'Result') ?? ''
    return name in $defs && method !== 'ping' ? name : undefined
  }

  return {
    fromClient: (value) => message(ofClient, value),
    fromServer: (value) => message(ofServer, value),
    result,
    error(value) {
      if (!isJson(value)) return ['the error is no object']
      const faults = check('JSONRPCError' in $defs ? 'JSONRPCError' : 'JSONRPCErrorResponse', {
        jsonrpc: '2.0',
        id: 1,
        error: value
      })
      const code = Number(value['code'])
      const defined = modern ? [-32_020, -32_021, -32_022] : revision === '2025-11-25' ? [-32_042] : []
      if (code <= -32_020 && code >= -32_099 && !defined.includes(code)) faults.push(`${revision} has no error ${code}`)
      if (modern && code <= -32_000 && code >= -32_019) faults.push(`${revision} has no error ${code} any more`)
      if (code === -32_042 && 'URLElicitationRequiredError' in $defs)
        faults.push(...check('URLElicitationRequiredError', { jsonrpc: '2.0', id: 1, error: value }))
      return faults
    }
  }
}

/** In 2026-07-28 these live in input requests alone. */
const asked: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'CreateMessageRequest',
  'elicitation/create': 'ElicitRequest',
  'roots/list': 'ListRootsRequest'
}

function refsOf(schema: Schema | undefined, own: string): string[] {
  if (schema === undefined) return []
  const any = schema['anyOf'] as Array<{ $ref: string }> | undefined
  if (any !== undefined) return any.map(({ $ref }) => $ref.slice('#/$defs/'.length))
  return 'properties' in schema ? [own] : []
}

/** `allOf` of objects as one object, so that it can be closed. */
function flat(schema: Schema, $defs: Definitions): Schema {
  const all = schema['allOf'] as Schema[] | undefined
  if (all === undefined) return schema
  const parts = all.map((part) =>
    typeof part['$ref'] === 'string' ? ($defs[part['$ref'].slice('#/$defs/'.length)] ?? {}) : part
  )
  return {
    type: 'object',
    properties: Object.assign({}, ...parts.map((part) => part['properties'] ?? {})) as Json,
    required: parts.flatMap((part) => (part['required'] ?? []) as string[])
  }
}

const open = new Set(['_meta', 'inputSchema', 'outputSchema', 'error', 'data'])

/**
 * Objects hold nothing but what the revision names; `_meta`, schemas of tools and the params' own `_meta` (JSON-RPC
 * base) stay free.
 */
function close(schema: unknown, name: string): Schema {
  if (Array.isArray(schema)) return schema.map((each) => close(each, name)) as unknown as Schema
  if (typeof schema !== 'object' || schema === null || open.has(name) || name.endsWith('MetaObject'))
    return schema as Schema
  const closed: Schema = {}
  for (const [key, value] of Object.entries(schema)) {
    closed[key] =
      key === 'properties'
        ? Object.fromEntries(Object.entries(value as Schema).map(([member, part]) => [member, close(part, member)]))
        : close(value, name === 'params' ? name : key)
  }
  const properties = closed['properties'] as Json | undefined
  if (properties === undefined || Object.keys(properties).length === 0 || 'additionalProperties' in closed)
    return closed
  // Extensions came between two revisions (SEP-2133), and are declared by servers and clients of the older one, too.
  if (name.endsWith('Capabilities') && !('extensions' in properties)) properties['extensions'] = {}
  if (name === 'params' || name.endsWith('Params')) properties['_meta'] ??= {}
  return { ...closed, additionalProperties: false }
}

const validators = (['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const).map(
  (revision) => [revision, createValidator(revision)] as const
)
