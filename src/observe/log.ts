// The log: lines on standard error, of JSON or, on a terminal, of text; among them one line for each call. Never a
// token, a session id, a body, a header or an argument.

import pino, { type Logger } from 'pino'
import type { Tenant, TenantAudit } from '../config/snapshot.ts'
import { GatewayError, RpcError, isObject } from '../protocol/messages.ts'
import { openStandardError } from './standard-error.ts'
import { textLine } from './text-log.ts'

export type Log = Logger

/** `json`; `text` for people at a terminal; `colours` for text in colours. */
export type LogForm = 'json' | 'text' | 'colours'

export function createLog(level: string, form: LogForm): Log {
  const settings = { level, base: null, formatters: { log: redacted }, serializers: { err: safeError } }
  const standardError = openStandardError()
  if (form !== 'json')
    return pino(settings, { write: (line: string) => standardError.write(textLine(line, form === 'colours')) })
  const lines = batched(standardError)
  process.once('exit', () => lines.end())
  return pino(settings, lines)
}

/**
 * Writes the lines of one turn of the event loop together: under load, one system call per line costs more than the
 * line.
 */
export function batched(destination: { write(text: string): unknown }) {
  let lines = ''
  let ended = false
  function flushSync(): void {
    const text = lines
    lines = ''
    if (text !== '') destination.write(text)
  }
  return {
    write(line: string): void {
      if (lines === '' && !ended) setImmediate(flushSync)
      lines += line
      if (ended) flushSync()
    },
    /** pino calls it after a fatal line. */
    flushSync,
    /** At the exit of the process: writes what is there, and further lines one by one. */
    end(): void {
      ended = true
      flushSync()
    }
  }
}

// Defence in depth: fields of these names are never logged, whatever a caller passes.
const secret = new Set(['authorization', 'token', 'key', 'secret', 'password'])

/**
 * @returns the line without values of these fields, in itself and in the objects right under it; the same object where
 * it has none. The wildcards of pino's own `redact` cost three times as much as the rest of a line.
 */
export function redacted(line: Readonly<Record<string, unknown>>, levels = 1): Record<string, unknown> {
  let safe: Record<string, unknown> = line
  for (const name of Object.keys(line)) {
    const value = line[name]
    const shown = secret.has(name)
      ? '[Redacted]'
      : levels > 0 && isObject(value) && !(value instanceof Error)
        ? redacted(value, levels - 1)
        : value
    if (shown === value) continue
    if (safe === line) safe = { ...line }
    safe[name] = shown
  }
  return safe
}

function safeError(error: unknown): unknown {
  const short = shortError(error)
  return isObject(short) ? redacted(short, 0) : short
}

/**
 * Errors of the gateway, upstreams and the system explain themselves; any other is a fault of ours, and needs its
 * stack.
 */
export function shortError(error: unknown): unknown {
  if (error instanceof GatewayError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.cause === undefined ? {} : { cause: shortError(error.cause) })
    }
  }
  if (error instanceof RpcError) return { code: error.error.code, message: error.message.slice(0, 500) }
  if (error instanceof Error && 'code' in error) return { code: error.code, message: error.message }
  return error instanceof Error ? pino.stdSerializers.err(error) : error
}

/** What of a call may be logged, and what the audit log makes its record of. */
export interface ObservedCall {
  readonly request: { readonly method: string; readonly params?: Record<string, unknown> }
  readonly tenant: { readonly id: string; readonly audit: TenantAudit }
  readonly endpoint: { readonly name: string }
  readonly principal: Readonly<Record<'kind' | 'issuer' | 'subject' | 'clientId', string>>
  readonly record?: CallRecord | undefined
}

/** Where a call came from, and what is learnt of it on its way. */
export interface CallRecord {
  /** Of the peer of the connection; undefined where another process passed the call on. */
  readonly address?: string | undefined
  readonly requestId?: string
  readonly bodyBytes?: number | undefined
  /** The upstream and the original name that a public name leads to. */
  route?: { readonly upstream: string; readonly name: string }
  /** What was stopped while it was not known yet where the call leads; undefined: nothing. */
  stopped?: Pick<Tenant, 'kills'> | undefined
  /** The rule by which a name is as unknown to the caller as what nobody has; `default` where no rule allows it. */
  denied?: string | undefined
}

export interface CallOutcome {
  /** `ok`, the code of an error of the gateway, or `rpc` and that of an upstream. */
  readonly outcome: string
  /** Milliseconds. */
  readonly ms: number
  /** By which the call was refused. */
  readonly rule: string | undefined
}

/** The audit log, as seen by a call. */
export interface CallAuditor {
  /**
   * Before the call.
   * @throws GatewayError unavailable where the tenant lets no call through unrecorded, and records cannot be written
   */
  begin(call: ObservedCall): {
    /** What has to be waited for before the call runs. */
    readonly ready: Promise<void> | undefined
    /** What has to be waited for before it is answered. */
    end(outcome: CallOutcome): Promise<void> | undefined
  }
}

/** Runs the call, writes one line about it and one record. Never changes its outcome. */
export async function observe<T>(
  call: ObservedCall,
  {
    clock,
    log,
    audit
  }: { readonly clock: { now(): number }; readonly log: Log; readonly audit?: CallAuditor | undefined },
  run: () => Promise<T>
): Promise<T> {
  const startedAt = clock.now()
  const { request, tenant, endpoint, principal, record } = call
  let [outcome, level]: [string, GatewayError['row']['level']] = ['ok', 'info']
  let err: unknown
  let audited: ReturnType<CallAuditor['begin']> | undefined
  try {
    audited = audit?.begin(call)
    if (audited?.ready !== undefined) await audited.ready
    return await run()
  } catch (error) {
    if (error instanceof GatewayError) [outcome, level] = [error.code, error.row.level]
    else if (error instanceof RpcError) outcome = `rpc ${error.error.code}`
    else [outcome, level] = ['internal', 'error']
    err = error
    throw error
  } finally {
    const route = request.method === 'tools/call' ? record?.route : undefined
    const ms = Math.round((clock.now() - startedAt) * 10) / 10
    const line = {
      tenant: tenant.id,
      endpoint: endpoint.name,
      client: principal.clientId,
      method: request.method.slice(0, 64),
      upstream: route?.upstream,
      tool: route?.name,
      outcome,
      ms
    }
    log[level](level === 'error' || level === 'warn' ? { ...line, err } : line, 'call')
    const rule = err instanceof GatewayError ? (err.data['rule'] as string | undefined) : undefined
    const recorded = audited?.end({ outcome, ms, rule })
    if (recorded !== undefined) await recorded
  }
}
