// What went wrong at a modern server, as the client of a session may hear it (2025-11-25 schema).

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import type { ClientCapabilities, JsonObject, Result } from '../protocol/messages.ts'
import { undeclared } from '../protocol/required.ts'
import { without } from '../protocol/rewrite.ts'
import type { Upstream } from '../protocol/seams.ts'
import type { Call } from './call.ts'
import { Unaskable } from './fulfil-asks.ts'
import { isDemand, lacking, opensPages, withoutPages } from './lacking.ts'

const codes = { notFound: -32_002, params: -32_602, headers: -32_020, capability: -32_021, version: -32_022 }

/**
 * Older revisions have no error for a capability that the client lacks: a model learns of it as the result of the tool, others as an error.
 * @param declared as the server was told
 * @returns the result of a tool that could not do its work
 * @throws RpcError, GatewayError
 */
export function excused (error: unknown, call: Call, { name }: Upstream, declared: ClientCapabilities): Result {
  // Of a call that shall be a task, it is the result that the task ended with.
  const request = without(call.request, 'task')
  if (error instanceof Unaskable) return lacking(request, name, error.message, error.required, error)
  if (!(error instanceof RpcError)) throw error
  const { code, data } = error.error
  switch (code) {
    case codes.capability: {
      const missing = undeclared(isObject(data) ? data['requiredCapabilities'] : undefined, declared)
      if (missing === undefined) throw ours(name, `Upstream ${name} needs a capability that does not pass through the gateway.`, {}, error)
      return lacking(request, name, `Upstream ${name} needs a capability that this client does not offer: ${pathsOf(missing).join(', ')}. It said: ${error.message.slice(0, 300)}`, missing, error)
    }
    case codes.headers:
    case codes.version:
      throw ours(name, `The gateway and upstream ${name} do not agree on the protocol (error ${code}).`, {}, error)
    case codes.params:
      // 2026-07-28 server/resources "Error Handling": it is the URI that makes it the error for what older revisions have a code of its own for.
      if (call.request.method === 'resources/read' && isObject(data) && typeof data['uri'] === 'string') throw new RpcError({ ...error.error, code: codes.notFound })
      throw error
    default:
      if (isDemand(error) && !opensPages(call)) return withoutPages(error, call, request, name)
      throw error
  }
}

const ours = (upstream: string, message: string, data: JsonObject, cause: Error): GatewayError =>
  new GatewayError('upstream_protocol', message, { cause, data: { ...data, upstream } })

/** `{ sampling: { tools: {} } }` -> `sampling.tools`. */
function pathsOf (capabilities: JsonObject): string[] {
  return Object.entries(capabilities).flatMap(([name, inner]) => {
    const below = isObject(inner) ? pathsOf(inner) : []
    return below.length === 0 ? [name.slice(0, 100)] : below.map((path) => `${name.slice(0, 100)}.${path}`)
  })
}
