// Structured output may be any JSON value in 2026-07-28 but must be an object in 2025-06-18 and 2025-11-25
// (server/tools "Structured Content", "Output Schema"). Other values go to legacy clients as `{ "result": value }`, and
// the schema says so.

import { isObject, type JsonObject, type Result } from '../messages.ts'

const root = '#/properties/result'

/** Whether results of the tool are wrapped: all of them, where its `outputSchema` allows other values than objects. */
export function needsWrapping(tool: JsonObject): boolean {
  const schema = tool['outputSchema']
  return schema !== undefined && !(isObject(schema) && schema['type'] === 'object')
}

/** The tool with an `outputSchema` that matches `wrapStructured`. */
export function wrapOutputSchema(tool: JsonObject): JsonObject {
  if (!needsWrapping(tool)) return tool
  const { outputSchema: natural } = tool
  // Validators look for the dialect at the root.
  const dialect = isObject(natural) && typeof natural['$schema'] === 'string' ? { $schema: natural['$schema'] } : {}
  return {
    ...tool,
    outputSchema: { ...dialect, type: 'object', properties: { result: moved(natural) }, required: ['result'] }
  }
}

/**
 * A `tools/call` result for a client whose revision has structured objects only.
 * @param always whether the tool's `outputSchema` was wrapped; values other than objects are wrapped in any case
 */
export function wrapStructured(result: Result, always: boolean): Result {
  const { structuredContent: value, content } = result
  if (value === undefined || (!always && isObject(value))) return result
  // The output of a failed tool does not follow its schema.
  if (result['isError'] === true && isObject(value)) return result
  const blocks: unknown[] = Array.isArray(content) ? content : []
  const hasText = blocks.some((block) => isObject(block) && block['type'] === 'text')
  return {
    ...result,
    content: hasText ? blocks : [...blocks, { type: 'text', text: JSON.stringify(value) }],
    structuredContent: { result: value }
  }
}

/** Keywords whose values are data: a `$ref` inside is not a reference. */
const data = new Set(['const', 'enum', 'default', 'examples'])
/** Keywords whose members have names of the author's choice, which may look like keywords. */
const maps = new Set('properties patternProperties $defs definitions dependentSchemas dependencies'.split(' '))

/**
 * A schema that was moved to `#/properties/result`: JSON pointers from the root are adjusted. References by name and to
 * other documents stay, and so does a subschema with an `$id`, which is a document of its own (JSON Schema 2020-12
 * core, section 8.2.1).
 */
function moved(schema: unknown): unknown {
  const recursive =
    isObject(schema) && String(schema['$schema']).includes('/2019-09/') && schema['$recursiveAnchor'] !== true

  function inSchema(node: unknown): unknown {
    if (Array.isArray(node)) return node.map(inSchema)
    if (!isObject(node) || ownBase(node['$id'])) return node
    const entries = Object.entries(node).map(([keyword, value]): [string, unknown] => {
      if ((keyword === '$ref' || keyword === '$dynamicRef') && typeof value === 'string')
        return [keyword, pointer(value)]
      if (data.has(keyword)) return [keyword, value]
      if (maps.has(keyword) && isObject(value))
        return [keyword, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, inSchema(each)]))]
      return [keyword, inSchema(value)]
    })
    const changed = Object.fromEntries(entries)
    // 2019-09 core, section 8.2.4.2: without an anchor at the root it refers to the root, which has moved.
    if (!recursive || changed['$recursiveRef'] !== '#') return changed
    const { $recursiveRef: _left, ...rest } = changed
    if (!('$ref' in rest)) return { ...rest, $ref: root }
    const allOf: unknown[] = Array.isArray(rest['allOf']) ? rest['allOf'] : []
    return { ...rest, allOf: [...allOf, { $ref: root }] }
  }

  return inSchema(schema)
}

const pointer = (ref: string): string => (ref === '#' ? root : ref.startsWith('#/') ? root + ref.slice(1) : ref)

// Before 2019-09 a fragment in `$id` was a name, as `$anchor` is now.
const ownBase = (id: unknown): boolean => id !== undefined && !(typeof id === 'string' && id.startsWith('#'))
