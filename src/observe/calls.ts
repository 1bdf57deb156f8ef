// Runs a call and writes one log line about it.

import { GatewayError, RpcError } from '../protocol/messages.ts'
import type { Log } from './log.ts'

/** What of a call may be logged: names, never arguments. */
export interface ObservedCall {
  readonly request: { readonly method: string; readonly params?: Record<string, unknown> }
  readonly tenant: { readonly id: string }
  readonly endpoint: { readonly name: string }
  readonly principal: { readonly subject: string; readonly clientId: string }
  readonly record?: CallRecord | undefined
}

/** What is learnt of a call on its way: the upstream and the original name that a public name leads to. */
export interface CallRecord {
  route?: { readonly upstream: string; readonly name: string }
}

export interface ObserveOptions {
  readonly clock: { now(): number }
  readonly log: Log
}

/** Runs the call and writes one line about it. Never changes its outcome. */
export async function observe<T>(
  call: ObservedCall,
  { clock, log }: ObserveOptions,
  run: () => Promise<T>
): Promise<T> {
  const startedAt = clock.now()
  try {
    const result = await run()
    write(call, log, clock.now() - startedAt, 'ok')
    return result
  } catch (error) {
    const outcome =
      error instanceof GatewayError ? error.code : error instanceof RpcError ? `rpc ${error.error.code}` : 'internal'
    write(call, log, clock.now() - startedAt, outcome, error)
    throw error
  }
}

function write(
  { request, tenant, endpoint, principal, record }: ObservedCall,
  log: Log,
  ms: number,
  outcome: string,
  error?: unknown
): void {
  const route = request.method === 'tools/call' ? record?.route : undefined
  const level =
    error === undefined || error instanceof RpcError
      ? 'info'
      : error instanceof GatewayError
        ? error.row.level
        : 'error'
  const line = {
    tenant: tenant.id,
    endpoint: endpoint.name,
    client: principal.clientId,
    method: request.method.slice(0, 64),
    upstream: route?.upstream,
    tool: route?.name,
    outcome,
    ms: Math.round(ms * 10) / 10
  }
  if (level === 'error' || level === 'warn') log[level]({ ...line, err: error }, 'call')
  else log[level](line, 'call')
}
