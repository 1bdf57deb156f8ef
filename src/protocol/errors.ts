// The errors that a caller sees: the gateway's own, and those of upstream servers.

import { errorTable, type ErrorCode, type ErrorRow } from './error-table.ts'
import type { RpcErrorObject } from './messages.ts'

export interface ErrorExtras {
  readonly cause?: unknown
  /** Goes to the caller as members of `error.data`, beside `reason`: nothing secret. */
  readonly data?: Readonly<Record<string, unknown>>
  /** Reply headers, such as WWW-Authenticate, Allow, Retry-After. */
  readonly headers?: Readonly<Record<string, string>>
}

/** `message` goes to the caller: what happened and what to do about it. `cause` goes to the log only. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  readonly data: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.code = code
    this.data = extras.data ?? {}
    this.headers = extras.headers ?? {}
  }

  get row(): ErrorRow {
    return errorTable[this.code]
  }
}

/** An upstream's own JSON-RPC error, carried to the client as it came. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly error: RpcErrorObject

  constructor(error: RpcErrorObject) {
    super(error.message)
    this.error = error
  }
}

/** The JSON-RPC error object that a caller sees. Of any other thrown value it reveals nothing. */
export function errorObject(error: unknown, requestId: string): RpcErrorObject {
  if (error instanceof RpcError) return error.error
  if (error instanceof GatewayError) {
    return { code: error.row.rpcCode, message: error.message, data: { reason: error.code, ...error.data } }
  }
  return {
    code: errorTable.internal.rpcCode,
    message: `Internal error. The log of the gateway has the details under request id ${requestId}.`,
    data: { reason: 'internal', requestId }
  }
}
