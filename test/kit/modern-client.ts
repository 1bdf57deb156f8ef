// A raw client of 2026-07-28: a whole request with all that belongs to it, of which a test takes away or changes what
// it likes.

import type { OutgoingHttpHeaders } from 'node:http'
import { jsonHeaders, send, type Answer } from './client.ts'
import type { Json } from './mcp-server.ts'

export const modernVersion = '2026-07-28'
const key = (name: string): string => `io.modelcontextprotocol/${name}`

export interface ModernOptions {
  readonly id?: string | number
  /** Members of `_meta` beside the envelope, or in place of its members; undefined takes one away. */
  readonly meta?: Json
  readonly capabilities?: Json
  /** In place of the right ones; undefined takes one away. */
  readonly headers?: OutgoingHttpHeaders
  readonly token?: string | undefined
  readonly signal?: AbortSignal
}

const nameOf: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId'
}

export function envelope(capabilities: Json = {}): Json {
  return {
    [key('protocolVersion')]: modernVersion,
    [key('clientInfo')]: { name: 'raw', version: '1' },
    [key('clientCapabilities')]: capabilities
  }
}

/** The body and the headers of a request as the specification has them. `Mcp-Param-*` are the test's to add. */
export function modernMessage(
  method: string,
  params: Json = {},
  { id = 1, meta = {}, capabilities, headers = {}, token }: ModernOptions = {}
): { headers: OutgoingHttpHeaders; body: string } {
  const name = params[nameOf[method] ?? ''] as string | undefined
  const all: OutgoingHttpHeaders = {
    ...jsonHeaders,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    'mcp-protocol-version': modernVersion,
    'mcp-method': method,
    ...(name === undefined ? {} : { 'mcp-name': name }),
    ...headers
  }
  return {
    headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
    body: JSON.stringify({
      jsonrpc: '2.0',
      id,
      method,
      params: { ...params, _meta: { ...envelope(capabilities), ...meta } }
    })
  }
}

export async function modernRequest(
  url: string,
  method: string,
  params: Json = {},
  options: ModernOptions = {}
): Promise<Answer> {
  return await send(url, {
    ...modernMessage(method, params, options),
    ...(options.signal === undefined ? {} : { signal: options.signal })
  })
}
