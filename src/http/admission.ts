// Lets a request in: finds its endpoint, checks that the store is usable, and authenticates its caller. All of it
// before the body is read, so that what an unknown caller sends is never buffered.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticator } from '../auth/authenticate.ts'
import { metadataUrlOf } from '../auth/bearer.ts'
import type { Principal } from '../auth/principal.ts'
import type { Endpoint } from '../config/snapshot.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { EndpointContext } from '../relay/call/call.ts'
import type { Sealer } from '../store/seal.ts'
import { corsHeadersOf } from './cors.ts'
import {
  addressOf,
  endpointOf,
  noEndpoint,
  pathOf,
  type PathParams,
  resourceOf,
  type ServerState,
  type UrlSuffix
} from './endpoints.ts'
import { readTarget } from './guard.ts'
import type { RequestContext } from './request-context.ts'

/** @throws GatewayError not_found, unavailable, unauthenticated and the other refusals of the authenticator */
export type Admit = (request: FastifyRequest, reply: FastifyReply, suffix: UrlSuffix) => Promise<RequestContext>

/** The names of an endpoint in tokens and challenges. */
interface ResourceUrls {
  readonly resource: string
  readonly metadata: string
  readonly aliases: readonly string[]
}

/** @param sealer not ready until the key is loaded that event ids are sealed with; no session can be served before */
export function createAdmission(
  state: ServerState,
  authenticator: Authenticator,
  sealer: Pick<Sealer, 'ready'>
): Admit {
  // Made once for each endpoint, because every request needs them.
  const urls = new WeakMap<Endpoint, Partial<Record<UrlSuffix, ResourceUrls>>>()

  function urlsOf(endpoint: Endpoint, suffix: UrlSuffix): ResourceUrls {
    let ofEndpoint = urls.get(endpoint)
    if (ofEndpoint === undefined) urls.set(endpoint, (ofEndpoint = {}))
    return (ofEndpoint[suffix] ??= resourceUrls(endpoint, suffix))
  }

  function resourceUrls(endpoint: Endpoint, suffix: UrlSuffix): ResourceUrls {
    const { publicUrl } = addressOf(state)
    const { path, aliases } = resourceOf(endpoint, suffix)
    const resource = publicUrl + path
    return { resource, metadata: metadataUrlOf(resource), aliases: aliases.map((alias) => publicUrl + alias) }
  }

  function authenticate(
    { tenant, endpoint }: EndpointContext,
    suffix: UrlSuffix,
    rawHeaders: readonly string[]
  ): Promise<Principal> {
    const { resource, metadata, aliases } = urlsOf(endpoint, suffix)
    return authenticator.authenticate(tenant, resource, metadata, rawHeaders, aliases)
  }

  return async (request, reply, suffix) => {
    const params = request.params as PathParams
    const { rawHeaders } = request.raw
    const place = endpointOf(params, state.snapshot)
    // An endpoint has one spelling of its path: another one, with escapes, could slip past the rules of a proxy in
    // front.
    const path = pathOf(place.endpoint, suffix)
    if (request.url !== path && readTarget(request.url).path !== path) throw noEndpoint()
    if (!sealer.ready)
      throw new GatewayError('unavailable', 'The store of the gateway cannot be reached. Retry in a second.', {
        headers: { 'Retry-After': '1' }
      })
    const principal = await authenticate(place, suffix, rawHeaders)
    const { expiresAt } = principal
    return {
      ...place,
      principal,
      validUntil: expiresAt === undefined ? Infinity : expiresAt + place.tenant.auth.leewaySeconds * 1000,
      async revalidate() {
        await authenticate(endpointOf(params, state.snapshot), suffix, rawHeaders)
      },
      incoming: request.raw,
      raw: reply.raw,
      headers: corsHeadersOf(reply),
      requestId: request.id,
      bodyBytes: 0
    }
  }
}
