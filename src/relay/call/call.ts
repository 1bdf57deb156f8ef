// One request on its way through the gateway, and the endpoint it came to. A call keeps the configuration that it began
// with.

import { hash } from 'node:crypto'
import type { Principal } from '../../auth/principal.ts'
import type { Endpoint, Snapshot, Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import type { CallRecord } from '../../observe/calls.ts'
import {
  type EndpointName,
  GatewayError,
  type Request,
  type TenantId,
  type UpstreamName
} from '../../protocol/messages.ts'
import type { Client } from '../../protocol/seams.ts'
import type { LiveSession } from '../../session/live-sessions.ts'

/** An endpoint, in the snapshot of the configuration that a request began with. */
export interface EndpointContext {
  readonly snapshot: Snapshot
  readonly tenant: Tenant
  readonly endpoint: Endpoint
}

/** A request of either era at an endpoint. */
export interface RequestInContext extends RecordedContext {
  readonly request: Request
}

export interface RecordedContext extends EndpointContext {
  /** Filled in on the way, for what is written about the call. */
  readonly record?: CallRecord | undefined
}

/** One request of a session: revisions up to 2025-11-25. */
export interface LegacyCall extends RequestInContext {
  readonly principal: Principal
  readonly session: LiveSession
  readonly client: Client
  /** Aborted when the caller cancels, the session ends, or the drain time of a shutdown is over. */
  readonly signal: AbortSignal
}

/** One request of 2026-07-28, which belongs to no session. */
export interface ModernCall extends RequestInContext {
  /** Without its envelope, which is in `client`. */
  readonly request: Request
  readonly principal: Principal
  readonly client: Client
  /** Aborted when the caller closes the connection, is no longer let in, or the drain time of a shutdown is over. */
  readonly signal: AbortSignal
}

/** Whose view of an endpoint is meant in 2026-07-28; without a client, that of one which declares nothing. */
export interface ModernViewer extends EndpointContext {
  readonly principal?: Principal
  readonly client?: Client
}

export const isModernCaller = (viewer: ModernViewer): viewer is Required<ModernViewer> =>
  viewer.client !== undefined && viewer.principal !== undefined

/** @throws GatewayError upstream_unavailable where the tenant no longer configures an upstream of the name */
export function definitionOf({ tenant }: Pick<EndpointContext, 'tenant'>, name: UpstreamName): UpstreamDefinition {
  const definition = tenant.upstreams.get(name)
  if (definition !== undefined) return definition
  throw new GatewayError('upstream_unavailable', `Upstream ${name} is no longer configured.`)
}

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

/**
 * The person behind a connection, for quotas: the same whatever the client, the era and the endpoint. A SHA-256 digest.
 */
export const quotaKeyOf = ({ tenant, issuer, subject }: Pick<Principal, 'tenant' | 'issuer' | 'subject'>): string =>
  hash('sha256', JSON.stringify([tenant, issuer, subject]), 'base64url')
