// How a request to another process fails, and how errors travel.

import { errorTable } from '../../protocol/error-table.ts'
import { GatewayError, RpcError, type RpcErrorObject } from '../../protocol/messages.ts'

export type EncodedError =
  | { readonly rpc: RpcErrorObject; readonly reason?: RpcError['reason'] }
  | Pick<GatewayError, 'code' | 'message' | 'data' | 'headers'>

export const busCallCancelled = (): GatewayError =>
  new GatewayError('cancelled', 'The request was cancelled by its caller.')
/** The request itself was not begun, and never will be. The call that it is about may have taken effect. */
export class ProcessGone extends GatewayError {
  constructor() {
    const message =
      'The process that held the call of this requestState is gone, and the call with it. Whether it took effect ' +
      'is unknown: find out before you send it again without requestState.'
    super('invalid_state', message, { data: { outcome: 'unknown' } })
  }
}

export const processSilent = (): GatewayError =>
  new GatewayError(
    'upstream_lost',
    'The process that held the call stopped before the call had ended. Whether it took effect is unknown.',
    { data: { outcome: 'unknown' } }
  )

/** The other process was lost while it worked. */
export const isLost = (error: unknown): boolean => error instanceof GatewayError && error.code === 'upstream_lost'

/** Says nothing of a thrown value that is not ours. */
export function encodeError(error: unknown): EncodedError {
  if (error instanceof RpcError) return { rpc: error.error, ...(error.reason && { reason: error.reason }) }
  const { code, message, data, headers } =
    error instanceof GatewayError ? error : new GatewayError('internal', 'The process that holds the call failed.')
  return { code, message, data, headers }
}

export function decodeError(error: EncodedError): Error {
  if ('rpc' in error) return new RpcError(error.rpc, error.reason)
  return new GatewayError(Object.hasOwn(errorTable, error.code) ? error.code : 'internal', error.message, {
    data: error.data,
    headers: error.headers
  })
}

/** Nothing of the request was sent. */
export const processUnreachable = (): GatewayError =>
  new GatewayError('unavailable', 'The process that holds the call cannot be reached. Retry in a second.', {
    headers: { 'Retry-After': '1' }
  })
