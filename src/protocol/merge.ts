// What an endpoint of several upstreams says of itself: capabilities and instructions, merged (specification, basic/lifecycle).

import { isObject } from './messages.ts'
import type { JsonObject, ServerCapabilities } from './messages.ts'

// Served by the gateway itself, so `list_changed` can be promised for every list.
const listed = ['tools', 'prompts', 'resources'] as const
const plain = ['completions', 'logging'] as const

/**
 * The union of what the upstreams offer, in terms of what the gateway passes on.
 * `undefined` stands for an upstream that is not known yet: capabilities are frozen for a session, so it counts as offering everything.
 */
export function mergeCapabilities (members: ReadonlyArray<ServerCapabilities | undefined>): ServerCapabilities {
  const merged: JsonObject = {}
  const offered = (name: string): boolean => members.some((member) => member === undefined || isObject(member[name]))
  for (const name of listed) if (offered(name)) merged[name] = { listChanged: true }
  for (const name of plain) if (offered(name)) merged[name] = {}
  const declares = (...path: readonly string[]): boolean => members.some((member) => member === undefined || has(member, path))
  if (declares('resources', 'subscribe')) merged['resources'] = { subscribe: true, listChanged: true }
  // 2025-11-25 basic/utilities/tasks: which requests is all that matters; the rest only serves them.
  if (declares('tasks', 'requests', 'tools', 'call')) {
    merged['tasks'] = {
      ...declares('tasks', 'list') && { list: {} },
      ...declares('tasks', 'cancel') && { cancel: {} },
      requests: { tools: { call: {} } }
    }
  }
  const [only] = members
  if (members.length === 1 && only !== undefined) {
    const { experimental, extensions } = only
    if (isObject(experimental)) merged['experimental'] = experimental
    if (isObject(extensions)) {
      // Its methods are of 2026-07-28; older clients have tasks of another kind.
      const { [tasksExtension]: _tasks, ...others } = extensions
      if (Object.keys(others).length > 0) merged['extensions'] = others
    }
  }
  return merged
}

/** The extensions of which everything that their servers and clients say to each other passes through. */
export const uiExtension = 'io.modelcontextprotocol/ui'
export const tasksExtension = 'io.modelcontextprotocol/tasks'

export interface Member {
  /** Does it speak 2026-07-28? */
  readonly modern: boolean
  readonly capabilities: ServerCapabilities
}

/**
 * The union as `server/discover` says it: what works from end to end, and no more. `undefined` stands for an upstream that is not known
 * yet: it counts as offering lists and what goes with them, which are empty until it is there, but nothing beyond.
 */
export function mergeModern (members: ReadonlyArray<Member | undefined>): ServerCapabilities {
  const merged: JsonObject = {}
  const offered = (name: string): boolean => members.some((member) => member === undefined || isObject(member.capabilities[name]))
  for (const name of listed) if (offered(name)) merged[name] = { listChanged: true }
  for (const name of plain) if (offered(name)) merged[name] = {}
  const declares = (...path: readonly string[]): boolean => members.some((member) => member?.modern === true && has(member.capabilities, path))
  if (members.some((member) => has(member?.capabilities ?? {}, ['resources', 'subscribe']))) merged['resources'] = { subscribe: true, listChanged: true }
  const extensions: JsonObject = {}
  for (const member of members) {
    const declared = member?.capabilities['extensions']
    if (isObject(declared) && isObject(declared[uiExtension])) extensions[uiExtension] = { ...declared[uiExtension], ...extensions[uiExtension] as JsonObject | undefined }
  }
  // The tasks of older servers are others, and known by another name; they are translated.
  const oldTasks = members.some((member) => member?.modern === false && has(member.capabilities, ['tasks', 'requests', 'tools', 'call']))
  if (oldTasks || declares('extensions', tasksExtension)) extensions[tasksExtension] = {}
  if (Object.keys(extensions).length > 0) merged['extensions'] = extensions
  const [only] = members
  if (members.length === 1 && isObject(only?.capabilities['experimental'])) merged['experimental'] = only.capabilities['experimental']
  return merged
}

/** Is the capability declared, as an object or as true, at this path? */
export function has (capabilities: JsonObject, path: readonly string[]): boolean {
  let value: unknown = capabilities
  for (const member of path) value = isObject(value) ? value[member] : undefined
  return isObject(value) || value === true
}

export interface Instructed {
  readonly upstream: string
  readonly prefix: string
  readonly instructions: string | undefined
}

const maxInstructions = 16_384

/** Instructions under one heading per upstream, with the prefix rule stated. A single unprefixed upstream keeps its own text as it is. */
export function mergeInstructions (own: string | undefined, members: readonly Instructed[], separator: string): string | undefined {
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
