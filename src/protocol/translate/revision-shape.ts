// What a client's negotiated revision does not have is converted where its meaning can be kept, else left out. Most
// clients ignore unknown members, but a content type outside of a closed union makes the whole result invalid.

import {
  type JsonObject,
  type Notification,
  type Result,
  type Revision,
  type ServerCapabilities,
  atLeast,
  isObject
} from '../messages.ts'

type Since = Readonly<Record<string, Revision>>

// Member -> the first revision that has it (schema of each revision).
const entryMembers: Since = { title: '2025-06-18', _meta: '2025-06-18', icons: '2025-11-25' }
const toolMembers: Since = {
  ...entryMembers,
  annotations: '2025-03-26',
  outputSchema: '2025-06-18',
  execution: '2025-11-25'
}
const capabilityMembers: Since = { completions: '2025-03-26', tasks: '2025-11-25' }

export function shapeTool(tool: JsonObject, revision: Revision): JsonObject {
  // 2026-07-28 has no `execution`: there the server decides what becomes a task.
  if ('execution' in tool && atLeast(revision, '2026-07-28')) {
    const { execution: _left, ...known } = tool
    return known
  }
  return without(tool, toolMembers, revision)
}

/** A prompt with its arguments, a resource or a resource template of a list. */
export function shapeEntry(entry: JsonObject, revision: Revision): JsonObject {
  const shaped = without(entry, entryMembers, revision)
  const args = shaped['arguments']
  if (!Array.isArray(args) || atLeast(revision, '2025-06-18')) return shaped
  return {
    ...shaped,
    arguments: args.map((argument: unknown) =>
      isObject(argument) ? without(argument, entryMembers, revision) : argument
    )
  }
}

/** Capabilities for the response to `initialize`. */
export const shapeCapabilities = (capabilities: ServerCapabilities, revision: Revision): ServerCapabilities =>
  without(capabilities, capabilityMembers, revision)

const maxValues = 100

/** server/utilities/completion: at most 100 values; `hasMore` says that there are more. */
export function shapeCompletion(result: Result): Result {
  const { completion } = result
  if (!isObject(completion) || !Array.isArray(completion['values']) || completion['values'].length <= maxValues)
    return result
  const { values, total = values.length } = completion as JsonObject & { values: unknown[] }
  return { ...result, completion: { ...completion, values: values.slice(0, maxValues), total, hasMore: true } }
}

/**
 * A `tools/call` result. Before 2025-06-18 there is no structured content: it becomes text, unless the server sent text
 * already (2025-06-18 server/tools "Structured Content": servers SHOULD).
 */
export function shapeToolResult(result: Result, revision: Revision): Result {
  if (atLeast(revision, '2025-06-18')) return result
  const { structuredContent, ...rest } = result
  const content: unknown[] = Array.isArray(rest['content']) ? rest['content'] : []
  const shaped = content.map((block) => shapeBlock(block, revision))
  const hasText = shaped.some((block) => isObject(block) && block['type'] === 'text')
  if (structuredContent !== undefined && !hasText)
    shaped.push({ type: 'text', text: JSON.stringify(structuredContent) })
  return { ...rest, content: shaped }
}

export function shapePromptResult(result: Result, revision: Revision): Result {
  const { messages } = result
  if (atLeast(revision, '2025-06-18') || !Array.isArray(messages)) return result
  return {
    ...result,
    messages: messages.map((message: unknown) =>
      isObject(message) ? { ...message, content: shapeBlock(message['content'], revision) } : message
    )
  }
}

/** 2024-11-05 progress has no `message`. */
export function shapeNotification(notification: Notification, revision: Revision): Notification {
  const { method, params: { message, ...params } = {} } = notification
  return method !== 'notifications/progress' || atLeast(revision, '2025-03-26') || message === undefined
    ? notification
    : { method, params }
}

/**
 * The schema of a form elicitation. 2025-06-18 has single choices as `enum` with `enumNames`, defaults for booleans
 * only, and no multiple choice (SEP-1330 came with 2025-11-25).
 * @returns undefined where the revision cannot express it
 */
export function shapeRequestedSchema(schema: JsonObject, revision: Revision): JsonObject | undefined {
  const { properties } = schema
  if (atLeast(revision, '2025-11-25') || !isObject(properties)) return schema
  const shaped: JsonObject = {}
  for (const [name, property] of Object.entries(properties)) {
    if (!isObject(property)) continue
    if (property['type'] === 'array') return undefined
    const { oneOf, default: preset, ...rest } = property
    const kept = typeof preset === 'boolean' ? { ...rest, default: preset } : rest
    shaped[name] = Array.isArray(oneOf)
      ? {
          ...kept,
          enum: oneOf.map((choice: unknown) => (isObject(choice) ? choice['const'] : choice)),
          enumNames: oneOf.map((choice: unknown) => (isObject(choice) ? (choice['title'] ?? choice['const']) : choice))
        }
      : kept
  }
  return { ...schema, properties: shaped }
}

/**
 * The messages of a sampling request. Before 2025-11-25 a message has one block of content, so that several become as
 * many messages of the same role; audio came with 2025-03-26, tools in sampling with 2025-11-25.
 * @returns undefined where the revision cannot express them
 */
export function shapeSamplingMessages(
  messages: readonly unknown[],
  revision: Revision
): readonly unknown[] | undefined {
  if (atLeast(revision, '2025-11-25')) return messages
  const known = atLeast(revision, '2025-03-26') ? ['text', 'image', 'audio'] : ['text', 'image']
  const shaped = messages.flatMap((message) =>
    !isObject(message) || !Array.isArray(message['content'])
      ? [message]
      : message['content'].map((content: unknown) => ({ ...message, content }))
  )
  return shaped.every(
    (message) =>
      !isObject(message) || !isObject(message['content']) || known.includes(String(message['content']['type']))
  )
    ? shaped
    : undefined
}

function shapeBlock(block: unknown, revision: Revision): unknown {
  if (!isObject(block)) return block
  // Resource links came with 2025-06-18; as text they keep what a person or a model needs.
  if (block['type'] === 'resource_link') {
    const words = [block['title'] ?? block['name'], block['description']].filter(
      (word) => typeof word === 'string' && word !== ''
    )
    return { type: 'text', text: [...words, String(block['uri'])].join('\n') }
  }
  // Audio came with 2025-03-26; before, a blob with its media type means the same.
  if (block['type'] === 'audio' && !atLeast(revision, '2025-03-26')) {
    return { type: 'resource', resource: { uri: 'data:,audio', mimeType: block['mimeType'], blob: block['data'] } }
  }
  return block
}

function without(entry: JsonObject, since: Since, revision: Revision): JsonObject {
  let shaped: JsonObject | undefined
  for (const member in since) {
    if (!(member in entry) || atLeast(revision, since[member] ?? revision)) continue
    shaped ??= { ...entry }
    delete shaped[member]
  }
  return shaped ?? entry
}
