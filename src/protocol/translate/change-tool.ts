// A tool as an endpoint changes it: what clients are shown instead, and the arguments that the gateway fills in.

import { GatewayError, isObject, type JsonObject, type Request } from '../messages.ts'
import { parseJsonPath, schemaWithout, type JsonPath } from './omit.ts'
import { withParam } from './rewrite.ts'

/** The changes of a tool. Each member may be absent: the tool keeps what its server lists. */
export interface ToolChange {
  /** The whole public name: no prefix is put before it. */
  readonly rename?: string
  readonly title?: string
  readonly description?: string
  /** Added to those of the server, or in their place. */
  readonly annotations?: JsonObject
  /** Of these, hints that a tenant-admin gave. */
  readonly tenantHints?: readonly string[]
  /** Sent with every call, and hidden from clients. */
  readonly fixed?: JsonObject
  /** Sent where the caller leaves the argument out. */
  readonly defaults?: JsonObject
  /** JSON paths of what its results are shown without. */
  readonly omit?: readonly string[]
  /** The longest answer, in place of the limit of the endpoint, in bytes. */
  readonly maxResultBytes?: number
  /** The members of `defaults` whose values clients are not shown. */
  readonly hiddenDefaults?: readonly string[]
}

const pathsOf = new WeakMap<ToolChange, readonly JsonPath[]>()

/** Returns the paths that are left out of results of the tool; none for most. */
export function omittedPaths(change: ToolChange): readonly JsonPath[] {
  const known = pathsOf.get(change)
  if (known !== undefined) return known
  const paths = (change.omit ?? []).map(parseJsonPath).filter((path) => path !== undefined)
  pathsOf.set(change, paths)
  return paths
}

/** Whether the gateway changes results of the tool. Those of tasks are requested without the name of a tool. */
export const changesResults = (change: ToolChange | undefined): boolean =>
  change?.omit !== undefined || change?.maxResultBytes !== undefined

/** The entry of a list, before its name is replaced. */
export function changedTool(tool: JsonObject, change: ToolChange): JsonObject {
  const { title, description } = change
  const annotations = changedAnnotations(tool['annotations'], change)
  const { outputSchema, ...rest } = tool
  const shown = outputSchema === undefined ? undefined : schemaWithout(outputSchema, omittedPaths(change))
  return {
    ...rest,
    ...(shown !== undefined && { outputSchema: shown }),
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(annotations !== undefined && { annotations }),
    inputSchema: changedSchema(tool['inputSchema'], change)
  }
}

/** Revisions before 2025-06-18 have their title here: one that the server wrote would contradict the new one. */
function changedAnnotations(own: unknown, { title, annotations }: ToolChange): JsonObject | undefined {
  const known = isObject(own) ? own : undefined
  const retitled = title !== undefined && known?.['title'] !== undefined ? { title } : {}
  return annotations === undefined && known === undefined ? undefined : { ...known, ...retitled, ...annotations }
}

/**
 * Changes `properties`, `required` and `dependentRequired` of the root. What other keywords say of these arguments
 * stays: it holds for what is sent to the server.
 */
function changedSchema(schema: unknown, { fixed = {}, defaults = {}, hiddenDefaults = [] }: ToolChange): unknown {
  if (!isObject(schema)) return schema
  const { properties, required, dependentRequired, ...rest } = schema
  const isFixed = (name: unknown): boolean => typeof name === 'string' && Object.hasOwn(fixed, name)
  const isFilled = (name: unknown): boolean =>
    isFixed(name) || (typeof name === 'string' && Object.hasOwn(defaults, name))
  const shown = isObject(properties)
    ? Object.fromEntries(
        Object.entries(properties)
          .filter(([name]) => !isFixed(name))
          .map(([name, each]) =>
            Object.hasOwn(defaults, name) && !hiddenDefaults.includes(name)
              ? [name, { ...(isObject(each) ? each : {}), default: defaults[name] }]
              : [name, each]
          )
      )
    : properties
  const dependent = isObject(dependentRequired)
    ? Object.fromEntries(
        Object.entries(dependentRequired)
          .filter(([name]) => !isFixed(name))
          .map(([name, others]) => [name, Array.isArray(others) ? others.filter((each) => !isFilled(each)) : others])
      )
    : dependentRequired
  return {
    ...rest,
    ...(properties !== undefined && { properties: shown }),
    ...(required !== undefined && {
      required: Array.isArray(required) ? required.filter((each) => !isFilled(each)) : required
    }),
    ...(dependentRequired !== undefined && { dependentRequired: dependent })
  }
}

/**
 * A `tools/call` with the arguments of the endpoint.
 * @throws GatewayError invalid_params where the caller sends one that is fixed
 */
export function withArguments(request: Request, { fixed, defaults }: ToolChange): Request {
  if (fixed === undefined && defaults === undefined) return request
  const { arguments: args } = request.params ?? {}
  const given = isObject(args) ? args : {}
  // Nobody is told that it was ignored, if it was: a model would go on as if its value had been used.
  // Some servers read names without regard to case, and which of two they take is not known.
  const names = new Set(Object.keys(fixed ?? {}).map((name) => name.toLowerCase()))
  const refused = Object.keys(given).find((name) => names.has(name.toLowerCase()))
  if (refused !== undefined) {
    const message = `The argument ${JSON.stringify(refused)} of this tool is set by the gateway. Leave it out.`
    throw new GatewayError('invalid_params', message)
  }
  return withParam(request, 'arguments', { ...defaults, ...given, ...fixed })
}
