// Errors of upstreams as a client of 2026-07-28 may get them (basic/index "Error Codes"; statuses and versions are the business of each hop).

import { GatewayError, RpcError, errorObject } from '../../protocol/errors.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import { isObject } from '../../protocol/messages.ts'
import type { ClientCapabilities, RpcErrorObject } from '../../protocol/messages.ts'
import { undeclared } from '../../protocol/required.ts'

const codes = { notFound: -32_002, headers: -32_020, capability: -32_021, version: -32_022, urlFirst: -32_042, firstReserved: -32_099 }

/** @param capabilities as the client declared them */
export function fitting (error: unknown, upstream: UpstreamName, capabilities: ClientCapabilities): unknown {
  if (!(error instanceof RpcError)) return error
  const { code, data } = error.error
  const ours = (message: string): GatewayError => new GatewayError('upstream_protocol', message, { cause: error, data: { upstream } })
  switch (code) {
    case codes.notFound:
      return new RpcError({ ...error.error, code: -32_602 })
    case codes.capability: {
      const missing = undeclared(isObject(data) ? data['requiredCapabilities'] : undefined, capabilities)
      // What the client did declare and we kept back, it cannot put right.
      return missing === undefined ? ours(`Upstream ${upstream} needs a capability that does not pass through the gateway.`) : error
    }
    case codes.headers:
    case codes.version:
      return ours(`The gateway and upstream ${upstream} do not agree on the protocol (error ${code}).`)
    case codes.urlFirst:
      return ours(`Upstream ${upstream} wants a web page to be visited first, in a way (error ${code}) that 2026-07-28 does not have.`)
    default:
      // Reserved for the specification, which has not defined it.
      return code <= codes.headers && code >= codes.firstReserved ? ours(`Upstream ${upstream} answered with error ${code}, which 2026-07-28 does not have.`) : error
  }
}

/** What a task ended with, as it would be if it were thrown: nothing passes inside a task that would not pass by itself. */
export function fittingOutcome (error: RpcErrorObject, upstream: UpstreamName, capabilities: ClientCapabilities): RpcErrorObject {
  return errorObject(fitting(new RpcError(error), upstream, capabilities), '')
}
