// The methods of MCP that the gateway knows, and the capabilities that they need. What legacy clients may request is
// the table of relay/methods/legacy.ts. Notifications that belong to one message (progress, cancelled, initialized,
// acknowledged) are the transports' business and not listed.

import { isObject, type ClientCapabilities, type JsonObject, type ServerCapabilities } from './messages.ts'
import type { ListKind } from './seams.ts'

export const tasksExtension = 'io.modelcontextprotocol/tasks'
/** An extension that passes through the gateway completely. */
export const uiExtension = 'io.modelcontextprotocol/ui'

interface ClientRequest {
  /** Path of the capability that the server must have declared. */
  readonly capability?: readonly string[]
  /** Member of `params` that the header Mcp-Name repeats (2026-07-28 "Standard Request Headers"; tasks: SEP-2663). */
  readonly nameParam?: string
  /** A server may answer it with `input_required` (2026-07-28 basic/patterns/mrtr). */
  readonly takesInput?: true
}

const taskRequest: ClientRequest = { capability: ['extensions', tasksExtension], nameParam: 'taskId' }

/** The requests of a client of 2026-07-28. */
export const modernClientRequests: ReadonlyMap<string, ClientRequest> = new Map(
  Object.entries<ClientRequest>({
    'server/discover': {},
    'tools/list': { capability: ['tools'] },
    'tools/call': { capability: ['tools'], nameParam: 'name', takesInput: true },
    'prompts/list': { capability: ['prompts'] },
    'prompts/get': { capability: ['prompts'], nameParam: 'name', takesInput: true },
    'resources/list': { capability: ['resources'] },
    'resources/templates/list': { capability: ['resources'] },
    'resources/read': { capability: ['resources'], nameParam: 'uri', takesInput: true },
    'subscriptions/listen': {},
    'completion/complete': { capability: ['completions'] },
    'tasks/get': taskRequest,
    'tasks/update': taskRequest,
    'tasks/cancel': taskRequest
  })
)

/** The input requests of a modern server (2026-07-28 basic/patterns/mrtr) -> the capability that each needs. */
export const inputRequestCapabilities: ReadonlyMap<unknown, string> = new Map([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots']
])

/** The requests of a legacy server, but for `ping` -> the capability that each needs. */
export const legacyServerRequests: ReadonlyMap<unknown, string> = new Map([
  ...inputRequestCapabilities,
  // 2025-11-25 basic/utilities/tasks: the receiver of the request that became a task keeps it, be it the client.
  ...['get', 'result', 'list', 'cancel'].map((verb) => [`tasks/${verb}`, 'tasks'] as const)
])

/** Notification -> the list that it reports as changed. */
export const changedLists: ReadonlyMap<string, ListKind> = new Map(
  (['tools', 'prompts', 'resources'] as const).map((kind) => [`notifications/${kind}/list_changed`, kind])
)

/** The notifications of a legacy server outside of any call, besides changed lists. */
export const otherLegacyNotifications: ReadonlySet<string> = new Set([
  'notifications/message',
  'notifications/resources/updated',
  'notifications/elicitation/complete',
  'notifications/tasks/status'
])

/** The notifications on the stream of `subscriptions/listen` (2026-07-28 basic/patterns/subscriptions). */
export const listenNotifications: ReadonlySet<string> = new Set([
  ...changedLists.keys(),
  'notifications/resources/updated',
  'notifications/tasks'
])

/**
 * The part of `required` (`data.requiredCapabilities` of error -32021) that a client did not declare. A capability
 * counts as declared when it is present; its settings are not compared.
 * @returns undefined where nothing is missing
 */
export function missingCapabilities(required: unknown, declared: ClientCapabilities): JsonObject | undefined {
  if (!isObject(required)) return undefined
  const missing = Object.entries(required).flatMap(([name, inner]) => {
    const given = declared[name]
    if (!isObject(given)) return [[name, inner]]
    // 2026-07-28 client/elicitation: an empty object means form mode.
    const formOnly = name === 'elicitation' && !isObject(given['url'])
    const within = missingCapabilities(inner, formOnly ? { form: {}, ...given } : given)
    return within === undefined ? [] : [[name, within]]
  })
  return missing.length === 0 ? undefined : (Object.fromEntries(missing) as JsonObject)
}

/** Is the capability declared, as an object or as true, at this path? */
export function hasCapability(capabilities: JsonObject, path: readonly string[]): boolean {
  let value: unknown = capabilities
  for (const member of path) value = isObject(value) ? value[member] : undefined
  return isObject(value) || value === true
}

type Members<T> = ReadonlyArray<T | undefined>

/**
 * The union of what the upstreams offer, reduced to what the gateway passes on.
 * @param members undefined for an upstream that is not known yet: capabilities are fixed for a session, so it counts as
 * offering everything
 */
export function mergeCapabilities(members: Members<ServerCapabilities>): ServerCapabilities {
  const declares = (...path: readonly string[]): boolean =>
    members.some((member) => member === undefined || hasCapability(member, path))
  const merged = mergeLists(members, declares('resources', 'subscribe'))
  // 2025-11-25 basic/utilities/tasks: `list` and `cancel` mean nothing unless tool calls can be tasks.
  if (declares('tasks', 'requests', 'tools', 'call')) {
    merged['tasks'] = {
      ...(declares('tasks', 'list') && { list: {} }),
      ...(declares('tasks', 'cancel') && { cancel: {} }),
      requests: { tools: { call: {} } }
    }
  }
  if (members.length === 1 && isObject(members[0]?.['extensions'])) {
    // The extension has the methods of 2026-07-28; legacy clients have the tasks of 2025-11-25.
    const { [tasksExtension]: _tasks, ...others } = members[0]['extensions']
    if (Object.keys(others).length > 0) merged['extensions'] = others
  }
  return merged
}

/**
 * The union for `server/discover`: what works from end to end.
 * @param members undefined for an upstream that is not known yet: it counts as offering lists, which are empty until it
 * is there, and what belongs to them, but nothing else
 */
export function mergeModernCapabilities(
  members: Members<{ readonly modern: boolean; readonly capabilities: ServerCapabilities }>
): ServerCapabilities {
  const declares = (modern: boolean, ...path: readonly string[]): boolean =>
    members.some((member) => member?.modern === modern && hasCapability(member.capabilities, path))
  const merged = mergeLists(
    members.map((member) => member?.capabilities),
    declares(true, 'resources', 'subscribe') || declares(false, 'resources', 'subscribe')
  )
  const extensions: JsonObject = {}
  for (const member of members) {
    const declared = member?.capabilities['extensions']
    if (isObject(declared) && isObject(declared[uiExtension]))
      extensions[uiExtension] = { ...declared[uiExtension], ...(extensions[uiExtension] as JsonObject | undefined) }
  }
  // The tasks of 2025-11-25 are translated.
  if (declares(false, 'tasks', 'requests', 'tools', 'call') || declares(true, 'extensions', tasksExtension))
    extensions[tasksExtension] = {}
  if (Object.keys(extensions).length > 0) merged['extensions'] = extensions
  return merged
}

/**
 * Merges the capabilities that both eras have. The gateway itself serves lists, so it advertises `listChanged` for
 * each.
 */
function mergeLists(members: Members<ServerCapabilities>, subscribe: boolean): ServerCapabilities {
  const merged: JsonObject = {}
  const offered = (name: string): boolean => members.some((member) => member === undefined || isObject(member[name]))
  for (const name of ['tools', 'prompts', 'resources']) if (offered(name)) merged[name] = { listChanged: true }
  if (subscribe) merged['resources'] = { subscribe: true, listChanged: true }
  for (const name of ['completions', 'logging']) if (offered(name)) merged[name] = {}
  if (members.length === 1 && isObject(members[0]?.['experimental']))
    merged['experimental'] = members[0]['experimental']
  return merged
}

const maxInstructions = 16_384

/**
 * Instructions under one heading per upstream, with the prefix rule stated. A single unprefixed upstream keeps its own
 * text as it is.
 */
export function mergeInstructions(
  own: string | undefined,
  members: ReadonlyArray<{
    readonly upstream: string
    readonly prefix: string
    readonly instructions: string | undefined
  }>,
  separator: string
): string | undefined {
  const parts = members.map(({ upstream, prefix, instructions }) => {
    if (members.length === 1 && prefix === '') return instructions
    if (instructions === undefined || instructions === '') return undefined
    const rule = prefix === '' ? '' : ` (its tools and prompts are named ${prefix}${separator}…)`
    return `## ${upstream}${rule}\n\n${instructions}`
  })
  const given = [own, ...parts].filter((part) => part !== undefined)
  if (given.length === 0) return undefined
  const text = given.join('\n\n')
  return text.length <= maxInstructions ? text : text.slice(0, maxInstructions) + '\n\n[shortened by the gateway]'
}
