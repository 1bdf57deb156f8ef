// What somebody did at a login front, or was refused there.

/** From where a request came, and how it is called in the log. */
export interface LoginOrigin {
  readonly address: string | undefined
  readonly requestId: string
}

export interface LoginEvent {
  readonly action: 'sign-in' | 'consent' | 'consent-revoked' | 'authorization' | 'token' | 'grant-ended' | 'sign-out'
  /** undefined: it was allowed, or is over. Otherwise why not. */
  readonly refused?: string | undefined
  /** The person, where known. */
  readonly subject?: string | undefined
  /** Id of the client. */
  readonly client?: string | undefined
  /** Where answers to the client go. */
  readonly redirectUri?: string | undefined
  readonly resource?: string | undefined
  readonly scopes?: readonly string[] | undefined
}

/** An event as the audit log has it. */
export type AuditedLogin = LoginEvent & LoginOrigin & { readonly issuer: string }
