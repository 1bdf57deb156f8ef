// What the store holds of a legacy session, and whom the session belongs to.

import type { ClientCapabilities, EndpointName, Implementation, Revision, TenantId } from '../protocol/messages.ts'
import type { LogLevel } from '../protocol/seams.ts'

/** Who opened a session. No part of the token: a refreshed token keeps its session. */
export interface Owner {
  readonly tenant: TenantId
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
}

export interface SessionRecord {
  readonly owner: Owner
  readonly endpoint: EndpointName
  /** The slot that counts towards the limit of sessions of its owner. */
  readonly seat: number
  readonly revision: Revision
  readonly clientInfo: Implementation | undefined
  readonly capabilities: ClientCapabilities
  readonly logLevel: LogLevel | undefined
  /** Epoch ms. */
  readonly openedAt: number
  readonly touchedAt: number
}

/** What a client says of itself in `initialize`, and the revision agreed on. */
export type NegotiatedClient = Pick<SessionRecord, 'revision' | 'clientInfo' | 'capabilities'>

export const sameOwner = (a: Owner, b: Owner): boolean =>
  a.tenant === b.tenant && a.issuer === b.issuer && a.subject === b.subject && a.clientId === b.clientId

/** @returns undefined for what is no whole record: the session counts as absent, and its client opens a new one */
export function decodeSessionRecord(text: string): SessionRecord | undefined {
  let value: SessionRecord | null
  try {
    value = JSON.parse(text) as SessionRecord | null
  } catch {
    return undefined
  }
  if (value === null) return undefined
  const { owner, endpoint, seat, revision, capabilities, openedAt, touchedAt } = value
  const whole =
    typeof owner?.tenant === 'string' &&
    typeof owner.subject === 'string' &&
    typeof endpoint === 'string' &&
    Number.isSafeInteger(seat) &&
    typeof revision === 'string' &&
    typeof capabilities === 'object' &&
    capabilities !== null &&
    Number.isFinite(openedAt) &&
    Number.isFinite(touchedAt)
  return whole ? { ...value, logLevel: value.logLevel, clientInfo: value.clientInfo } : undefined
}
