// Errors on the bus: how one process tells another what was thrown, and what it means that nothing is heard.

import { type ErrorCode, errorTable } from '../protocol/error-table.ts'
import { GatewayError, RpcError, type RpcErrorObject } from '../protocol/messages.ts'

export type EncodedError =
  | { readonly rpc: RpcErrorObject }
  | { readonly code: ErrorCode; readonly message: string; readonly data: Readonly<Record<string, unknown>> }

export const busCallCancelled = (): GatewayError =>
  new GatewayError('cancelled', 'The request was cancelled by its caller.')
export const processGone = (): GatewayError =>
  new GatewayError(
    'invalid_state',
    'The process that held the call of this requestState is gone, and the call with it. Whether it took effect is ' +
      'unknown: find out before you send it again without requestState.',
    { data: { outcome: 'unknown' } }
  )
export const processSilent = (): GatewayError =>
  new GatewayError(
    'upstream_lost',
    'The process that held the call stopped before the call had ended. Whether it took effect is unknown.',
    { data: { outcome: 'unknown' } }
  )

/** Anything that is not ours says nothing of the thrown value. */
export function encodeError(error: unknown): EncodedError {
  if (error instanceof RpcError) return { rpc: error.error }
  const { code, message, data } =
    error instanceof GatewayError ? error : new GatewayError('internal', 'The process that holds the call failed.')
  return { code, message, data }
}

export function decodeError(error: EncodedError): Error {
  if ('rpc' in error) return new RpcError(error.rpc)
  return new GatewayError(Object.hasOwn(errorTable, error.code) ? error.code : 'internal', error.message, {
    data: error.data
  })
}
