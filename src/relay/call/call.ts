// One request on its way through the gateway: its parameters, whom a connection for it serves, what errors may tell. It
// keeps the configuration that it began with.

import { hash } from 'node:crypto'
import type { PersonalViews } from '../../vault/personal-views.ts'
import { personKeyOf, type Principal } from '../../auth/principal.ts'
import type { Endpoint, Snapshot, Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import type { MemoryAccount } from '../../limits/memory.ts'
import type { CallObservers, CallRecord } from '../../observe/calls.ts'
import type { Log } from '../../observe/log.ts'
import type { CallLimits } from '../../policy/call-limits.ts'
import { canonicalJsonOf } from '../../protocol/json-text.ts'
import {
  type EndpointName,
  GatewayError,
  type Implementation,
  isObject,
  metaOf,
  type Request,
  type TenantId,
  type UpstreamName
} from '../../protocol/messages.ts'
import type { Client, Upstream } from '../../protocol/seams.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { Clock } from '../../time/clock.ts'

/** What the relays take from the process. Replaced in tests, so that time and randomness hold still. */
export interface Runtime {
  /** For how long something lasts. */
  readonly clock: Clock
  /** The time of day, for what expires. */
  readonly wall: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  /** 128 random bits in base64url. */
  readonly newId: () => string
  /** What the gateway calls itself towards upstreams. */
  readonly clientInfo: Implementation
  readonly log: Log
  readonly observers: CallObservers
  readonly callLimits: CallLimits
  /** Default: without limits. */
  readonly memory?: MemoryAccount
}

/** An endpoint, in the snapshot of the configuration that a request began with. */
export interface EndpointContext {
  readonly snapshot: Snapshot
  readonly tenant: Tenant
  readonly endpoint: Endpoint
}

/** Every endpoint of a configuration. */
export const contextsOf = (snapshot: Snapshot): EndpointContext[] =>
  [...snapshot.tenants.values()].flatMap((tenant) =>
    [...tenant.endpoints.values()].map((endpoint) => ({ snapshot, tenant, endpoint }))
  )

/** Of every upstream of a configuration. */
export const upstreamHashesOf = ({ tenants }: Snapshot): Set<string> =>
  new Set([...tenants.values()].flatMap(({ upstreams }) => [...upstreams.values()].map(({ hash }) => hash)))

/** @returns undefined where the configuration has no such endpoint */
export function contextIn(snapshot: Snapshot, id: TenantId, name: EndpointName): EndpointContext | undefined {
  const tenant = snapshot.tenants.get(id)
  const endpoint = tenant?.endpoints.get(name)
  return tenant === undefined || endpoint === undefined ? undefined : { snapshot, tenant, endpoint }
}

type Owner = Pick<Principal, 'issuer' | 'subject'>

/** An endpoint in the configuration of now, as one person has it; undefined where it or its tenant is gone. */
export interface ContextOf {
  (tenant: TenantId, endpoint: EndpointName, owner: Owner): EndpointContext | undefined
  /** The same for a person who may be new to this process: what they have connected is read first. */
  load(tenant: TenantId, endpoint: EndpointName, owner: Owner): Promise<EndpointContext | undefined>
}

export function createContextOf(snapshot: () => Snapshot, views: Pick<PersonalViews, 'load' | 'of'>): ContextOf {
  const contextOf = (tenant: TenantId, endpoint: EndpointName, owner: Owner): EndpointContext | undefined => {
    const context = contextIn(snapshot(), tenant, endpoint)
    return context && views.of(context, owner)
  }
  return Object.assign(contextOf, {
    async load(id: TenantId, endpoint: EndpointName, owner: Owner) {
      const context = contextIn(snapshot(), id, endpoint)
      if (context !== undefined) await views.load(context, owner, undefined)
      return contextOf(id, endpoint, owner)
    }
  })
}

export interface Call extends EndpointContext {
  /** Without the envelope of 2026-07-28, which is in `client`. */
  readonly request: Request
  readonly principal: Principal
  readonly client: Client
  /** Aborted when the caller cancels or is no longer let in, or the drain time of a shutdown is over. */
  readonly signal: AbortSignal
  /** Filled in on the way, for what is written about the call. */
  readonly record?: CallRecord | undefined
}

/** One request of a session: revisions up to 2025-11-25. */
export interface LegacyCall extends Call {
  readonly session: LiveSession
  /** It runs on this connection, in a session of another process (connections/borrowed-sessions.ts). */
  readonly borrowed?: { readonly upstream: Upstream; readonly definition: UpstreamDefinition; readonly scope: string }
}

/** One request of 2026-07-28, which belongs to no session. */
export type ModernCall = Call

/** Whose view of an endpoint is meant in 2026-07-28; without a client, that of one which declares nothing. */
export interface ModernViewer extends EndpointContext {
  readonly principal?: Principal
  readonly client?: Client
  /** Says which conversation it belongs to. */
  readonly request?: Request
}

export const isModernCaller = (viewer: ModernViewer): viewer is Required<ModernViewer> =>
  viewer.client !== undefined && viewer.principal !== undefined && viewer.request !== undefined

/** @throws GatewayError upstream_unavailable where the tenant no longer configures an upstream of the name */
export function definitionOf({ tenant }: EndpointContext, name: UpstreamName): UpstreamDefinition {
  const definition = tenant.upstreams.get(name)
  if (definition !== undefined) return definition
  throw new GatewayError('upstream_unavailable', `Upstream ${name} is no longer configured.`)
}

const digest = (text: string): string => hash('sha256', text, 'base64url')

/** Tenant, endpoint, person and client: what anything that is sealed for a caller is bound to. */
export const callerBindingOf = ({
  tenant,
  endpoint,
  principal: { issuer, subject, clientId }
}: EndpointContext & { readonly principal: Principal }): string[] => [
  tenant.id,
  endpoint.name,
  issuer,
  subject,
  clientId
]

/** The same for a session. */
export const sessionBindingOf = ({
  endpoint,
  session: { record }
}: LiveSession): [TenantId, EndpointName, string, string, string] => {
  const { tenant, issuer, subject, clientId } = record.owner
  return [tenant, endpoint, issuer, subject, clientId]
}

/** The same for what is kept in the store: it ends with the tenant, as sessions do, whoever comes under its name. */
export function sessionStorePartsOf(session: LiveSession): [TenantId, string, EndpointName, string, string, string] {
  const [tenant, ...rest] = sessionBindingOf(session)
  return [tenant, String(session.session.record.epoch), ...rest]
}

/** The person behind a connection, for quotas: the same whatever the client, the era and the endpoint. */
export function quotaKeyOf(owner: Pick<Principal, 'tenant' | 'issuer' | 'subject'>): string {
  const known = quotaKeys.get(owner)
  if (known !== undefined) return known
  const key = personKeyOf(owner)
  quotaKeys.set(owner, key)
  return key
}

/** A caller makes many requests, and its principal is made once. */
const quotaKeys = new WeakMap<object, string>()

// A scope says whom a connection to an upstream serves: calls with the same scope share connections. The pool takes it
// as an opaque string.

/** The connection that lists are read from, which calls use too where the upstream is shared. */
export const listingScopeOf = (definition: UpstreamDefinition): string =>
  `${definition.isolation === 'shared' ? 'shared' : 'listing'}:${definition.hash}`

export const sessionScopeOf = (sessionKey: string): string => `session:${sessionKey}`

/** The connections that serve a session at an upstream, one after the other. */
export function scopeOf(definition: UpstreamDefinition, { key, session }: LiveSession): string {
  if (definition.isolation === 'session') return sessionScopeOf(key)
  if (definition.isolation === 'shared') return listingScopeOf(definition)
  const { tenant, issuer, subject, clientId } = session.record.owner
  return `principal:${digest(JSON.stringify([tenant, issuer, subject, clientId]))}`
}

/** Never those of the caller's sessions, which declared other capabilities. */
export const callerScopeOf = (
  call: Pick<ModernCall, 'tenant' | 'endpoint' | 'snapshot' | 'principal'>,
  ...parts: readonly unknown[]
): string => `caller:${digest(canonicalJsonOf([callerBindingOf(call), ...parts]))}`

/** @throws GatewayError invalid_params */
export function stringParam({ request: { method, params } }: Call, member: string): string {
  const value = params?.[member]
  if (typeof value === 'string') return value
  throw new GatewayError('invalid_params', `"${member}" of ${method} must be a string.`)
}

/** @throws GatewayError invalid_params */
export function checkArguments({ request: { method, params } }: Call): void {
  const args = params?.['arguments']
  if (args === undefined || isObject(args)) return
  throw new GatewayError('invalid_params', `"arguments" of ${method} must be an object.`)
}

const maxTokenLength = 1_024

/**
 * Every progress message repeats the token, so a long one would be sent many times over.
 * @throws GatewayError invalid_params
 */
export function checkProgressToken({ request }: Call): void {
  const token = metaOf(request.params)['progressToken']
  if (token === undefined || Number.isSafeInteger(token)) return
  if (typeof token !== 'string')
    throw new GatewayError('invalid_params', '"_meta.progressToken" must be a string or an integer.')
  if (JSON.stringify(token).length > maxTokenLength)
    throw new GatewayError('invalid_params', `"_meta.progressToken" is longer than ${maxTokenLength} characters.`)
}

/** At most 200 characters of what a caller sent, for an error message. */
export const excerpt = (value: string): string => (value.length <= 200 ? value : value.slice(0, 200) + '…')

export const methodNotFound = (method: string): GatewayError =>
  new GatewayError('method_not_found', `Method not found: ${excerpt(method)}`)

/** The error without the address, command and folder of the upstream, which are for the log only. */
export function redactError(error: unknown, definition: UpstreamDefinition): unknown {
  if (!(error instanceof GatewayError)) return error
  const message = placesOf(definition).reduce((text, place) => text.replaceAll(place, '…'), error.message)
  return message === error.message
    ? error
    : new GatewayError(error.code, message, { cause: error, data: error.data, headers: error.headers })
}

/** The longer ones first: they may hold the shorter ones. A bare command such as `npx` tells nothing. */
function placesOf(definition: UpstreamDefinition): string[] {
  if (definition.type === 'stdio') {
    return [definition.command, definition.cwd ?? ''].filter((place) => /[\\/]/.test(place))
  }
  const { origin, pathname, host } = new URL(definition.url)
  return [origin + pathname, origin, host]
}
