// Parts of a tool's results that an endpoint leaves out, named by JSON paths: of `structuredContent`, and of texts that
// are JSON, because servers repeat the one in the other (server/tools "Structured Content"). A path is of the part of
// RFC 9535 that names members and all elements: it finds each part once, in time that grows with the result alone.

import { JsonLimitError } from '../json-scan.ts'
import { finished, jsonSteps } from '../json-steps.ts'
import { isObject, type JsonObject, type Result } from '../messages.ts'
import { maxDepth, maxValues } from '../json.ts'

/** A path from the root: the name of a member, or each element or member. */
export type JsonPath = ReadonlyArray<string | typeof everything>

export const everything = Symbol('*')

const segment = /^(?:\.([A-Za-z_$][\w$-]*)|\.(\*)|\['((?:[^'\\]|\\.)+)'\]|\["((?:[^"\\]|\\.)+)"\]|\[(\*)\])/u

/** @returns undefined where it is no path of ours */
export function parseJsonPath(text: string): JsonPath | undefined {
  if (!text.startsWith('$') || text === '$') return undefined
  const path: Array<string | typeof everything> = []
  for (let rest = text.slice(1); rest !== '';) {
    const [whole = '', plain, star, single, double, each] = segment.exec(rest) ?? []
    const name = plain ?? (single ?? double)?.replaceAll(/\\(.)/gu, '$1')
    if (name === undefined && star === undefined && each === undefined) return undefined
    path.push(name ?? everything)
    rest = rest.slice(whole.length)
  }
  return path
}

/**
 * A result without these parts, in one turn of the event loop. A text that is no JSON stays as it is.
 * @throws JsonLimitError where a text may be JSON, and is nested too deeply or too long to be looked through
 */
export function withoutParts(result: Result, paths: readonly JsonPath[]): Result {
  const { structuredContent, content } = result
  const structured = structuredContent === undefined ? undefined : withoutStructured(structuredContent, paths)
  const blocks = Array.isArray(content) ? content.map((block: unknown) => withoutInBlock(block, paths)) : content
  return {
    ...result,
    ...(structuredContent !== undefined && { structuredContent: structured }),
    ...(content !== undefined && { content: blocks })
  }
}

/**
 * Removes the paths from structured content, which older clients of a modern server may get in `result` (wrap-
 * structured.ts).
 */
function withoutStructured(value: unknown, paths: readonly JsonPath[]): unknown {
  const own = without(value, paths)
  const isWrapped = isObject(own) && Object.keys(own).length === 1 && own['result'] !== undefined
  return isWrapped ? { result: without(own['result'], paths) } : own
}

function withoutInBlock(block: unknown, paths: readonly JsonPath[]): unknown {
  if (!isObject(block)) return block
  if (block['type'] === 'text') return withoutInText(block, paths)
  if (block['type'] !== 'resource' || !isObject(block['resource'])) return block
  return { ...block, resource: withoutInText(block['resource'], paths) }
}

function withoutInText(holder: JsonObject, paths: readonly JsonPath[]): JsonObject {
  if (typeof holder['text'] !== 'string') return holder
  // Without a byte order mark and the spaces that JSON has not: clients that take them off read JSON all the same.
  const text = holder['text'].trim()
  if (!text.startsWith('{') && !text.startsWith('[')) return holder
  let value: unknown
  try {
    value = finished(jsonSteps(text, { maxDepth, maxValues }))
  } catch (error) {
    if (error instanceof JsonLimitError) throw error
    return holder // No JSON: what it says, nobody can tell.
  }
  const left = without(value, paths)
  return left === value ? holder : { ...holder, text: JSON.stringify(left) }
}

const without = (value: unknown, paths: readonly JsonPath[]): unknown =>
  paths.reduce((left, path) => withoutPath(left, path), value)

/** @returns the same value where nothing is there to be left out */
function withoutPath(value: unknown, [first, ...rest]: JsonPath): unknown {
  if (Array.isArray(value)) {
    if (first !== everything) return value
    if (rest.length === 0) return []
    const elements = value.map((element: unknown) => withoutPath(element, rest))
    return elements.some((element, at) => element !== value[at]) ? elements : value
  }
  if (!isObject(value) || first === undefined) return value
  const names = first === everything ? Object.keys(value) : Object.hasOwn(value, first) ? [first] : []
  if (names.length === 0) return value
  if (rest.length === 0) {
    const gone = new Set(names)
    return Object.fromEntries(Object.entries(value).filter(([name]) => !gone.has(name)))
  }
  const changed = names.map((name) => [name, withoutPath(value[name], rest)] as const)
  return changed.some(([name, each]) => each !== value[name])
    ? Object.fromEntries([...Object.entries(value), ...changed])
    : value
}

/**
 * The `outputSchema` of results without these parts; undefined where the way to one of them is not plain in it
 * (`$ref`, `anyOf` and the like): a client would hold what is left against a schema that wants more.
 */
export const schemaWithout = (schema: unknown, paths: readonly JsonPath[]): unknown =>
  paths.reduce<unknown>((left, path) => (left === undefined ? undefined : schemaWithoutPath(left, path)), schema)

const ways: ReadonlySet<string> = new Set([
  'properties',
  'required',
  'items',
  'type',
  'title',
  'description',
  'additionalProperties',
  '$schema'
])

function schemaWithoutPath(schema: unknown, [first, ...rest]: JsonPath): unknown {
  if (!isObject(schema) || first === undefined || Object.keys(schema).some((keyword) => !ways.has(keyword)))
    return undefined
  if (first === everything) {
    if (rest.length === 0 || !isObject(schema['items'])) return undefined
    const items = schemaWithoutPath(schema['items'], rest)
    return items === undefined ? undefined : { ...schema, items }
  }
  const { properties, required, ...others } = schema
  if (!isObject(properties) || !Object.hasOwn(properties, first)) return undefined
  if (rest.length > 0) {
    const inner = schemaWithoutPath(properties[first], rest)
    return inner === undefined ? undefined : { ...schema, properties: { ...properties, [first]: inner } }
  }
  const { [first]: _gone, ...left } = properties
  return {
    ...others,
    properties: left,
    ...(Array.isArray(required) && { required: required.filter((name) => name !== first) })
  }
}
