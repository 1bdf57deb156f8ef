// The log: JSON lines on standard error, pretty on a terminal. Never a token, a session id, a body, a header or an argument.

import pino from 'pino'
import type { Logger } from 'pino'
import { GatewayError, RpcError } from '../protocol/errors.ts'

export type Log = Logger

export interface LogOptions {
  readonly level: string
  /** Readable lines with colours, for people at a terminal. */
  readonly pretty: boolean
}

export async function createLog (options: LogOptions): Promise<Log> {
  // A second net under the rule above: these names never carry a value, whatever a caller passes.
  const redact = ['authorization', 'token', 'key', 'secret', 'password', '*.authorization', '*.token', '*.key', '*.secret', '*.password']
  const settings = { level: options.level, redact, base: null, serializers: { err: shortError } }
  if (!options.pretty) return pino(settings, pino.destination({ dest: 2, sync: true }))
  const { default: pretty } = await import('pino-pretty')
  return pino(settings, pretty({ destination: 2, sync: true, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l' }))
}

/** An error that we made or were told explains itself; only a fault of ours needs its stack. */
export function shortError (error: unknown): unknown {
  if (error instanceof GatewayError) {
    return { code: error.code, message: error.message, ...(error.cause === undefined ? {} : { cause: shortError(error.cause) }) }
  }
  if (error instanceof RpcError) return { code: error.error.code, message: error.message.slice(0, 500) }
  if (error instanceof Error && 'code' in error) return { code: error.code, message: error.message }
  return error instanceof Error ? pino.stdSerializers.err(error) : error
}
