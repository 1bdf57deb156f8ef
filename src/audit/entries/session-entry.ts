// What the audit log says of a session that a caller opened or ended.

import type { JsonObject } from '../../protocol/messages.ts'
import { type AuditedPrincipal, callerFields } from './call-entry.ts'

/** The caller who opens or ends a session. */
export interface SessionCaller {
  readonly tenant: { readonly id: string }
  readonly endpoint: { readonly name: string }
  readonly principal: AuditedPrincipal
  readonly address?: string | undefined
  readonly requestId: string
}

export interface AuditedSession {
  readonly clientInfo: unknown
  readonly revision: string
}

export const sessionEntry = (
  action: 'opened' | 'ended',
  { endpoint, principal, address: from, requestId: request }: SessionCaller,
  { clientInfo, revision }: AuditedSession
): JsonObject => ({
  endpoint: endpoint.name,
  action,
  ...callerFields(principal),
  from,
  request,
  client: clientInfo,
  revision
})
