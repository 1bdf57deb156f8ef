// Who calls: the Authorization header of a request, for a tenant and an endpoint, to a principal, or to a refusal with
// its challenge.

import { hash, timingSafeEqual } from 'node:crypto'
import type { KeyConfig } from '../config/auth/auth-config.ts'
import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import { askedFor, challenge, hasIssuer, readBearer, refusalOf, refused, type Refusal } from './bearer.ts'
import type { Fetch } from './fetch.ts'
import { createKeySource, type KeySource } from './jwks.ts'
import { anonymousPrincipal, isStopped, keyPrincipal, reservedIssuerPrefix, type Principal } from './principal.ts'
import { createDigests, createTokenCache } from './token-cache.ts'
import { isJwt, verifyToken, type TrustedIssuer } from './token.ts'

export type Authenticator = ReturnType<typeof createAuthenticator>

/** @param clock the time of day */
export function createAuthenticator({ clock, fetch, log }: { clock: Pick<Clock, 'now'>; fetch: Fetch; log: Log }) {
  // What belongs to one compiled tenant: a new snapshot begins with nothing of it.
  let credentials = new WeakMap<Tenant, ReturnType<typeof credentialsOf>>()
  // Never shared between tenants, even for the same issuer: one tenant's flood of kids must not use up another one's
  // cooldown.
  const keySources = new Map<string, KeySource>()

  const rememberedDigest = createDigests()

  function credentialsOf(tenant: Tenant) {
    const issuers = new Map<string, TrustedIssuer>()
    for (const config of tenant.auth.issuers) {
      if (config.issuer.startsWith(reservedIssuerPrefix)) continue
      if (!config.requireTyp)
        log.warn(
          { tenant: tenant.id, issuer: config.issuer },
          'tokens without typ "at+jwt" are accepted from this issuer'
        )
      const id = keySourceId(tenant, config)
      const keys = keySources.get(id) ?? createKeySource(config, { fetch, clock, log })
      keySources.set(id, keys)
      issuers.set(config.issuer, { config, keys })
    }
    const made = { keyring: createKeyring(tenant.auth.keys), issuers, cache: createTokenCache(clock) }
    credentials.set(tenant, made)
    return made
  }

  async function identify(
    tenant: Tenant,
    audiences: readonly [string, ...string[]],
    rawHeaders: readonly string[],
    connection: object | undefined
  ): Promise<Principal> {
    const { keyring, issuers, cache } = credentials.get(tenant) ?? credentialsOf(tenant)
    const token = readBearer(rawHeaders)
    if (token === undefined)
      throw refused(
        'missing',
        hasIssuer(tenant.auth)
          ? 'A bearer token is needed. Follow resource_metadata to get one, or send an API key of the tenant.'
          : 'An API key of the tenant is needed. Send it as "Authorization: Bearer KEY". There is no authorization ' +
              'server to get a token from.'
      )
    const digest = rememberedDigest(audiences.join('\n'), token, connection)
    const cached = cache.get(digest)
    if (cached !== undefined) return cached
    const key = keyring.find(token)
    if (key === undefined && !hasIssuer(tenant.auth))
      throw refused('unknown_key', 'This is not an API key of the tenant, which lets nobody in by anything else.')
    if (key === undefined && !isJwt(token))
      throw refused('unknown_key', 'This is neither an API key of the tenant nor a JWT of one of its issuers.')
    const { leewaySeconds } = tenant.auth
    const principal =
      key !== undefined
        ? keyPrincipal(tenant.id, key)
        : await verifyToken(token, { tenant: tenant.id, issuers, audiences, leewaySeconds, now: clock.now() })
    cache.set(digest, principal)
    return principal
  }

  /** @returns what to throw: the same error with the challenge of the endpoint, where a credential was refused */
  function challenged(error: unknown, { id, auth }: Tenant, metadataUrl: string): unknown {
    const refusal = error instanceof GatewayError ? refusalOf(error) : undefined
    if (!(error instanceof GatewayError) || refusal === undefined) return error
    const { reason, detail } = refusal
    log.debug({ tenant: id, reason, detail }, 'authentication refused')
    const { code, message } = error
    const name =
      reason === 'missing' || reason === 'scheme' ? undefined : code === 'invalid_request' ? code : 'invalid_token'
    return new GatewayError(code, message, {
      cause: refusal,
      headers: {
        'WWW-Authenticate': challenge(hasIssuer(auth) ? metadataUrl : undefined, askedFor(auth), name, message)
      }
    })
  }

  return {
    /**
     * @param resource URL of the endpoint as its metadata says it; tokens must name it in `aud`
     * @param metadataUrl where the metadata of the resource is served
     * @param rawHeaders as node has them: name, value, name, value
     * @param aliases further URLs of the very same endpoint, which `aud` may name instead
     * @param connection that the request came on, if that is known: its last token is remembered as long as it is open
     * @throws GatewayError `unauthenticated`, `insufficient_scope` or `invalid_request`, each with WWW-Authenticate in
     * its headers; `unavailable` with Retry-After where an issuer's keys cannot be had
     */
    async authenticate(
      tenant: Tenant,
      resource: string,
      metadataUrl: string,
      rawHeaders: readonly string[],
      aliases: readonly string[] = [],
      connection?: object
    ): Promise<Principal> {
      if (tenant.auth.stopped === 'everybody') throw stoppedCaller()
      if (tenant.auth.mode === 'none') return notStopped(anonymousPrincipal(tenant.id), tenant)
      const principal = await identify(tenant, [resource, ...aliases], rawHeaders, connection).catch(
        (error: unknown) => {
          throw challenged(error, tenant, metadataUrl)
        }
      )
      notStopped(principal, tenant)
      const scopes = tenant.auth.requiredScopes
      if (scopes.every((scope) => principal.scopes.has(scope))) return principal
      const { issuer, subject } = principal
      log.debug({ tenant: tenant.id, issuer, subject, reason: 'scope' }, 'authentication refused')
      const isKeyOnly = !hasIssuer(tenant.auth)
      const description =
        `The ${isKeyOnly ? 'API key' : 'token'} needs all of these scopes: ${scopes.join(' ')}. ` +
        (isKeyOnly ? 'They are given to it in the configuration.' : 'Ask for a token with them.')
      const metadata = isKeyOnly ? undefined : metadataUrl
      throw new GatewayError('insufficient_scope', description, {
        cause: { reason: 'scope', detail: `${subject} of ${issuer}`.slice(0, 200) } satisfies Refusal,
        headers: { 'WWW-Authenticate': challenge(metadata, askedFor(tenant.auth), 'insufficient_scope', description) }
      })
    },

    /** Forgets the tokens of tenants that are others than before; keys of issuers that are still trusted stay. */
    reload(tenants: Iterable<Tenant>): void {
      const all = [...tenants]
      const before = credentials
      // Not of others: one that is away for a while, and then the same again, has lost its keys.
      credentials = new WeakMap()
      for (const tenant of all) {
        const known = before.get(tenant)
        if (known !== undefined) credentials.set(tenant, known)
      }
      const trusted = new Set(all.flatMap((tenant) => tenant.auth.issuers.map((issuer) => keySourceId(tenant, issuer))))
      for (const [id, source] of keySources) {
        if (trusted.has(id)) continue
        source.close()
        keySources.delete(id)
      }
    },

    close(): void {
      for (const source of keySources.values()) source.close()
      keySources.clear()
    }
  }
}

const stoppedCaller = (): GatewayError =>
  new GatewayError('stopped', 'Those who run this gateway do not let this caller in for now. Ask them.')

/** @throws GatewayError stopped */
function notStopped(principal: Principal, { auth }: Tenant): Principal {
  if (isStopped(principal, auth)) throw stoppedCaller()
  return principal
}

/** Under an equal id the keys stay over a reload. */
const keySourceId = (
  tenant: Tenant,
  { issuer, jwksUri, hosts, staleSeconds }: Tenant['auth']['issuers'][number]
): string => JSON.stringify([tenant.id, issuer, jwksUri, hosts, staleSeconds])

/** API keys of a tenant, or admin keys: known by their SHA-256 only. */
export function createKeyring<Key extends Pick<KeyConfig, 'sha256'>>(keys: readonly Key[]) {
  const entries = keys
    .map((key) => ({ key, digest: Buffer.from(key.sha256, 'hex') }))
    .filter((entry) => entry.digest.length === 32)
  return {
    find(presented: string): Key | undefined {
      if (entries.length === 0) return undefined
      const digest = hash('sha256', presented, 'buffer')
      let found: Key | undefined
      // Every entry is compared, so that the time does not tell which one came close.
      for (const entry of entries) if (timingSafeEqual(entry.digest, digest)) found = entry.key
      return found
    }
  }
}
