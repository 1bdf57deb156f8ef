// Why a credential was refused: a sentence for the caller and a reason for the log. Neither ever holds the credential.

import { GatewayError } from '../protocol/messages.ts'

export type RefusalReason =
  | 'missing'
  | 'duplicate'
  | 'scheme'
  | 'syntax'
  | 'size'
  | 'unknown_key'
  | 'malformed'
  | 'header'
  | 'algorithm'
  | 'issuer'
  | 'kid'
  | 'signature'
  | 'type'
  | 'audience'
  | 'expired'
  | 'not_yet'
  | 'lifetime'
  | 'claims'
  | 'bound'

export interface AuthRefusal {
  readonly reason: RefusalReason
  /** For the log: a cause, or one short claim of the token, such as the unknown issuer. */
  readonly detail: string | undefined
}

/**
 * @returns GatewayError `unauthenticated` whose cause is the `Refusal`; the challenge is added where the endpoint is
 * known
 */
export function refused(reason: RefusalReason, message: string, detail?: string): GatewayError {
  return new GatewayError('unauthenticated', message, {
    cause: { reason, detail: detail?.slice(0, 200) } satisfies AuthRefusal
  })
}

/** Two credentials in one request: RFC 6750 section 3.1 `invalid_request`, status 400. */
export function ambiguous(message: string): GatewayError {
  return new GatewayError('invalid_request', message, {
    cause: { reason: 'duplicate', detail: undefined } satisfies AuthRefusal
  })
}

export function refusalOf(error: unknown): AuthRefusal | undefined {
  if (!(error instanceof GatewayError) || typeof error.cause !== 'object' || error.cause === null) return undefined
  return 'reason' in error.cause ? (error.cause as AuthRefusal) : undefined
}
