// Replaces public names and URIs inside requests and results by the upstream's own, and back. Copies what it changes
// and shares the rest, so that unknown members pass unchanged.

import { isObject, type JsonObject, type Request, type Result } from '../messages.ts'

/** Upstream URI to public URI. The identity on endpoints of a single upstream. */
export type UriMap = (uri: string) => string

/** The request for the upstream: one member of `params` replaced. */
export function withParam(request: Request, name: string, value: unknown): Request {
  return { method: request.method, params: { ...request.params, [name]: value } }
}

/** The request without one member of `params`. */
export function withoutParam(request: Request, name: string): Request {
  const { [name]: _left, ...params } = request.params ?? {}
  return { method: request.method, params }
}

/** URIs in the content of a `tools/call` result: resource links and embedded resources. */
export function rewriteToolResult(result: Result, map: UriMap): Result {
  const content = result['content']
  if (!Array.isArray(content)) return result
  const mapped = mapChanged(content, (block) => rewriteBlock(block, map))
  return mapped === content ? result : { ...result, content: mapped }
}

/** URIs in the messages of a `prompts/get` result, or in those and the tool results of `sampling/createMessage`. */
export function rewriteMessages(holder: JsonObject, map: UriMap): JsonObject {
  const messages = holder['messages']
  if (!Array.isArray(messages)) return holder
  const mapped = mapChanged(messages, (message) => {
    if (!isObject(message)) return message
    const content = message['content']
    const next = Array.isArray(content)
      ? mapChanged(content, (block) => rewriteBlock(block, map))
      : rewriteBlock(content, map)
    return next === content ? message : { ...message, content: next }
  })
  return mapped === messages ? holder : { ...holder, messages: mapped }
}

/** `contents[].uri` of a `resources/read` result. */
export function rewriteReadResult(result: Result, map: UriMap): Result {
  const contents = result['contents']
  if (!Array.isArray(contents)) return result
  const mapped = mapChanged(contents, (entry) => withUri(entry, 'uri', map))
  return mapped === contents ? result : { ...result, contents: mapped }
}

/** A tool of a listing under its public name; an MCP App's `_meta.ui.resourceUri` follows its resource. */
export function rewriteTool(tool: JsonObject, name: string, map: UriMap): JsonObject {
  const meta = tool['_meta']
  const renamed = tool['name'] === name ? tool : { ...tool, name }
  if (!isObject(meta)) return renamed
  const flat = withUri(meta, 'ui/resourceUri', map)
  const ui = withUri(flat['ui'], 'resourceUri', map)
  const next = ui === flat['ui'] ? flat : { ...flat, ui }
  return next === meta ? renamed : { ...renamed, _meta: next }
}

function rewriteBlock(block: unknown, map: UriMap): unknown {
  // 2025-11-25 client/sampling: a tool result has content of its own, without further tool results.
  if (!isObject(block) || block['type'] !== 'tool_result' || !Array.isArray(block['content']))
    return rewriteLeaf(block, map)
  const content = mapChanged(block['content'], (leaf) => rewriteLeaf(leaf, map))
  return content === block['content'] ? block : { ...block, content }
}

function rewriteLeaf(block: unknown, map: UriMap): unknown {
  if (!isObject(block)) return block
  if (block['type'] === 'resource_link') return withUri(block, 'uri', map)
  if (block['type'] === 'resource') {
    const resource = withUri(block['resource'], 'uri', map)
    return resource === block['resource'] ? block : { ...block, resource }
  }
  return block
}

/** The value with the URI of one member, such as `uri` of a resource or `uriTemplate` of a template, replaced. */
export function withUri<T>(value: T, member: string, map: UriMap): T {
  if (!isObject(value)) return value
  const uri = value[member]
  if (typeof uri !== 'string') return value
  const mapped = map(uri)
  return mapped === uri ? value : { ...value, [member]: mapped }
}

function mapChanged(list: readonly unknown[], change: (value: unknown) => unknown): readonly unknown[] {
  const mapped = list.map(change)
  return mapped.some((value, at) => value !== list[at]) ? mapped : list
}
