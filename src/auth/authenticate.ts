// Who calls: the Authorization header of a request, for a tenant and an endpoint, to a principal, or to a refusal with
// its challenge.

import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import { readBearer } from './bearer.ts'
import { challenge } from './challenge.ts'
import type { Fetch } from './fetch.ts'
import { createKeySource, type KeySource } from './jwks.ts'
import { createKeyring, type Keyring } from './keys.ts'
import { anonymousPrincipal, keyPrincipal, reservedIssuerPrefix, type Principal } from './principal.ts'
import { refusalOf, refused } from './refusal.ts'
import { createTokenCache, digestOf, type TokenCache } from './token-cache.ts'
import { isJwt, verifyToken, type TrustedIssuer } from './token.ts'

export interface Authenticator {
  /**
   * @param resource URL of the endpoint as its metadata says it; tokens must name it in `aud`
   * @param metadataUrl where the metadata of the resource is served
   * @param rawHeaders as node has them: name, value, name, value
   * @param aliases further URLs of the very same endpoint, which `aud` may name instead
   * @throws GatewayError `unauthenticated`, `insufficient_scope` or `invalid_request`, each with WWW-Authenticate in
   * its headers; `unavailable` with Retry-After where an issuer's keys cannot be had
   */
  authenticate(
    tenant: Tenant,
    resource: string,
    metadataUrl: string,
    rawHeaders: readonly string[],
    aliases?: readonly string[]
  ): Promise<Principal>
  /** Forgets all tokens; keys of issuers that are still trusted stay. */
  reload(tenants: Iterable<Tenant>): void
  close(): void
}

export interface AuthenticatorOptions {
  /** The time of day. */
  readonly clock: Pick<Clock, 'now'>
  readonly fetch: Fetch
  readonly log: Log
}

/** What belongs to one compiled tenant: a new snapshot begins with nothing of it. */
interface TenantCredentials {
  readonly keyring: Keyring
  readonly issuers: ReadonlyMap<string, TrustedIssuer>
  readonly cache: TokenCache
}

export function createAuthenticator({ clock, fetch, log }: AuthenticatorOptions): Authenticator {
  let credentials = new WeakMap<Tenant, TenantCredentials>()
  // Never shared between tenants, even for the same issuer: one tenant's flood of kids must not use up another one's
  // cooldown.
  const keySources = new Map<string, KeySource>()

  function keysOf(tenant: Tenant, issuer: Tenant['auth']['issuers'][number]): KeySource {
    const id = keySourceId(tenant, issuer)
    const known = keySources.get(id)
    if (known !== undefined) return known
    const source = createKeySource(issuer, { fetch, clock, log })
    keySources.set(id, source)
    return source
  }

  function credentialsOf(tenant: Tenant): TenantCredentials {
    const known = credentials.get(tenant)
    if (known !== undefined) return known
    const issuers = new Map<string, TrustedIssuer>()
    for (const config of tenant.auth.issuers) {
      if (config.issuer.startsWith(reservedIssuerPrefix)) continue
      if (!config.requireTyp)
        log.warn(
          { tenant: tenant.id, issuer: config.issuer },
          'tokens without typ "at+jwt" are accepted from this issuer'
        )
      issuers.set(config.issuer, { config, keys: keysOf(tenant, config) })
    }
    const made = { keyring: createKeyring(tenant.auth.keys), issuers, cache: createTokenCache(clock) }
    credentials.set(tenant, made)
    return made
  }

  async function identify(
    tenant: Tenant,
    audiences: readonly [string, ...string[]],
    rawHeaders: readonly string[]
  ): Promise<Principal> {
    const { keyring, issuers, cache } = credentialsOf(tenant)
    const token = readBearer(rawHeaders)
    if (token === undefined)
      throw refused(
        'missing',
        'A bearer token is needed. Follow resource_metadata to get one, or send an API key of the tenant.'
      )
    const digest = digestOf(audiences.join('\n'), token)
    const cached = cache.get(digest)
    if (cached !== undefined) return cached
    const key = keyring.find(token)
    if (key === undefined && !isJwt(token))
      throw refused('unknown_key', 'This is neither an API key of the tenant nor a JWT of one of its issuers.')
    const principal =
      key !== undefined
        ? keyPrincipal(tenant.id, key)
        : await verifyToken(token, {
            tenant: tenant.id,
            issuers,
            audiences,
            leewaySeconds: tenant.auth.leewaySeconds,
            now: clock.now()
          })
    cache.set(digest, principal)
    return principal
  }

  /** @returns what to throw: the same error with the challenge of the endpoint, where a credential was refused */
  function challenged(error: unknown, { id, auth }: Tenant, metadataUrl: string): unknown {
    const refusal = refusalOf(error)
    if (!(error instanceof GatewayError) || refusal === undefined) return error
    const { reason, detail } = refusal
    log[reason === 'missing' ? 'debug' : 'info']({ tenant: id, reason, detail }, 'authentication refused')
    // RFC 6750 section 3.1: no error code where no bearer token was sent.
    const code =
      reason === 'missing' || reason === 'scheme'
        ? undefined
        : error.code === 'invalid_request'
          ? 'invalid_request'
          : 'invalid_token'
    const value = challenge({ metadataUrl, scopes: auth.requiredScopes, error: code, description: error.message })
    return new GatewayError(error.code, error.message, { cause: refusal, headers: { 'WWW-Authenticate': value } })
  }

  function outOfScope(
    { id, auth: { requiredScopes: scopes } }: Tenant,
    metadataUrl: string,
    { issuer, subject }: Principal
  ): GatewayError {
    const description = `The token needs all of these scopes: ${scopes.join(' ')}. Ask for a token with them.`
    log.info({ tenant: id, issuer, subject, reason: 'scope' }, 'authentication refused')
    const value = challenge({ metadataUrl, scopes, error: 'insufficient_scope', description })
    return new GatewayError('insufficient_scope', description, { headers: { 'WWW-Authenticate': value } })
  }

  return {
    async authenticate(tenant, resource, metadataUrl, rawHeaders, aliases = []) {
      if (tenant.auth.mode === 'none') return anonymousPrincipal(tenant.id)
      const principal = await identify(tenant, [resource, ...aliases], rawHeaders).catch((error: unknown) => {
        throw challenged(error, tenant, metadataUrl)
      })
      if (tenant.auth.requiredScopes.every((scope) => principal.scopes.has(scope))) return principal
      throw outOfScope(tenant, metadataUrl, principal)
    },

    reload(tenants) {
      credentials = new WeakMap()
      const trusted = new Set(
        [...tenants].flatMap((tenant) => tenant.auth.issuers.map((issuer) => keySourceId(tenant, issuer)))
      )
      for (const [id, source] of keySources) {
        if (trusted.has(id)) continue
        source.close()
        keySources.delete(id)
      }
    },

    close() {
      for (const source of keySources.values()) source.close()
      keySources.clear()
    }
  }
}

/** Under an equal id the keys stay over a reload. */
const keySourceId = (tenant: Tenant, { issuer, jwksUri }: Tenant['auth']['issuers'][number]): string =>
  JSON.stringify([tenant.id, issuer, jwksUri])
