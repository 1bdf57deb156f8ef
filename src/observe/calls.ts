// The one wrapper around a call: what is written about it comes from one record, so log lines cannot disagree.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import type { Log } from './log.ts'

/** What of a call may be written down: names, never arguments. */
export interface Observed {
  readonly request: { readonly method: string, readonly params?: Record<string, unknown> }
  readonly tenant: { readonly id: string }
  readonly endpoint: { readonly name: string }
  readonly principal: { readonly subject: string, readonly clientId: string }
}

export interface ObserveOptions {
  readonly clock: { now (): number }
  readonly log: Log
  /** The upstream and original name behind a public tool name. */
  readonly route: (name: string) => { readonly upstream: string, readonly name: string } | undefined
}

/** Runs the call and writes one line about it. Never changes its outcome. */
export async function observe<T> (call: Observed, { clock, log, route }: ObserveOptions, run: () => Promise<T>): Promise<T> {
  const startedAt = clock.now()
  try {
    const result = await run()
    write(call, log, route, clock.now() - startedAt, 'ok')
    return result
  } catch (error) {
    const outcome = error instanceof GatewayError ? error.code : error instanceof RpcError ? `rpc ${error.error.code}` : 'internal'
    write(call, log, route, clock.now() - startedAt, outcome, error)
    throw error
  }
}

function write ({ request, tenant, endpoint, principal }: Observed, log: Log, route: ObserveOptions['route'], ms: number, outcome: string, error?: unknown): void {
  const name = request.method === 'tools/call' ? request.params?.['name'] : undefined
  const target = typeof name === 'string' ? route(name) : undefined
  const level = error === undefined || error instanceof RpcError ? 'info' : error instanceof GatewayError ? error.row.level : 'error'
  const line = {
    tenant: tenant.id,
    endpoint: endpoint.name,
    client: principal.clientId,
    method: request.method.slice(0, 64),
    upstream: target?.upstream,
    tool: target?.name,
    outcome,
    ms: Math.round(ms * 10) / 10
  }
  if (level === 'error' || level === 'warn') log[level]({ ...line, err: error }, 'call')
  else log[level](line, 'call')
}
