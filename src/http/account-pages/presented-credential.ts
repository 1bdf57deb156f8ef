// Whose an API key or access token is that somebody shows at the page of connections.

import type { FastifyRequest } from 'fastify'
import type { Authenticator } from '../../auth/authenticate.ts'
import { refusalOf } from '../../auth/bearer.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { addressOf, clientAddressOf, resourceOf, type ServerState } from '../admission.ts'

/** The most endpoints for which a credential is tried. */
const maxEndpoints = 16
/** Reasons of refusals at one endpoint that another one may not have. */
const reasonsOfEndpoints: ReadonlySet<string> = new Set(['endpoint', 'audience'])

/** @throws GatewayError as for a request to an endpoint of the tenant */
export async function principalWith(
  { state, authenticator }: { readonly state: ServerState; readonly authenticator: Authenticator },
  tenant: Tenant,
  rawHeaders: readonly string[],
  { raw }: FastifyRequest
): Promise<Principal> {
  let refusal: unknown = new GatewayError('not_found', 'The tenant has no endpoint.')
  // Some credentials are for some endpoints only.
  for (const endpoint of [...tenant.endpoints.values()].slice(0, maxEndpoints)) {
    try {
      const place = resourceOf(endpoint, 'mcp', addressOf(state).publicUrl)
      const { socket: connection, method } = raw
      const address = clientAddressOf(raw, state.snapshot)
      return await authenticator.authenticate(tenant, place, { rawHeaders, connection, address, method })
    } catch (error) {
      refusal = error
      // What is good nowhere is not asked about once for each endpoint.
      const reason = error instanceof GatewayError ? refusalOf(error)?.reason : undefined
      if (reason === undefined || !reasonsOfEndpoints.has(reason)) break
    }
  }
  throw refusal
}
