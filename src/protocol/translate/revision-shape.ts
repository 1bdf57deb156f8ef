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

/** Member of a listed entry, and the first revision that has it (schema of each revision). */
const since: Readonly<
  Record<'tool' | 'other' | 'capabilities', ReadonlyArray<readonly [member: string, revision: Revision]>>
> = {
  tool: [
    ['annotations', '2025-03-26'],
    ['title', '2025-06-18'],
    ['outputSchema', '2025-06-18'],
    ['_meta', '2025-06-18'],
    ['icons', '2025-11-25'],
    ['execution', '2025-11-25']
  ],
  other: [
    ['title', '2025-06-18'],
    ['_meta', '2025-06-18'],
    ['icons', '2025-11-25']
  ],
  capabilities: [
    ['completions', '2025-03-26'],
    ['tasks', '2025-11-25']
  ]
}

/** A tool of a list for a revision. */
export function shapeTool(tool: JsonObject, revision: Revision): JsonObject {
  // 2026-07-28 has no `execution`: there the server decides what becomes a task.
  if ('execution' in tool && atLeast(revision, '2026-07-28')) {
    const { execution: _left, ...known } = tool
    return known
  }
  return without(tool, since.tool, revision)
}

/** A prompt, resource or resource template of a list for a revision, with the arguments of the prompt. */
export function shapeEntry(entry: JsonObject, revision: Revision): JsonObject {
  const shaped = without(entry, since.other, revision)
  const args = shaped['arguments']
  if (!Array.isArray(args) || atLeast(revision, '2025-06-18')) return shaped
  return {
    ...shaped,
    arguments: args.map((argument: unknown) =>
      isObject(argument) ? without(argument, since.other, revision) : argument
    )
  }
}

/**
 * Capabilities for the response to `initialize`: tasks came with 2025-11-25, and completion had no capability before
 * 2025-03-26.
 */
export function shapeCapabilities(capabilities: ServerCapabilities, revision: Revision): ServerCapabilities {
  return without(capabilities, since.capabilities, revision)
}

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
  const shaped = shapeContent(Array.isArray(rest['content']) ? rest['content'] : [], revision)
  const hasText = shaped.some((block) => isObject(block) && block['type'] === 'text')
  const content =
    structuredContent === undefined || hasText
      ? shaped
      : [...shaped, { type: 'text', text: JSON.stringify(structuredContent) }]
  return { ...rest, content }
}

/** A `prompts/get` result. */
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
  if (
    notification.method !== 'notifications/progress' ||
    atLeast(revision, '2025-03-26') ||
    notification.params?.['message'] === undefined
  )
    return notification
  const { message: _left, ...params } = notification.params
  return { method: notification.method, params }
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

function shapeContent(content: readonly unknown[], revision: Revision): unknown[] {
  return content.map((block) => shapeBlock(block, revision))
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

function without(
  entry: JsonObject,
  members: ReadonlyArray<readonly [string, Revision]>,
  revision: Revision
): JsonObject {
  const unknown = members.filter(([member, first]) => member in entry && !atLeast(revision, first))
  if (unknown.length === 0) return entry
  const shaped = { ...entry }
  for (const [member] of unknown) delete shaped[member]
  return shaped
}
