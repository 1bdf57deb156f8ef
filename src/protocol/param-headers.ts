// Arguments of a tool that are mirrored into `Mcp-Param-*` headers (2026-07-28 basic/transports/streamable-http "Custom Headers from Tool
// Parameters"): which ones a schema names, how a value is written in a header, and whether the headers that came say what the body says.

import { isObject } from './messages.ts'
import type { JsonObject } from './messages.ts'

export interface ParamHeader {
  /** As written in the schema, with its prefix, such as `Mcp-Param-Region`. Names of headers are compared without regard to case. */
  readonly header: string
  /** Keys that lead from the arguments to the value. */
  readonly path: readonly string[]
  readonly type: 'integer' | 'string' | 'boolean'
}

export const paramHeaderPrefix = 'mcp-param-'
const annotation = 'x-mcp-header'

/** Each is one more header line on every call; nobody needs that many, and servers limit the size of all of them. */
const maxAnnotations = 64
/** Of names put together from a schema that we do not trust. */
const maxNameLength = 128
/** Of the keys that lead to one value, together: they are kept, and say where a header comes from. */
const maxPathLength = 1_024
/** Of nested schemas: what is deeper is not looked for by anybody. */
const maxSchemaDepth = 64

// RFC 9110 section 5.6.2.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Keywords whose value is a schema or an array of schemas, and those whose value has schemas as members (JSON Schema 2020-12 and draft 7). */
const within = ['items', 'prefixItems', 'additionalItems', 'contains', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems', 'propertyNames', 'contentSchema', 'oneOf', 'anyOf', 'allOf', 'not', 'if', 'then', 'else']
const named = ['patternProperties', 'dependentSchemas', 'dependencies', '$defs', 'definitions']

/**
 * The annotations of an `inputSchema`. Pure `properties` chains only: what stands under `items`, `anyOf`, `$defs` and the like has no one
 * value, and makes the whole tool invalid.
 * @returns the annotations, in the order of the schema, or a sentence that says why one of them is invalid
 */
export function paramHeadersOf (inputSchema: JsonObject): readonly ParamHeader[] | string {
  const found: ParamHeader[] = []
  const names = new Set<string>()

  /** @param path undefined where no pure chain of `properties` leads */
  function visit (schema: unknown, path: readonly string[] | undefined, depth: number): string | undefined {
    if (!isObject(schema)) return undefined
    if (depth > maxSchemaDepth) return `The schema is nested deeper than ${maxSchemaDepth} levels.`
    if (Object.hasOwn(schema, annotation)) {
      const problem = take(schema, path)
      if (problem !== undefined) return problem
    }
    const { properties } = schema
    if (isObject(properties)) {
      for (const [key, child] of Object.entries(properties)) {
        const problem = visit(child, path === undefined ? undefined : [...path, key], depth + 1)
        if (problem !== undefined) return problem
      }
    }
    for (const keyword of within) {
      const value = schema[keyword]
      if (value === undefined) continue
      for (const child of Array.isArray(value) ? value : [value]) {
        const problem = visit(child, undefined, depth + 1)
        if (problem !== undefined) return problem
      }
    }
    for (const keyword of named) {
      const value = schema[keyword]
      if (!isObject(value)) continue
      for (const child of Object.values(value)) {
        const problem = visit(child, undefined, depth + 1)
        if (problem !== undefined) return problem
      }
    }
    return undefined
  }

  function take (schema: JsonObject, path: readonly string[] | undefined): string | undefined {
    const { [annotation]: name, type } = schema
    if (path === undefined || path.length === 0) return `"${annotation}" stands where no chain of "properties" alone leads.`
    const where = `"${annotation}" of ${shown(path)}`
    if (typeof name !== 'string' || !token.test(name) || name.length > maxNameLength) return `${where} must be a token of RFC 9110 with 1 to ${maxNameLength} characters.`
    if (type !== 'integer' && type !== 'string' && type !== 'boolean') return `${where} needs the type "integer", "string" or "boolean" beside it.`
    if (path.reduce((sum, { length }) => sum + length, 0) > maxPathLength) return `${where} stands under keys of more than ${maxPathLength} characters.`
    if (names.has(name.toLowerCase())) return `${where} repeats the name of another one; upper and lower case are the same.`
    if (found.length === maxAnnotations) return `There are more than ${maxAnnotations} "${annotation}" annotations.`
    names.add(name.toLowerCase())
    found.push({ header: `Mcp-Param-${name}`, path, type })
    return undefined
  }

  return visit(inputSchema, [], 0) ?? found
}

/** The schema without any annotation, as one may have it where no header is made of arguments. */
export function withoutParamHeaders (schema: JsonObject): JsonObject {
  const strip = (value: unknown, depth: number): unknown => {
    if (!isObject(value) || depth > maxSchemaDepth) return value
    const inside = (child: unknown): unknown => strip(child, depth + 1)
    return Object.fromEntries(Object.entries(value).filter(([key]) => key !== annotation).map(([key, member]) => {
      if (within.includes(key)) return [key, Array.isArray(member) ? member.map(inside) : inside(member)]
      const schemas = isObject(member) && (key === 'properties' || named.includes(key))
      return [key, schemas ? Object.fromEntries(Object.entries(member).map(([name, child]) => [name, inside(child)])) : member]
    }))
  }
  return strip(schema, 0) as JsonObject
}

const prefix = '=?base64?'
const suffix = '?='
const isSentinel = (text: string): boolean => text.startsWith(prefix) && text.endsWith(suffix) && text.length >= prefix.length + suffix.length

/** What a header can carry as it is; a tab inside could be, but some on the way make a space of it. */
const plain = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/
/** RFC 9110 section 5.5, without the bytes that have no one meaning. */
const visible = /^[\t\x20-\x7e]*$/

/** A text as the value of a header: as it is where it can be, else as the sentinel `=?base64?...?=` ("Value Encoding"). */
export function encodeHeader (text: string): string {
  return plain.test(text) && !isSentinel(text) ? text : prefix + btoa(binary(new TextEncoder().encode(text))) + suffix
}

/** @returns the text that a header stands for; undefined where it has characters that a header must not have, or is damaged */
export function decodeHeader (value: string): string | undefined {
  if (!visible.test(value)) return undefined
  if (!isSentinel(value)) return value
  const base64 = value.slice(prefix.length, -suffix.length)
  try {
    const bytes = atob(base64)
    // One text, one spelling: `atob` lets white space, missing padding and stray last bits through, others on the way may not.
    if (btoa(bytes) !== base64) return undefined
    return utf8.decode(Uint8Array.from(bytes, (unit) => unit.charCodeAt(0)))
  } catch {
    return undefined // Not base64, or not UTF-8: the sender's loss, who is told that the header is damaged.
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Piece by piece: a call with as many arguments as a long text has bytes overflows the stack. */
function binary (bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}

/** The headers of a call with these arguments: none for what is absent or null, an empty one for an empty string. */
export function headersFor (annotations: readonly ParamHeader[], args: unknown): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { header, path } of annotations) {
    const text = mirrored(valueAt(args, path))
    if (text !== undefined) headers[header] = encodeHeader(text)
  }
  return headers
}

/**
 * Do the headers say what the arguments say ("Server Behavior for Custom Headers")? Headers that no annotation names are not looked at.
 * @param given lower-case name of each `Mcp-Param-*` header -> its values, one for each time that it came
 * @returns a sentence that says which one does not
 */
export function paramMismatch (annotations: readonly ParamHeader[], args: unknown, given: ReadonlyMap<string, readonly string[]>): string | undefined {
  for (const { header, path } of annotations) {
    const values = given.get(header.toLowerCase()) ?? []
    const [value] = values
    const where = `params.arguments.${shown(path)}`
    const argument = valueAt(args, path)
    const text = mirrored(argument)
    if (text === undefined && isScalar(argument)) return `${where} must be within ±(2^53-1) to be repeated in the header ${header}.`
    if (value === undefined) {
      if (text === undefined) continue
      return `The header ${header} is missing: it must repeat ${where}.`
    }
    if (values.length > 1) return `The header ${header} came ${values.length} times; send it once.`
    const decoded = decodeHeader(value)
    if (decoded === undefined) return `The header ${header} is damaged: it must be visible ASCII, or the base64 of UTF-8 between "${prefix}" and "${suffix}".`
    if (text === undefined) return `The header ${header} is there, but the body has no value at ${where} that it could repeat. Leave it out.`
    if (!same(decoded, text, argument)) return `The header ${header} does not say the same as ${where}.`
  }
  return undefined
}

/** `42.0` and `42` are the same integer ("Server Validation"). */
function same (decoded: string, text: string, argument: unknown): boolean {
  return decoded === text || (Number.isSafeInteger(argument) && /^-?\d{1,64}(?:\.0{1,64})?$/.test(decoded) && Number(decoded) === argument)
}

/** A value in the form that headers have it; undefined for what they cannot have. */
function mirrored (value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  // Numbers that are no integers do not fit the schema, which is for the tool to say; they are mirrored all the same.
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value)
  return undefined
}

/** Numbers of many digits, which are objects to the engine only, among them. */
const isScalar = (value: unknown): boolean => value !== undefined && value !== null && !isObject(value) && !Array.isArray(value)

function valueAt (args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const key of path) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  return value
}

const shown = (path: readonly string[]): string => path.map((key) => JSON.stringify(key.slice(0, 60)).slice(1, -1)).join('.').slice(0, 200)
