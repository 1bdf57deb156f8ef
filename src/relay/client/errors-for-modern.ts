// Errors of upstreams as a client of 2026-07-28 may get them (basic/index "Error Codes"). Errors about headers and
// revisions concern one hop each, so they become errors of the gateway.

import { missingCapabilities } from '../../protocol/client-capabilities.ts'
import {
  type ClientCapabilities,
  errorObject,
  GatewayError,
  isObject,
  isReservedForMcp,
  rpcCodes,
  RpcError,
  type RpcErrorObject,
  type UpstreamName
} from '../../protocol/messages.ts'

/** @param capabilities as the client declared them */
export function errorForModern(error: unknown, upstream: UpstreamName, capabilities: ClientCapabilities): unknown {
  if (!(error instanceof RpcError)) return error
  const { code, data } = error.error
  const ours = (message: string): GatewayError =>
    new GatewayError('upstream_protocol', message, { cause: error, data: { upstream } })
  switch (code) {
    case rpcCodes.resourceNotFound:
      return new RpcError({ ...error.error, code: rpcCodes.invalidParams })
    case rpcCodes.missingCapability: {
      const missing = missingCapabilities(isObject(data) ? data['requiredCapabilities'] : undefined, capabilities)
      // The client can do nothing about a capability that it declared and the gateway did not pass on.
      return missing === undefined
        ? ours(`Upstream ${upstream} needs a capability that does not pass through the gateway.`)
        : error
    }
    case rpcCodes.headerMismatch:
    case rpcCodes.unsupportedRevision:
      return ours(`The gateway and upstream ${upstream} do not agree on the protocol (error ${code}).`)
    case rpcCodes.urlElicitationRequired:
      return ours(
        `Upstream ${upstream} wants a web page to be visited first, ` +
          `in a way (error ${code}) that 2026-07-28 does not have.`
      )
    default:
      return isReservedForMcp(code)
        ? ours(`Upstream ${upstream} answered with error ${code}, which 2026-07-28 does not have.`)
        : error
  }
}

/** The error that a task ended with: the same rules as for an error that is thrown. */
export function taskErrorForModern(
  error: RpcErrorObject,
  upstream: UpstreamName,
  capabilities: ClientCapabilities
): RpcErrorObject {
  return errorObject(errorForModern(new RpcError(error), upstream, capabilities), '')
}
