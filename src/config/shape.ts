// Compares a tree with the schema, reports each fault once, at its place, in words, and fills in the defaults. Supports
// the part of JSON Schema that the schema uses.

import { formatFault } from './formats.ts'
import { didYouMean, nearest, type Fault, type Path, type Report } from './problems.ts'

/** The keywords of a schema that are read. `refused` and `patternErrorMessage` are our own: reasons for refusals. */
export type Shape = Readonly<
  Partial<{
    '~kind': string
    type: string
    title: string
    description: string
    default: unknown
    const: string | number | boolean
    enum: readonly unknown[]
    anyOf: readonly Shape[]
    properties: Readonly<Record<string, Shape>>
    required: readonly string[] | undefined
    patternProperties: Readonly<Record<string, Shape>>
    propertyNames: Shape
    minProperties: number
    items: Shape
    minItems: number
    maxItems: number
    minLength: number
    maxLength: number
    pattern: string
    patternErrorMessage: string
    format: string
    minimum: number
    maximum: number
    refused: Readonly<Record<string, string>>
  }>
>

/** Unknown keys of one map that are taken for misspelt ones. */
const maxMisspelt = 20

export type Tree = Readonly<Record<string, unknown>>

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * @param isReference may the string at this path stand for a number or a truth value, because it came from a variable
 * or a file?
 * @returns the value with defaults in place of what is absent, and with such strings as the values that they stand for
 */
export function checkShape(root: Shape, tree: unknown, report: Report, isReference: (path: Path) => boolean): unknown {
  function shaped(schema: Shape, value: unknown, path: Path): unknown {
    if (value === undefined || isAnything(schema)) return value
    if (value === null) report.add(path, 'has no value', 'Give it one, or remove the key.')
    else if (schema.anyOf !== undefined) return branch(schema.anyOf, value, path)
    else if (schema.type === 'object' && isTree(value)) return object(schema, value, path, [])
    else if (schema.type === 'array' && Array.isArray(value)) {
      if (value.length < (schema.minItems ?? 0)) report.add(path, 'is empty', 'Give at least one entry.')
      if (value.length > (schema.maxItems ?? Infinity)) report.add(path, `has more than ${schema.maxItems} entries`)
      return value.map((item: unknown, index) => shaped(schema.items ?? {}, item, [...path, index]))
    } else {
      const given = isReference(path) ? referred(schema, value) : value
      const fault = leafFault(schema, given)
      if (fault === undefined) return given
      report.add(path, ...fault)
    }
    return value
  }

  function branch(branches: readonly Shape[], value: unknown, path: Path): unknown {
    if (!isTree(value)) {
      const leaf = branches.find(({ type, const: only }) => type === typeof value && only === undefined)
      if (leaf !== undefined) return shaped(leaf, value, path)
      if (!branches.some(({ const: only }) => only === value))
        report.add(path, `must be ${branches.map(kindOf).join(' or ')}`)
      return value
    }
    const objects = branches.filter(({ type }) => type === 'object')
    // The branch that `type` names, else the one that has most of the keys.
    const fit = ({ properties = {}, required = [] }: Shape): number =>
      Object.keys(value).filter((key) => Object.hasOwn(properties, key)).length +
      required.filter((key) => Object.hasOwn(value, key)).length
    const chosen =
      objects.find(({ properties }) => properties?.['type']?.enum?.includes(value['type'])) ??
      objects.toSorted((a, b) => fit(b) - fit(a))[0] ??
      {}
    const others = objects.filter((other) => other !== chosen)
    return object(chosen, value, path, others)
  }

  function object(schema: Shape, value: Tree, path: Path, others: readonly Shape[]): unknown {
    const { properties = {}, patternProperties = {}, propertyNames = {}, required = [], minProperties = 0 } = schema
    const result: Record<string, unknown> = {}
    const [entry] = Object.values(patternProperties)
    const known = Object.keys(properties)
    const unknown: string[] = []
    for (const [key, item] of Object.entries(value)) {
      const place = [...path, key]
      if (entry !== undefined) {
        shaped(propertyNames, key, place)
        result[key] = shaped(entry, item, place)
      } else if (Object.hasOwn(properties, key)) {
        result[key] = shaped(properties[key] ?? {}, item, place)
      } else {
        const other = others.find(({ properties = {} }) => Object.hasOwn(properties, key))
        unknown.push(key)
        if (other === undefined)
          report.add(place, 'is not a known key', () => didYouMean(key, known) ?? `Known here: ${known.join(', ')}.`)
        else
          report.add(
            place,
            `belongs to an ${other.title}, and this is an ${schema.title}`,
            'Remove it, or make two entries.'
          )
      }
    }
    for (const [key, property] of Object.entries(properties)) {
      if (Object.hasOwn(value, key)) continue
      const place = [...path, key]
      if (!required.includes(key)) {
        // An object that may be absent is then as an empty one.
        const absent = property.default ?? (property.properties === undefined ? undefined : {})
        if (absent !== undefined) result[key] = shaped(property, absent, place)
      } else if (!unknown.slice(0, maxMisspelt).some((name) => nearest(name, known) === key)) {
        // A misspelt key is not reported as missing as well.
        const instead = Object.hasOwn(value, 'type') ? [] : others.flatMap(({ required = [] }) => required)
        if (instead.length > 0) report.add(path, `has neither ${[key, ...instead].join(' nor ')}`, 'Give one of them.')
        else report.add(place, 'is missing', property.description && `Add it. ${property.description}`)
      }
    }
    if (Object.keys(value).length < minProperties) report.add(path, 'is empty', 'Give at least one entry.')
    return result
  }

  return shaped(root, tree, [])
}

/** JSON of any kind, null included: an argument of a tool. */
const isAnything = ({ type, anyOf, enum: only, const: one }: Shape): boolean =>
  type === undefined && anyOf === undefined && only === undefined && one === undefined

/** Converts the text of a reference where a number or a boolean is expected. */
function referred({ type }: Shape, text: unknown): unknown {
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return type === 'integer' && typeof text === 'string' && /^-?[0-9]{1,15}$/.test(text) ? Number(text) : text
}

function leafFault(schema: Shape, value: unknown): Fault | undefined {
  const { type, pattern, minimum = -Infinity, maximum = Infinity, minLength = 0, maxLength = Infinity } = schema
  if (schema.enum !== undefined) {
    if (schema.enum.includes(value)) return undefined
    const names = schema.enum.map(String)
    const refusals = new Map(Object.entries(schema.refused ?? {}))
    const refusal = typeof value === 'string' ? refusals.get(value) : undefined
    if (refusal !== undefined) return [refusal]
    return [
      `must be ${names.length > 1 ? 'one of ' : ''}${names.join(', ')}`,
      typeof value === 'string' ? () => didYouMean(value, names) : undefined
    ]
  }
  if (type === 'boolean' && typeof value === 'boolean') return undefined
  if (type === 'integer' && typeof value === 'number' && Number.isSafeInteger(value))
    return value < minimum || value > maximum ? [`must be ${rangeOf(minimum, maximum)}`] : undefined
  if (type !== 'string' || typeof value !== 'string') return [`must be ${kindOf(schema)}`, remedyOfType(type, value)]
  if (pattern !== undefined && !new RegExp(pattern).test(value))
    return [schema.patternErrorMessage ?? `must match ${pattern}`]
  if (value.length < minLength) return ['is empty', 'Give it a value, or remove the key.']
  if (value.length > maxLength) return [`must have at most ${maxLength} characters`]
  return schema.format === undefined ? undefined : formatFault(schema.format, value)
}

function remedyOfType(type: string | undefined, value: unknown): string | undefined {
  if (type === 'string' && !isTree(value) && !Array.isArray(value)) return 'Put it in quotes.'
  if (type === 'array' && !isTree(value)) return 'Put it in brackets: [ … ].'
  return typeof value === 'string' && (type === 'integer' || type === 'boolean')
    ? 'Write it without quotes.'
    : undefined
}

const rangeOf = (minimum: number, maximum: number): string =>
  maximum === Infinity ? `${minimum} or more` : `from ${minimum} to ${maximum}`

function kindOf({ type = '', title, const: only }: Shape): string {
  if (only !== undefined) return String(only)
  if (title !== undefined && type === 'string') return `the ${title}`
  return kinds[type] ?? 'something else'
}

const kinds: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of keys and values'
}

/** Reads a part of a tree that may have faults: a value of another type counts as an empty object. */
export const treeOf = (value: unknown): Tree => (isTree(value) ? value : {})
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const stringOrNone = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
