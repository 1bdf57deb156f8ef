// `/t/{tenant}/jwks.json`: what upstreams verify assertions of the gateway by (RFC 7517). Public by nature.

import { GatewayError, tenantId } from '../../protocol/messages.ts'
import { signs } from '../../vault/signed/assertions.ts'
import type { Vault } from '../../vault/vault.ts'
import type { PathParams, RouteReply, RouteRequest, ServerState } from '../admission.ts'
import { corsHeadersOf } from '../headers.ts'

export const sendSigningKeys =
  (
    { state, vault }: { readonly state: ServerState; readonly vault: Pick<Vault, 'signingKeys'> },
    refuse: (request: RouteRequest, reply: RouteReply, error: unknown, id: null) => void
  ) =>
  (request: RouteRequest, reply: RouteReply): void => {
    const tenant = state.snapshot.tenants.get(tenantId((request.params as PathParams).tenant ?? ''))
    if (tenant === undefined || !signs(tenant))
      throw new GatewayError(
        'not_found',
        'This tenant signs no tokens: no upstream of it has `auth: { type: signed }`.'
      )
    reply.hijack()
    vault.signingKeys.of(tenant.id).then(
      ({ published }) => {
        const text = JSON.stringify({ keys: published })
        const type = { 'Content-Type': 'application/jwk-set+json', 'Cache-Control': 'public, max-age=300' }
        reply.raw.writeHead(200, { ...type, ...corsHeadersOf(reply) }).end(text)
      },
      (error: unknown) => refuse(request, reply, error, null)
    )
  }
