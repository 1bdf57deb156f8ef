// The compiled configuration of a tenant's login front.

/** @returns the path of the login front of a tenant */
export const loginPath = (tenant: string): string => `/login/${tenant}`

export interface LoginConfig {
  /** Its own: the origin of publicUrl and `path`. */
  readonly issuer: string
  /** `/login/{tenant}` */
  readonly path: string
  /** Of the tenant, as people know it. */
  readonly name: string
  /** URL of its picture. */
  readonly logo?: string
  /** The tenant's OpenID provider, where people sign in. */
  readonly provider: {
    readonly issuer: string
    /** Where discovery may lead, besides its own origin; not given: anywhere. */
    readonly hosts?: readonly string[]
    /** Is its host one that has to be public, because a tenant-admin may have named it? Not given: none is. */
    readonly publicHosts?: readonly string[]
    readonly clientId: string
    readonly clientSecret: string
    readonly scopes: readonly string[]
    /** Further parameters of a request that sends somebody there. */
    readonly parameters?: Readonly<Record<string, string>>
    /** What it calls `prompt=login`; not given: so. */
    readonly promptForLogin?: string
    readonly subjectClaim: string
    readonly groupsClaim: string
    readonly rolesClaim: string
    /** What rules of the tenant are about: nobody is let in of whom not all of it can be told. Not given: nothing. */
    readonly neededWhole?: readonly ('groups' | 'roles')[]
    /** Of whoever is let in, by path: a claim has to have one of the values. Not given: whoever the provider knows. */
    readonly requiredClaims?: Readonly<Record<string, readonly string[]>>
    /** It is asked for claims that its ID tokens leave out. */
    readonly userinfo: boolean
    /** Who signs out here does so there, too. */
    readonly signOut: boolean
  }
  /** That a token can have. */
  readonly scopes: readonly string[]
  /** What a token can be for: the URL of an endpoint, and the one of HTTP+SSE, each with the URL people know it by. */
  readonly resources: Readonly<Record<string, string>>
  /** For clients that name none: the only one, or the one named `default`. */
  readonly defaultResource: string | undefined
  readonly tokenSeconds: number
  readonly refreshDays: number
  readonly sessionHours: number
  readonly registrationsPerHour: number
  readonly authorizationsPerMinute: number
  /** Clients may be URLs of their metadata. */
  readonly clientDocuments: boolean
}
