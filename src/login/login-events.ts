// What happens at the login front of one tenant, told to the audit log.

import type { IncomingMessage } from 'node:http'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { Tenant } from '../config/snapshot.ts'
import type { AuditedLogin, LoginEvent, LoginOrigin } from '../observe/login-event.ts'
import { firstOf } from '../protocol/own-text.ts'

/** Of what clients and providers chose. */
const maxEventChars = 500

export interface LoginAuditor {
  login(tenant: string, event: AuditedLogin): void
}

export type LoginEvents = ReturnType<typeof createLoginEvents>

/** @param origins of requests under way */
export function createLoginEvents(
  tenant: Pick<Tenant, 'id'>,
  { issuer }: Pick<LoginConfig, 'issuer'>,
  audit: LoginAuditor | undefined,
  origins: WeakMap<IncomingMessage, LoginOrigin>
) {
  const cut = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : firstOf(text, maxEventChars)
  return (request: IncomingMessage, { refused, client, redirectUri, resource, ...event }: LoginEvent): void => {
    const { address, requestId } = origins.get(request) ?? { address: undefined, requestId: '' }
    const chosen = {
      refused: cut(refused),
      client: cut(client),
      redirectUri: cut(redirectUri),
      resource: cut(resource)
    }
    audit?.login(tenant.id, { ...event, ...chosen, issuer, address, requestId })
  }
}
