// What hosts say when they register (RFC 7591), as far as it is taken otherwise than they say it.

import { randomBytes } from 'node:crypto'
import type { KoaContextWithOIDC } from 'oidc-provider'

/**
 * The `client_id` of a host. The library asks for it before it looks at the metadata.
 *
 * A host registers scopes before it knows which it needs: the MCP Inspector an empty text, others `openid profile
 * email`. The library would refuse what it does not have, and later whatever was not registered. So none are
 * registered: which scopes a token gets is asked of the person, and limited by the endpoint (RFC 7591 section 2: where
 * there is no `scope`, the server registers a default set).
 */
export function registeredId(ctx: KoaContextWithOIDC): string {
  if (ctx.oidc.body !== undefined) delete ctx.oidc.body['scope']
  return randomBytes(16).toString('base64url')
}
