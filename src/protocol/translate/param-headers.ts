// Values of headers (2026-07-28 basic/transports/streamable-http "Value Encoding"), and tool arguments that are
// repeated in `Mcp-Param-*` headers ("Custom Headers from Tool Parameters").

import { type JsonObject, isObject } from '../messages.ts'

const prefix = '=?base64?'
const suffix = '?='
const isSentinel = (text: string): boolean =>
  text.startsWith(prefix) && text.endsWith(suffix) && text.length >= prefix.length + suffix.length

/** Texts that a header carries unencoded. Tabs are encoded, because some proxies turn them into spaces. */
const plain = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/
/** RFC 9110 section 5.5, without obs-text. */
const visible = /^[\t\x20-\x7e]*$/

/** The value of a header for a text: unchanged where possible, else `=?base64?...?=`. */
export const encodeHeader = (text: string): string =>
  plain.test(text) && !isSentinel(text) ? text : prefix + Buffer.from(text).toString('base64') + suffix

/** @returns the text that a header value encodes; undefined where the value is malformed */
export function decodeHeader(value: string): string | undefined {
  if (!visible.test(value)) return undefined
  if (!isSentinel(value)) return value
  const base64 = value.slice(prefix.length, -suffix.length)
  const bytes = Buffer.from(base64, 'base64')
  // `Buffer` skips what is not base64, missing padding and stray last bits, which other parsers on the way may not.
  if (bytes.toString('base64') !== base64) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined // Not UTF-8: the sender gets an error.
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export interface ParamHeader {
  /** The header with its prefix and in the case of the schema, such as `Mcp-Param-Region`. */
  readonly header: string
  /** Keys that lead from the arguments to the value. */
  readonly path: readonly string[]
  readonly type: 'integer' | 'string' | 'boolean'
}

export const paramHeaderPrefix = 'mcp-param-'
const annotation = 'x-mcp-header'

/** Each is a header of every call, and servers limit the size of all headers. */
const maxAnnotations = 64
/** The schema is not trusted. */
const maxNameLength = 128
/** Characters of the keys that lead to one value, together. */
const maxPathLength = 1_024
/** Schemas nested deeper are not searched. */
const maxSchemaDepth = 64

// RFC 9110 section 5.6.2.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/**
 * Keywords whose value is a schema or an array of schemas, and those whose value has schemas as members (JSON Schema
 * 2020-12 and draft 7).
 */
const within = (
  'items prefixItems additionalItems contains additionalProperties unevaluatedProperties unevaluatedItems ' +
  'propertyNames contentSchema oneOf anyOf allOf not if then else'
).split(' ')
const named = ['patternProperties', 'dependentSchemas', 'dependencies', '$defs', 'definitions']

/**
 * Annotations may only stand in chains of `properties`: under `items`, `anyOf`, `$defs` and the like there is no single
 * value, and an annotation makes the whole tool invalid.
 * @returns in the order of the schema; or a sentence that says why one of them is invalid
 */
export function paramHeadersOf(inputSchema: JsonObject): readonly ParamHeader[] | string {
  const found: ParamHeader[] = []
  const names = new Set<string>()

  /** @param path undefined outside of a chain of `properties` */
  function visit(schema: unknown, path: readonly string[] | undefined, depth: number): string | undefined {
    if (!isObject(schema)) return undefined
    if (depth > maxSchemaDepth) return `The schema is nested deeper than ${maxSchemaDepth} levels.`
    if (Object.hasOwn(schema, annotation)) {
      const problem = take(schema, path)
      if (problem !== undefined) return problem
    }
    for (const [child, childPath] of subschemas(schema, path)) {
      const problem = visit(child, childPath, depth + 1)
      if (problem !== undefined) return problem
    }
    return undefined
  }

  function take(schema: JsonObject, path: readonly string[] | undefined): string | undefined {
    const { [annotation]: name, type } = schema
    if (path === undefined || path.length === 0)
      return `"${annotation}" stands where no chain of "properties" alone leads.`
    const where = `"${annotation}" of ${shown(path)}`
    if (typeof name !== 'string' || !token.test(name) || name.length > maxNameLength)
      return `${where} must be a token of RFC 9110 with 1 to ${maxNameLength} characters.`
    if (type !== 'integer' && type !== 'string' && type !== 'boolean')
      return `${where} needs the type "integer", "string" or "boolean" beside it.`
    if (path.reduce((sum, { length }) => sum + length, 0) > maxPathLength)
      return `${where} stands under keys of more than ${maxPathLength} characters.`
    if (names.has(name.toLowerCase()))
      return `${where} repeats the name of another one; upper and lower case are the same.`
    if (found.length === maxAnnotations) return `There are more than ${maxAnnotations} "${annotation}" annotations.`
    names.add(name.toLowerCase())
    found.push({ header: `Mcp-Param-${name}`, path, type })
    return undefined
  }

  return visit(inputSchema, [], 0) ?? found
}

/** The schemas directly inside a schema, each with its path where it stands in a chain of `properties`. */
function* subschemas(
  schema: JsonObject,
  path: readonly string[] | undefined
): Iterable<readonly [schema: unknown, path: readonly string[] | undefined]> {
  const { properties } = schema
  if (isObject(properties)) {
    for (const [key, child] of Object.entries(properties)) yield [child, path && [...path, key]]
  }
  for (const keyword of within) for (const child of [schema[keyword]].flat()) yield [child, undefined]
  for (const keyword of named) {
    const value = schema[keyword]
    if (isObject(value)) for (const child of Object.values(value)) yield [child, undefined]
  }
}

/** The schema without annotations, for transports without headers. */
export function withoutParamHeaders(schema: JsonObject): JsonObject {
  const strip = (value: unknown, depth: number): unknown => {
    if (!isObject(value) || depth > maxSchemaDepth) return value
    const inside = (child: unknown): unknown => strip(child, depth + 1)
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => key !== annotation)
        .map(([key, member]) => {
          if (within.includes(key)) return [key, Array.isArray(member) ? member.map(inside) : inside(member)]
          const schemas = isObject(member) && (key === 'properties' || named.includes(key))
          return [
            key,
            schemas ? Object.fromEntries(Object.entries(member).map(([name, child]) => [name, inside(child)])) : member
          ]
        })
    )
  }
  return strip(schema, 0) as JsonObject
}

/** None for an absent or null value, an empty one for an empty string. */
export function headersFor(annotations: readonly ParamHeader[], args: unknown): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { header, path } of annotations) {
    const text = mirrored(valueAt(args, path))
    if (text !== undefined) headers[header] = encodeHeader(text)
  }
  return headers
}

/**
 * "Server Behavior for Custom Headers". Headers that no annotation names are ignored.
 * @param given lower-case name of each `Mcp-Param-*` header -> its values, one for each time that it came
 * @returns a sentence about the first header that differs; undefined where all agree
 */
export function paramMismatch(
  annotations: readonly ParamHeader[],
  args: unknown,
  given: ReadonlyMap<string, readonly string[]>
): string | undefined {
  for (const { header, path } of annotations) {
    const values = given.get(header.toLowerCase()) ?? []
    const [value] = values
    const where = `params.arguments.${shown(path)}`
    const argument = valueAt(args, path)
    const text = mirrored(argument)
    if (text === undefined && isScalar(argument))
      return `${where} must be within ±(2^53-1) to be repeated in the header ${header}.`
    if (value === undefined) {
      if (text === undefined) continue
      return `The header ${header} is missing: it must repeat ${where}.`
    }
    if (values.length > 1) return `The header ${header} came ${values.length} times; send it once.`
    const decoded = decodeHeader(value)
    if (decoded === undefined)
      return (
        `The header ${header} is damaged: it must be visible ASCII, or the base64 of UTF-8 between ` +
        '"=?base64?" and "?=".'
      )
    if (text === undefined)
      return `The header ${header} is there, but the body has no value at ${where} that it could repeat. Leave it out.`
    // `42.0` and `42` are the same integer ("Server Validation").
    const sameInteger =
      Number.isSafeInteger(argument) && /^-?\d{1,64}(?:\.0{1,64})?$/.test(decoded) && Number(decoded) === argument
    if (decoded !== text && !sameInteger) return `The header ${header} does not say the same as ${where}.`
  }
  return undefined
}

/** The text that a header repeats for a value; undefined for values without one. */
function mirrored(value: unknown): string | undefined {
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return undefined
  // A number that is not an integer does not fit the schema: the tool reports that.
  return typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number'
    ? String(value)
    : undefined
}

/** Includes numbers of many digits, which protocol/json.ts keeps as raw JSON. */
const isScalar = (value: unknown): boolean =>
  value !== undefined && value !== null && !isObject(value) && !Array.isArray(value)

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const key of path) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  return value
}

const shown = (path: readonly string[]): string =>
  path
    .map((key) => JSON.stringify(key.slice(0, 60)).slice(1, -1))
    .join('.')
    .slice(0, 200)
