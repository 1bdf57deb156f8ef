// The headers of one request of 2026-07-28, made from the very body that is sent (basic/transports/streamable-http "Request Metadata").

import { versionKey } from '../../protocol/envelope.ts'
import { metaOf } from '../../protocol/messages.ts'
import { encodeHeader } from '../../protocol/param-headers.ts'
import type { Request } from '../../protocol/messages.ts'
import type { Schemas } from './schemas.ts'

/** The member of `params` that `Mcp-Name` repeats; `tasks/*` are of the tasks extension. */
const named: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'], ['prompts/get', 'name'], ['resources/read', 'uri'],
  ['tasks/get', 'taskId'], ['tasks/update', 'taskId'], ['tasks/cancel', 'taskId']
])

/**
 * Names and values in turn, `base` last.
 * @param request in its envelope
 */
export function modernHeaders ({ method, params }: Request, base: readonly string[], schemas: Schemas | undefined): string[] {
  const headers = [
    'accept', 'application/json, text/event-stream', 'content-type', 'application/json',
    'mcp-protocol-version', String(metaOf(params)[versionKey]), 'mcp-method', encodeHeader(method)
  ]
  const member = named.get(method)
  const name = member === undefined ? undefined : params?.[member]
  if (typeof name === 'string') headers.push('mcp-name', encodeHeader(name))
  if (method === 'tools/call' && schemas !== undefined) headers.push(...schemas.headers(params?.['name'], params?.['arguments']))
  headers.push(...base)
  return headers
}
