// Errors of modern servers as the client of a session may get them (2025-11-25 schema).

import { missingCapabilities } from '../../protocol/client-capabilities.ts'
import {
  type ClientCapabilities,
  GatewayError,
  isObject,
  type JsonObject,
  type Result,
  rpcCodes,
  RpcError
} from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { withoutParam } from '../../protocol/translate/rewrite.ts'
import type { LegacyCall } from '../call/call.ts'
import { ClientCannotAnswer } from './ask-session.ts'
import { isUrlElicitationRequired, missingCapability, supportsUrlElicitation, urlsAsText } from './url-elicitation.ts'

/**
 * @param declared as the server was told
 * @returns the result of a tool that could not do its work, where the client lacks a capability
 * @throws RpcError, GatewayError
 */
export function failureForSession(
  error: unknown,
  call: LegacyCall,
  { name }: Upstream,
  declared: ClientCapabilities
): Result {
  // A call that became a task ends with the result of the tool, not with a task.
  const request = withoutParam(call.request, 'task')
  if (error instanceof ClientCannotAnswer)
    return missingCapability(request, name, error.message, error.requiredCapabilities, error)
  if (!(error instanceof RpcError)) throw error
  const { code, data } = error.error
  const ours = (message: string): GatewayError =>
    new GatewayError('upstream_protocol', message, { cause: error, data: { upstream: name } })
  switch (code) {
    case rpcCodes.missingCapability: {
      const missing = missingCapabilities(isObject(data) ? data['requiredCapabilities'] : undefined, declared)
      if (missing === undefined)
        throw ours(`Upstream ${name} needs a capability that does not pass through the gateway.`)
      const message =
        `Upstream ${name} needs a capability that this client does not offer: ` +
        `${pathsOf(missing).join(', ')}. It said: ${error.message.slice(0, 300)}`
      return missingCapability(request, name, message, missing, error)
    }
    case rpcCodes.headerMismatch:
    case rpcCodes.unsupportedRevision:
      throw ours(`The gateway and upstream ${name} do not agree on the protocol (error ${code}).`)
    case rpcCodes.invalidParams:
      // 2026-07-28 server/resources "Error Handling": only the URI tells it from other invalid params; legacy revisions
      // have a code of its own.
      if (call.request.method === 'resources/read' && isObject(data) && typeof data['uri'] === 'string') {
        throw new RpcError({ ...error.error, code: rpcCodes.resourceNotFound })
      }
      throw error
    default:
      if (isUrlElicitationRequired(error) && !supportsUrlElicitation(call))
        return urlsAsText(error, call, request, name)
      throw error
  }
}

/** `{ sampling: { tools: {} } }` -> `sampling.tools`. */
function pathsOf(capabilities: JsonObject): string[] {
  return Object.entries(capabilities).flatMap(([name, inner]) => {
    const below = isObject(inner) ? pathsOf(inner) : []
    return below.length === 0 ? [name.slice(0, 100)] : below.map((path) => `${name.slice(0, 100)}.${path}`)
  })
}
