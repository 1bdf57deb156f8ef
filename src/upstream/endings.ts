// How calls end that do not end with a result, and what may be said of it.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import { printable } from './decode.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import type { JsonObject, Result, RpcErrorObject } from '../protocol/messages.ts'

/** Longest `message` and `data` of an upstream's error that we pass on: more is a stack or a secret, not an explanation. */
const maxErrorLength = 8_192

export function cancelledError (name: UpstreamName): GatewayError {
  return new GatewayError('cancelled', 'The request was cancelled by its caller.', { data: { upstream: name } })
}

/** The connection was closed on purpose while the call was in flight. */
export function closedError (name: UpstreamName): GatewayError {
  return new GatewayError('cancelled', `The connection to upstream ${name} was closed.`, { data: { outcome: 'unknown', upstream: name } })
}

/** Nothing was sent, because there is nothing to send it on. */
export function endedError (name: UpstreamName, cause: Error): GatewayError {
  return new GatewayError('upstream_unavailable', `The connection to upstream ${name} has ended. Try again.`, { cause, data: { upstream: name } })
}

export function timeoutError (name: UpstreamName, timeoutMs: number): GatewayError {
  return new GatewayError('upstream_timeout', `Upstream ${name} sent nothing for ${timeoutMs / 1000} s, so the request was cancelled there. Whether it took effect is unknown.`, { data: { outcome: 'unknown', upstream: name } })
}

/** The server asked during the call, and has not taken the answer: it belongs to another session or process of it by now. */
export function unansweredError (name: UpstreamName): GatewayError {
  return new GatewayError('upstream_unavailable', `Upstream ${name} asked something and refused the answer, so the request was given up. Whether it took effect is unknown.`, { data: { outcome: 'unknown', upstream: name } })
}

function malformedError (name: UpstreamName): GatewayError {
  return new GatewayError('upstream_protocol', `Upstream ${name} answered with neither a result object nor an error.`, { data: { outcome: 'unknown', upstream: name } })
}

/** What a response of the server holds: its result, its own error, or neither. */
export function outcomeOf (name: UpstreamName, { result, error }: JsonObject): Result | Error {
  if (isObject(result) && error === undefined) return result
  return isRpcError(error) ? new RpcError(boundedError(error)) : malformedError(name)
}

export function isRpcError (value: unknown): value is RpcErrorObject & JsonObject {
  return isObject(value) && Number.isSafeInteger(value['code']) && typeof value['message'] === 'string'
}

/** The server's own error, as it came unless it is far too long; members that JSON-RPC does not know are left out. */
export function boundedError (error: RpcErrorObject): RpcErrorObject {
  const message = error.message.length > maxErrorLength ? `${error.message.slice(0, maxErrorLength)}…` : error.message
  const { code, data } = error
  return data === undefined || JSON.stringify(data).length > maxErrorLength ? { code, message } : { code, message, data }
}

/** The server's own error in an answer that proves that the request was not executed. */
export class Refusal extends RpcError {}

/** Nobody was reached, or nobody answered to whom nothing was declared: that says something of the upstream itself, whoever asked. */
export class Down extends GatewayError {}

/** What the server is told about why. */
export function reasonText (reason: unknown): string {
  return typeof reason === 'string' ? printable(reason, 200) : 'cancelled by the caller'
}
