// The compiled configuration of a tenant's login front.

export interface LoginConfig {
  /** Its own: `{publicUrl}/login/{tenant}`. */
  readonly issuer: string
  /** Of the tenant, as people know it. */
  readonly name: string
  /** The tenant's OpenID provider, where people sign in. */
  readonly provider: {
    readonly issuer: string
    readonly clientId: string
    readonly clientSecret: string
    readonly scopes: readonly string[]
    readonly subjectClaim: string
    readonly groupsClaim: string
    readonly rolesClaim: string
  }
  /** That a token can have. */
  readonly scopes: readonly string[]
  /** URLs of the endpoints. */
  readonly resources: readonly string[]
  /** For clients that name none. */
  readonly defaultResource: string | undefined
  readonly tokenSeconds: number
  readonly refreshDays: number
  readonly sessionHours: number
  readonly registrationsPerHour: number
  readonly authorizationsPerMinute: number
  /** Clients may be URLs of their metadata. */
  readonly clientDocuments: boolean
}
