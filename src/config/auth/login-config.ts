// The compiled configuration of a tenant's login front.

/** @returns the path of the login front of a tenant */
export const loginPath = (tenant: string): string => `/login/${tenant}`

export interface LoginConfig {
  /** The issuer of the login front: the origin of publicUrl and `path`. */
  readonly issuer: string
  /** `/login/{tenant}` */
  readonly path: string
  /** The name of the tenant, as people know it. */
  readonly name: string
  /** URL of its picture. */
  readonly logo?: string
  /** The tenant's OpenID provider, where people sign in. */
  readonly provider: {
    readonly issuer: string
    /** The hosts to which discovery may lead besides the provider's own origin; not given: any. */
    readonly hosts?: readonly string[]
    /** Hosts that must have public addresses, because a tenant-admin may have named them; not given: none. */
    readonly publicHosts?: readonly string[]
    readonly clientId: string
    readonly clientSecret: string
    readonly scopes: readonly string[]
    /** Further parameters of a request that sends somebody there. */
    readonly parameters?: Readonly<Record<string, string>>
    /** The provider's value for `prompt=login`. Default: `login`. */
    readonly promptForLogin?: string
    readonly subjectClaim: string
    readonly groupsClaim: string
    readonly rolesClaim: string
    /** Claims on which policy rules depend: a sign-in that does not provide all of them is refused. Not given: none. */
    readonly neededWhole?: readonly ('groups' | 'roles')[]
    /**
     * The claims that a person must have, by path: each has one of the values. Not given: everybody whom the provider
     * knows is let in.
     */
    readonly requiredClaims?: Readonly<Record<string, readonly string[]>>
    /** Whether userinfo is asked for claims that the ID tokens leave out. */
    readonly userinfo: boolean
    /** Whether signing out here signs the person out there, too. */
    readonly signOut: boolean
  }
  /** The scopes that a token can have. */
  readonly scopes: readonly string[]
  /**
   * The resources that a token can be for: the URL of an endpoint, and the one of HTTP+SSE, each with the URL that
   * people know it by.
   */
  readonly resources: Readonly<Record<string, string>>
  /** The resource for clients that name none: the only one, or the one named `default`. */
  readonly defaultResource: string | undefined
  readonly tokenSeconds: number
  readonly refreshDays: number
  readonly sessionHours: number
  readonly registrationsPerHour: number
  readonly authorizationsPerMinute: number
  /** Whether client ids may be URLs of client metadata documents. */
  readonly clientDocuments: boolean
}
