// Where hosts look for an authorization server that is not there: at the root of the origin (2025-03-26
// basic/authorization "Fallbacks for Servers without Metadata Discovery"). They read OAuth errors and show their text.

import { hasIssuer } from '../../auth/bearer.ts'
import type { Snapshot } from '../../config/snapshot.ts'
import type { RouteReply } from '../admission.ts'
import { corsHeadersOf } from '../headers.ts'
import { sendJson } from '../reply.ts'

export const oauthPaths = [
  ['/register', 'POST'],
  ['/authorize', 'GET'],
  ['/token', 'POST']
] as const

/** Answers before the body is read. */
export function sendNoAuthorizationServer(reply: RouteReply, { tenants }: Snapshot): void {
  reply.hijack()
  const all = [...tenants.values()]
  const [issued, other] = [all.filter(({ auth }) => hasIssuer(auth)), all.some(({ auth }) => !hasIssuer(auth))]
  const byMetadata = 'names its metadata (resource_metadata), and these name the authorization server.'
  const byKey = 'Send one as "Authorization: Bearer KEY".'
  const advice =
    issued.length === 0
      ? `Its endpoints take API keys. ${byKey}`
      : other
        ? `Where people sign in the 401 of an endpoint ${byMetadata} Where it names none it takes API keys. ${byKey}`
        : `The 401 of an endpoint ${byMetadata}`
  const body = { error: 'invalid_request', error_description: `There is no authorization server here. ${advice}` }
  // RFC 6749 section 5.2.
  sendJson(reply.raw, 400, body, { ...corsHeadersOf(reply), 'Cache-Control': 'no-store', Connection: 'close' })
}
