// Compares a tree with the schema and reports each fault once, at its place, in words. Supports the part of JSON Schema
// that schema.ts uses; load.ts validates with TypeBox afterwards.

import { formatFault } from './formats.ts'
import { didYouMean, nearest, quoted, type Path, type Report } from '../problems.ts'

/**
 * What is read of a schema. `refused` and `patternErrorMessage` are annotations of our own: reasons for values and
 * patterns.
 */
export interface Shape {
  readonly type?: string | undefined
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly default?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[] | undefined
  readonly anyOf?: readonly Shape[] | undefined
  readonly properties?: Readonly<Record<string, Shape>> | undefined
  readonly required?: readonly string[] | undefined
  readonly patternProperties?: Readonly<Record<string, Shape>> | undefined
  readonly propertyNames?: Shape | undefined
  readonly minProperties?: number | undefined
  readonly items?: Shape | undefined
  readonly minItems?: number | undefined
  readonly maxLength?: number | undefined
  readonly pattern?: string | undefined
  readonly patternErrorMessage?: string | undefined
  readonly format?: string | undefined
  readonly minimum?: number | undefined
  readonly maximum?: number | undefined
  readonly refused?: Readonly<Record<string, string>> | undefined
}

export interface ShapeContext {
  readonly report: Report
  /** May the string at this path stand for a number or a boolean, because it came from a variable or a file? */
  readonly isReference: (path: Path) => boolean
}

export type Tree = Readonly<Record<string, unknown>>

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Reports every fault; returns the value with strings from references turned into the numbers and truth values that
 * they stand for.
 */
export function checkShape(schema: Shape, value: unknown, path: Path, context: ShapeContext): unknown {
  const { report } = context
  if (value === undefined) return value
  if (value === null) {
    report.add(path, { message: 'has no value', suggestion: 'Give it one, or remove the key.' })
    return value
  }
  if (schema.anyOf !== undefined) return shapedBranch(schema.anyOf, value, path, context)
  if (schema.type === 'object')
    return isTree(value) ? shapedObject(schema, value, path, context) : wrongType(schema, path, report, value)
  if (schema.type === 'array') {
    if (!Array.isArray(value)) return wrongType(schema, path, report, value)
    if (value.length < (schema.minItems ?? 0))
      report.add(path, { message: 'is empty', suggestion: 'Give at least one entry.' })
    return value.map((item: unknown, index) =>
      schema.items === undefined ? item : checkShape(schema.items, item, [...path, index], context)
    )
  }
  return shapedLeaf(schema, value, path, context)
}

function shapedBranch(branches: readonly Shape[], value: unknown, path: Path, context: ShapeContext): unknown {
  if (!isTree(value)) {
    const leaf = branches.find((branch) => branch.type === typeof value && branch.const === undefined)
    if (leaf !== undefined) return checkShape(leaf, value, path, context)
    if (!branches.some((branch) => branch.const === value)) {
      context.report.add(path, { message: `must be ${branches.map(kindOf).join(' or ')}` })
    }
    return value
  }
  const objects = branches.filter((branch) => branch.type === 'object')
  // The branch that `type` names, else the one that has most of the keys.
  const typed = objects.find((branch) => branch.properties?.['type']?.enum?.includes(value['type']))
  const fit = (branch: Shape) =>
    Object.keys(value).filter((key) => Object.hasOwn(branch.properties ?? {}, key)).length +
    (branch.required ?? []).filter((key) => Object.hasOwn(value, key)).length
  const chosen = typed ?? objects.toSorted((a, b) => fit(b) - fit(a))[0]
  if (chosen === undefined) {
    context.report.add(path, { message: `must be ${branches.map(kindOf).join(' or ')}` })
    return value
  }
  return shapedObject(
    chosen,
    value,
    path,
    context,
    objects.filter((branch) => branch !== chosen)
  )
}

function shapedObject(
  schema: Shape,
  value: Tree,
  path: Path,
  context: ShapeContext,
  others: readonly Shape[] = []
): unknown {
  const kindGiven = Object.hasOwn(value, 'type')
  const { report } = context
  const result: Record<string, unknown> = {}
  const entrySchema = schema.patternProperties === undefined ? undefined : Object.values(schema.patternProperties)[0]
  const properties = schema.properties ?? {}
  const meant = new Set<string>()
  for (const [key, item] of Object.entries(value)) {
    const place = [...path, key]
    if (entrySchema !== undefined) {
      if (schema.propertyNames !== undefined) shapedLeaf(schema.propertyNames, key, place, context)
      result[key] = checkShape(entrySchema, item, place, context)
    } else if (Object.hasOwn(properties, key)) {
      result[key] = checkShape(properties[key] ?? {}, item, place, context)
    } else {
      const other = others.find((branch) => Object.hasOwn(branch.properties ?? {}, key))
      const near = nearest(key, Object.keys(properties))
      if (near !== undefined) meant.add(near)
      report.add(
        place,
        other === undefined
          ? {
              message: 'is not a known key',
              suggestion:
                near === undefined
                  ? `Known here: ${Object.keys(properties).join(', ')}.`
                  : `Did you mean ${quoted(near)}?`
            }
          : {
              message: `belongs to an ${other.title}, and this is an ${schema.title}`,
              suggestion: 'Remove it, or make two entries.'
            }
      )
    }
  }
  for (const key of schema.required ?? []) {
    // A misspelt key is not reported as missing as well.
    if (Object.hasOwn(value, key) || meant.has(key)) continue
    const instead = kindGiven ? [] : others.flatMap((branch) => branch.required ?? [])
    if (instead.length > 0)
      report.add(path, { message: `has neither ${[key, ...instead].join(' nor ')}`, suggestion: 'Give one of them.' })
    else
      report.add([...path, key], {
        message: 'is missing',
        suggestion: properties[key]?.description === undefined ? undefined : `Add it. ${properties[key].description}`
      })
  }
  if (Object.keys(value).length < (schema.minProperties ?? 0))
    report.add(path, { message: 'is empty', suggestion: 'Give at least one entry.' })
  return result
}

function shapedLeaf(schema: Shape, value: unknown, path: Path, { report, isReference }: ShapeContext): unknown {
  const fault = (message: string, suggestion?: string) => {
    report.add(path, { message, suggestion })
    return value
  }
  if (schema.enum !== undefined) {
    if (schema.enum.includes(value)) return value
    const refusal =
      typeof value === 'string' && schema.refused !== undefined && Object.hasOwn(schema.refused, value)
        ? schema.refused[value]
        : undefined
    const names = schema.enum.map(String)
    return fault(
      refusal ?? `must be ${names.length > 1 ? 'one of ' : ''}${names.join(', ')}`,
      refusal === undefined && typeof value === 'string' ? didYouMean(value, names) : undefined
    )
  }
  if (schema.type === 'boolean') {
    const given = isReference(path) && (value === 'true' || value === 'false') ? value === 'true' : value
    return typeof given === 'boolean' ? given : wrongType(schema, path, report, value)
  }
  if (schema.type === 'integer') {
    const given =
      typeof value === 'string' && isReference(path) && /^-?[0-9]{1,15}$/.test(value) ? Number(value) : value
    if (typeof given !== 'number' || !Number.isSafeInteger(given)) return wrongType(schema, path, report, value)
    if (given < (schema.minimum ?? -Infinity) || given > (schema.maximum ?? Infinity))
      return fault(`must be from ${schema.minimum} to ${schema.maximum}`)
    return given
  }
  if (typeof value !== 'string') return wrongType(schema, path, report, value)
  if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
    return fault(schema.patternErrorMessage ?? `must match ${schema.pattern}`)
  if (value.length > (schema.maxLength ?? Infinity)) return fault(`must have at most ${schema.maxLength} characters`)
  const wrong = schema.format === undefined ? undefined : formatFault(schema.format, value)
  return wrong === undefined ? value : fault(wrong.message, wrong.suggestion)
}

function wrongType(schema: Shape, path: Path, report: Report, value: unknown): unknown {
  const scalar = typeof value === 'number' || typeof value === 'boolean'
  report.add(path, {
    message: `must be ${kindOf(schema)}`,
    suggestion:
      schema.type === 'string' && scalar
        ? 'Put it in quotes.'
        : schema.type === 'array' && !isTree(value)
          ? 'Put it in brackets: [ … ].'
          : typeof value === 'string' && (schema.type === 'integer' || schema.type === 'boolean')
            ? 'Write it without quotes.'
            : undefined
  })
  return value
}

function kindOf(schema: Shape): string {
  if (schema.const !== undefined) return typeof schema.const === 'string' ? schema.const : JSON.stringify(schema.const)
  if (schema.title !== undefined && schema.type === 'string') return `the ${schema.title}`
  const kinds: Readonly<Record<string, string>> = {
    string: 'a string',
    integer: 'a whole number',
    boolean: 'true or false',
    array: 'a list',
    object: 'a map of keys and values'
  }
  return kinds[schema.type ?? ''] ?? 'something else'
}
