// What stands of a call in its metrics. Each value comes from a bounded set: what clients and upstreams chose is
// counted by name only as long as there are few of them.

import { GatewayError, RpcError } from '../../protocol/messages.ts'
import { firstOf } from '../../protocol/own-text.ts'
import type { LabelKind, LabelNames } from './label-names.ts'
import { countedName, type CallOutcome, maxLoggedChars, type ObservedCall } from '../calls.ts'

/** What clients may ask for, in any revision. */
const knownMethods: ReadonlySet<string> = new Set([
  ...['initialize', 'ping', 'server/discover', 'subscriptions/listen', 'logging/setLevel', 'completion/complete'],
  ...['tools/list', 'tools/call', 'prompts/list', 'prompts/get'],
  ...['resources/list', 'resources/templates/list', 'resources/read', 'resources/subscribe', 'resources/unsubscribe'],
  ...['tasks/get', 'tasks/list', 'tasks/result', 'tasks/cancel', 'tasks/update']
])

export type Attributes = Record<string, string | undefined>

export type MeteredUpstream = Readonly<Record<'tenant' | 'name' | 'type', string>>

/** A request that was sent to an upstream, and how it ended. */
export interface UpstreamRequest {
  /** Of the connection, as its handshake has settled it. */
  readonly revision: string
  readonly method: string
  /** What it names: a tool or a prompt, where it asks for one. */
  readonly name: unknown
  /** undefined: the upstream answered with a result. */
  readonly error: unknown
  readonly isToolError: boolean
  /** Since it was sent. */
  readonly ms: number
}

/** @param series those that have names, where some may have to make room */
export function createCallAttributes(
  names: Pick<LabelNames, 'has'>,
  series: ReadonlyArray<{ removeIdle(tenant: string): void }>
) {
  function nameIn(tenant: string, kind: LabelKind, given: string | undefined): string | undefined {
    if (given === undefined) return undefined
    const name = firstOf(given, maxLoggedChars)
    if (names.has(tenant, kind, name)) return name
    for (const each of series) each.removeIdle(tenant)
    return names.has(tenant, kind, name) ? name : 'other'
  }

  return {
    /** Of `mcp.server.operation.duration`. */
    ofServed({ request, tenant, endpoint, record }: ObservedCall, { outcome, code }: CallOutcome): Attributes {
      const { method } = request
      const { route } = record ?? {}
      const status = nameIn(tenant.id, 'codes', code?.toString())
      return {
        ...ofMethod(method),
        'gen_ai.tool.name': method === 'tools/call' ? nameIn(tenant.id, 'names', countedName(route)) : undefined,
        'gen_ai.prompt.name': method === 'prompts/get' ? nameIn(tenant.id, 'names', countedName(route)) : undefined,
        'error.type': errorTypeOf(record, outcome, status),
        'rpc.response.status_code': status,
        'mcp.protocol.version': record?.revision,
        'gatehouse.tenant': tenant.id,
        'gatehouse.endpoint': endpoint.name,
        'gatehouse.upstream': nameIn(tenant.id, 'upstreams', route?.upstream),
        'gatehouse.outcome': outcome
      }
    },
    /** Of `mcp.client.session.duration`. @param error undefined: it was closed */
    ofConnection: ({ tenant, name, type }: MeteredUpstream, error: string | undefined): Attributes => ({
      'network.transport': transportOf(type),
      'error.type': error,
      'gatehouse.tenant': tenant,
      'gatehouse.upstream': nameIn(tenant, 'upstreams', name)
    }),
    /** Of `mcp.client.operation.duration`. */
    ofSent(
      { tenant, name, type }: MeteredUpstream,
      { revision, method, name: asked, error, isToolError }: UpstreamRequest
    ): Attributes {
      const isNamed = method === 'tools/call' || method === 'prompts/get'
      const sent = isNamed && typeof asked === 'string' ? nameIn(tenant, 'names', asked) : undefined
      const code = error instanceof RpcError ? nameIn(tenant, 'codes', String(error.error.code)) : undefined
      return {
        ...ofMethod(method),
        'gen_ai.tool.name': method === 'tools/call' ? sent : undefined,
        'gen_ai.prompt.name': method === 'prompts/get' ? sent : undefined,
        'error.type': sentErrorType(error, isToolError, code),
        'rpc.response.status_code': code,
        'mcp.protocol.version': revision,
        'network.transport': transportOf(type),
        'gatehouse.tenant': tenant,
        'gatehouse.upstream': nameIn(tenant, 'upstreams', name)
      }
    }
  }
}

/** As the conventions have it: the code of an error; of a result with `isError` `tool_error`, whoever made it. */
export const errorTypeOf = (
  record: ObservedCall['record'],
  outcome: CallOutcome['outcome'],
  code: string | undefined
): string | undefined =>
  outcome === 'ok' ? undefined : (code ?? (record?.failure !== undefined ? 'tool_error' : outcome))

/** The same of what was sent to an upstream. @param error undefined: it answered with a result */
export const sentErrorType = (error: unknown, isToolError: boolean, code: string | undefined): string | undefined =>
  isToolError ? 'tool_error' : error === undefined ? undefined : (code ?? typeOf(error))

const ofMethod = (method: string): Attributes => ({
  'mcp.method.name': knownMethods.has(method) ? method : '_OTHER',
  'gen_ai.operation.name': method === 'tools/call' ? 'execute_tool' : undefined
})

const transportOf = (type: string): string => (type === 'stdio' ? 'pipe' : 'tcp')
const typeOf = (error: unknown): string => (error instanceof GatewayError ? error.code : '_OTHER')
