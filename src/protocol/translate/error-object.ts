// The JSON-RPC error object that a caller sees.

import { GatewayError, isObject, RpcError, rpcCodeOf, rpcCodes, type RpcErrorObject } from '../messages.ts'

/**
 * Of a thrown value that is neither an error of the gateway nor of an upstream it reveals nothing.
 * @param requestId '' where the object is no answer to a request of a client
 */
export function errorObject(error: unknown, requestId: string): RpcErrorObject {
  if (error instanceof RpcError) return withRequestId(error.error, requestId)
  if (error instanceof GatewayError) {
    const { code, message, data, row } = error
    const told = row.bareData === true ? data : { reason: code, ...data, ...(requestId !== '' && { requestId }) }
    return { code: rpcCodeOf(code), message, data: told }
  }
  const message = `Internal error. The log of the gateway has the details under request id ${requestId}.`
  return { code: rpcCodes.internalError, message, data: { reason: 'internal', requestId } }
}

/** 2026-07-28 basic/index "Error Codes": the schema says what the data of these has. */
const definedData: ReadonlySet<number> = new Set([
  rpcCodes.headerMismatch,
  rpcCodes.missingCapability,
  rpcCodes.unsupportedRevision
])
/** 2026-07-28 server/resources "Error Handling": a client knows one by nothing but the URI being in its data. */
const notFound: ReadonlySet<number> = new Set([rpcCodes.invalidParams, rpcCodes.resourceNotFound])

/** Adds the id of the request to `data`, unless an upstream gave the data or it is no object. */
function withRequestId(error: RpcErrorObject, requestId: string): RpcErrorObject {
  const { code, data } = error
  if (requestId === '' || definedData.has(code)) return error
  if (data === undefined) return { ...error, data: { requestId } }
  if (!isObject(data) || Object.hasOwn(data, 'requestId') || notFound.has(code)) return error
  return { ...error, data: { ...data, requestId } }
}
