// Capabilities and instructions of an endpoint, merged from those of its upstreams (specification, basic/lifecycle).

import { tasksExtension } from '../methods.ts'
import { isObject, type JsonObject, type ServerCapabilities } from '../messages.ts'

// Served by the gateway itself, so `list_changed` can be promised for every list.
const listed = ['tools', 'prompts', 'resources'] as const
const plain = ['completions', 'logging'] as const

/**
 * The union of what the upstreams offer, reduced to what the gateway passes on.
 * `undefined` stands for an upstream that is not known yet: capabilities are fixed for a session, so it counts as
 * offering everything.
 */
export function mergeCapabilities(members: ReadonlyArray<ServerCapabilities | undefined>): ServerCapabilities {
  const merged: JsonObject = {}
  const offered = (name: string): boolean => members.some((member) => member === undefined || isObject(member[name]))
  for (const name of listed) if (offered(name)) merged[name] = { listChanged: true }
  for (const name of plain) if (offered(name)) merged[name] = {}
  const declares = (...path: readonly string[]): boolean =>
    members.some((member) => member === undefined || hasCapability(member, path))
  if (declares('resources', 'subscribe')) merged['resources'] = { subscribe: true, listChanged: true }
  // 2025-11-25 basic/utilities/tasks: `list` and `cancel` mean nothing unless tool calls can be tasks.
  if (declares('tasks', 'requests', 'tools', 'call')) {
    merged['tasks'] = {
      ...(declares('tasks', 'list') && { list: {} }),
      ...(declares('tasks', 'cancel') && { cancel: {} }),
      requests: { tools: { call: {} } }
    }
  }
  const [only] = members
  if (members.length === 1 && only !== undefined) {
    const { experimental, extensions } = only
    if (isObject(experimental)) merged['experimental'] = experimental
    if (isObject(extensions)) {
      // The extension has the methods of 2026-07-28; legacy clients have the tasks of 2025-11-25.
      const { [tasksExtension]: _tasks, ...others } = extensions
      if (Object.keys(others).length > 0) merged['extensions'] = others
    }
  }
  return merged
}

/** An extension that passes through the gateway completely. */
export const uiExtension = 'io.modelcontextprotocol/ui'

export interface MergedUpstream {
  /** Does it use 2026-07-28? */
  readonly modern: boolean
  readonly capabilities: ServerCapabilities
}

/**
 * The union for `server/discover`: what works from end to end. `undefined` stands for an upstream that is not known
 * yet: it counts as offering lists, which are empty until it is there, and what belongs to them, but nothing else.
 */
export function mergeModernCapabilities(members: ReadonlyArray<MergedUpstream | undefined>): ServerCapabilities {
  const merged: JsonObject = {}
  const offered = (name: string): boolean =>
    members.some((member) => member === undefined || isObject(member.capabilities[name]))
  for (const name of listed) if (offered(name)) merged[name] = { listChanged: true }
  for (const name of plain) if (offered(name)) merged[name] = {}
  const declares = (...path: readonly string[]): boolean =>
    members.some((member) => member?.modern === true && hasCapability(member.capabilities, path))
  if (members.some((member) => hasCapability(member?.capabilities ?? {}, ['resources', 'subscribe'])))
    merged['resources'] = { subscribe: true, listChanged: true }
  const extensions: JsonObject = {}
  for (const member of members) {
    const declared = member?.capabilities['extensions']
    if (isObject(declared) && isObject(declared[uiExtension]))
      extensions[uiExtension] = { ...declared[uiExtension], ...(extensions[uiExtension] as JsonObject | undefined) }
  }
  // The tasks of 2025-11-25 are translated.
  const legacyTasks = members.some(
    (member) => member?.modern === false && hasCapability(member.capabilities, ['tasks', 'requests', 'tools', 'call'])
  )
  if (legacyTasks || declares('extensions', tasksExtension)) extensions[tasksExtension] = {}
  if (Object.keys(extensions).length > 0) merged['extensions'] = extensions
  const [only] = members
  if (members.length === 1 && isObject(only?.capabilities['experimental']))
    merged['experimental'] = only.capabilities['experimental']
  return merged
}

/** Is the capability declared, as an object or as true, at this path? */
export function hasCapability(capabilities: JsonObject, path: readonly string[]): boolean {
  let value: unknown = capabilities
  for (const member of path) value = isObject(value) ? value[member] : undefined
  return isObject(value) || value === true
}

export interface UpstreamInstructions {
  readonly upstream: string
  readonly prefix: string
  readonly instructions: string | undefined
}

const maxInstructions = 16_384

/**
 * Instructions under one heading per upstream, with the prefix rule stated. A single unprefixed upstream keeps its own
 * text as it is.
 */
export function mergeInstructions(
  own: string | undefined,
  members: readonly UpstreamInstructions[],
  separator: string
): string | undefined {
  const [only] = members
  const parts = own === undefined ? [] : [own]
  if (members.length === 1 && only?.prefix === '') {
    if (only.instructions !== undefined) parts.push(only.instructions)
  } else {
    for (const { upstream, prefix, instructions } of members) {
      if (instructions === undefined || instructions === '') continue
      const rule = prefix === '' ? '' : ` (its tools and prompts are named ${prefix}${separator}…)`
      parts.push(`## ${upstream}${rule}\n\n${instructions}`)
    }
  }
  if (parts.length === 0) return undefined
  const text = parts.join('\n\n')
  return text.length <= maxInstructions ? text : text.slice(0, maxInstructions) + '\n\n[shortened by the gateway]'
}
