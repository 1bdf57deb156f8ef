// Administrators who come with an access token of a configured issuer: for the admin API alone, by its audience. What
// they may do follows from their groups, roles or name.

import { refused } from '../../auth/bearer.ts'
import { createKeySource, type KeySource } from '../../auth/jwks.ts'
import type { FetchFor } from '../../egress/fetch.ts'
import type { Principal } from '../../auth/principal.ts'
import { createTokenCache, digestOf } from '../../auth/token-cache.ts'
import { verifyToken, type TrustedIssuer } from '../../auth/token.ts'
import type { AdminConfig } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { tenantId } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import type { Identified } from '../access.ts'
import { AdminProblem } from '../problem.ts'

/** The claims of a token that decide about access. */
export type TokenHolder = Pick<Principal, 'issuer' | 'subject' | 'groups' | 'roles' | 'expiresAt'>

type OidcConfig = NonNullable<AdminConfig['oidc']>

const leewaySeconds = 30
/** No tenant can have this name. */
export const nobodysTenant = tenantId('(admin)')

export function createTokenAdministrators({
  wall,
  fetchFor,
  log,
  nameOf
}: {
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly fetchFor: FetchFor
  readonly log: Log
  /** Returns the name of a person for the log. */
  readonly nameOf: (tenant: string, name: string) => string
}) {
  let current: { readonly config: OidcConfig; readonly cache: ReturnType<typeof createTokenCache> } | undefined
  let sources = new Map<string, KeySource>()

  /** Another configuration begins with no token, and with the keys of issuers that stay. */
  function take(config: OidcConfig) {
    const before = sources
    sources = new Map(
      config.issuers.map((issuer) => {
        const id = JSON.stringify([issuer.issuer, issuer.jwksUri, issuer.staleSeconds])
        const fetch = fetchFor(nobodysTenant, [issuer.issuer, issuer.jwksUri])
        return [id, before.get(id) ?? createKeySource(issuer, { fetch, clock: wall, log })]
      })
    )
    for (const [id, source] of before) if (!sources.has(id)) source.close()
    return (current = { config, cache: createTokenCache(wall) })
  }

  const cacheOf = (config: OidcConfig) => (current?.config === config ? current : take(config)).cache

  async function verified(token: string, config: OidcConfig): Promise<Principal> {
    const cache = cacheOf(config)
    const keys = [...sources.values()]
    const issuers = new Map<string, TrustedIssuer>(
      config.issuers.map((issuer, at) => [issuer.issuer, { config: issuer, keys: keys[at] as KeySource }])
    )
    const { principal, boundTo } = await verifyToken(token, {
      tenant: nobodysTenant,
      issuers,
      audiences: [config.audience],
      leewaySeconds,
      now: wall.now()
    })
    // RFC 9449: a token that is bound to a key proves nothing without its proof, which is not read here.
    if (boundTo !== undefined)
      throw refused('bound', 'The token is bound to a key of its client. Send one that is not.')
    cache.set(digestOf(config.audience, token), { principal })
    return principal
  }

  return {
    /** Was it found good a short while ago? */
    isKnown: (token: string, config: OidcConfig): boolean =>
      cacheOf(config).get(digestOf(config.audience, token)) !== undefined,
    /** @throws GatewayError unauthenticated, unavailable where the issuer cannot be asked */
    holderOf: async (token: string, config: OidcConfig): Promise<Principal> =>
      cacheOf(config).get(digestOf(config.audience, token))?.principal ?? (await verified(token, config)),
    /** @throws AdminProblem forbidden where the holder of the token has no role here */
    administratorFor(principal: TokenHolder, config: OidcConfig): Identified {
      const { issuer, subject, groups, roles, expiresAt } = principal
      const access = config.access.find((each) => isMeant(each, principal))
      if (access === undefined) {
        log.info({ issuer, subject: nameOf(nobodysTenant, subject) }, 'a token without a role here at the admin API')
        throw new AdminProblem(
          'forbidden',
          'The token is good, and names nobody who may use the admin API.',
          'Ask for one of the groups or roles that admin.oidc.access names.'
        )
      }
      const { role, tenants } = access
      return {
        name: holderName(principal),
        role,
        tenants: tenants === undefined ? undefined : new Set(tenants),
        by: {
          kind: 'token',
          holder: { issuer, subject, groups, roles, expiresAt },
          config,
          expiresAt: expiresAt ?? 0
        }
      }
    },
    close(): void {
      for (const source of sources.values()) source.close()
    }
  }
}

/** An issuer has no space in it: two holders never have one name, nor has a key that of a holder. */
export const holderName = ({ subject, issuer }: Pick<Principal, 'subject' | 'issuer'>): string =>
  `${subject} (${issuer})`

/** Whether the principal has one value of each member that is given. */
function isMeant({ issuers, subjects, groups, roles }: OidcConfig['access'][number], principal: TokenHolder): boolean {
  const hasOne = (wanted: readonly string[] | undefined, own: readonly string[]): boolean =>
    wanted === undefined || wanted.some((each) => own.includes(each))
  return (
    hasOne(issuers, [principal.issuer]) &&
    hasOne(subjects, [principal.subject]) &&
    hasOne(groups, principal.groups) &&
    hasOne(roles, principal.roles)
  )
}
