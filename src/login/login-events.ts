// What happens at the login front of one tenant, told to the audit log; who is let in to the log, too.

import type { IncomingMessage } from 'node:http'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { AuditedLogin, LoginEvent, LoginOrigin } from '../observe/login-event.ts'
import { firstOf } from '../protocol/own-text.ts'

/** Of what clients and providers chose. */
const maxEventChars = 500

export interface LoginAuditor {
  login(tenant: string, event: AuditedLogin): void
}

export interface LoginListeners {
  readonly audit: LoginAuditor | undefined
  readonly log: Log
  /** Of a person, in the log. */
  readonly nameOf: (tenant: string, subject: string) => string
}

export type LoginEvents = ReturnType<typeof createLoginEvents>

/** @param origins of requests under way */
export function createLoginEvents(
  tenant: Pick<Tenant, 'id'>,
  { issuer }: Pick<LoginConfig, 'issuer'>,
  { audit, log, nameOf }: LoginListeners,
  origins: WeakMap<IncomingMessage, LoginOrigin>
) {
  const cut = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : firstOf(text, maxEventChars)
  function writeAllowed({ action, subject }: LoginEvent, allowed: string | undefined): void {
    const shown = { tenant: tenant.id, subject: subject && nameOf(tenant.id, subject) }
    if (action === 'sign-in') log.info(shown, 'signed in')
    if (action === 'consent') log.info({ ...shown, client: allowed }, 'a client was allowed to act for a person')
  }

  return (request: IncomingMessage, { refused, client, redirectUri, resource, ...event }: LoginEvent): void => {
    const { address, requestId } = origins.get(request) ?? { address: undefined, requestId: '' }
    const chosen = {
      refused: cut(refused),
      client: cut(client),
      redirectUri: cut(redirectUri),
      resource: cut(resource)
    }
    if (refused === undefined) writeAllowed(event, chosen.client)
    audit?.login(tenant.id, { ...event, ...chosen, issuer, address, requestId })
  }
}
