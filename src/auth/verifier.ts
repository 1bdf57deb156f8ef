// Verifies a credential: an API key of the tenant, a JWT of one of its issuers, or an opaque token that one of them
// introspects. Valid credentials are cached for a while.

import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import { hasIssuer, refused } from './bearer.ts'
import type { FetchFor } from '../egress/fetch.ts'
import { createIntrospector, type Introspector } from './introspection.ts'
import { createKeySource, type KeySource } from './jwks.ts'
import { createKeyring, endOfKey } from './keyring.ts'
import { reservedIssuerPrefix } from '../config/auth/auth-config.ts'
import { keyPrincipal } from './principal.ts'
import { createTokenCache, type Verified } from './token-cache.ts'
import { isJwt, verifyToken, type TrustedIssuer } from './token.ts'

/** An endpoint, as tokens and keys name it. */
export interface ProtectedResource {
  /** The name of the endpoint in the configuration, for keys. */
  readonly endpoint: string
  /** The URL of the request, without a query; a proof has to name it. */
  readonly url: string
  /** URL as its metadata says it; tokens must name it in `aud`. */
  readonly resource: string
  /** Further values of `aud` that stand for it. */
  readonly aliases: readonly string[]
  /** The scopes that a caller needs here; not given: those of the tenant. */
  readonly requiredScopes?: readonly string[] | undefined
  /** The URL of the resource metadata. */
  readonly metadata: string
}

interface Credentials {
  readonly keyring: ReturnType<typeof createKeyring<Tenant['auth']['keys'][number]>>
  readonly issuers: ReadonlyMap<string, TrustedIssuer>
  /** The one issuer that introspects opaque tokens. */
  readonly opaque: { readonly introspector: Introspector; readonly config: TrustedIssuer['config'] } | undefined
  readonly cache: ReturnType<typeof createTokenCache>
}

interface VerifierParts {
  /** The time of day. */
  readonly clock: Pick<Clock, 'now'>
  readonly fetchFor: FetchFor
  readonly log: Log
  /** Returns the name of a key for the log. */
  readonly nameOf: (tenant: string, name: string) => string
}

export function createVerifier({ clock, fetchFor, log, nameOf }: VerifierParts) {
  // By compiled tenant: a tenant of a new snapshot begins without cached credentials.
  let credentials = new WeakMap<Tenant, Credentials>()
  // Never shared between tenants, even for the same issuer: one tenant's flood of kids must not use up another one's
  // lookups.
  const keySources = new Map<string, KeySource>()

  function credentialsOf(tenant: Tenant): Credentials {
    const issuers = new Map<string, TrustedIssuer>()
    for (const config of tenant.auth.issuers) {
      if (config.issuer.startsWith(reservedIssuerPrefix)) continue
      if (!config.requireTyp)
        log.warn(
          { tenant: tenant.id, issuer: config.issuer },
          'tokens without typ "at+jwt" are accepted from this issuer'
        )
      const id = keySourceId(tenant, config)
      const fetch = fetchFor(tenant.id, [config.issuer, config.jwksUri], config.publicHosts)
      const keys = keySources.get(id) ?? createKeySource(config, { fetch, clock, log })
      keySources.set(id, keys)
      issuers.set(config.issuer, { config, keys })
    }
    const asked = tenant.auth.issuers.find(({ introspection }) => introspection !== undefined)
    const made = {
      keyring: createKeyring(tenant.auth.keys),
      issuers,
      opaque:
        asked?.introspection === undefined
          ? undefined
          : {
              config: asked,
              introspector: createIntrospector(asked, asked.introspection, {
                fetch: fetchFor(tenant.id, [asked.issuer, asked.introspection.url], asked.publicHosts),
                clock,
                log
              })
            },
      cache: createTokenCache(clock)
    }
    credentials.set(tenant, made)
    return made
  }

  const uses = { hits: 0, misses: 0 }

  return {
    uses,
    remembered(tenant: Tenant, digest: string): Verified | undefined {
      const found = credentials.get(tenant)?.cache.get(digest)
      if (found !== undefined) uses.hits++
      return found
    },

    /**
     * Verifies a credential and caches it under its digest.
     * @param address the client's address, if that is known
     * @throws GatewayError unauthenticated; unavailable where an issuer cannot be asked
     */
    async verify(
      tenant: Tenant,
      { endpoint, resource, aliases }: ProtectedResource,
      token: string,
      digest: string,
      address?: string
    ): Promise<Verified> {
      uses.misses++
      const { keyring, issuers, opaque, cache } = credentials.get(tenant) ?? credentialsOf(tenant)
      const now = clock.now()
      const checks = {
        tenant: tenant.id,
        audiences: [resource, ...aliases] as [string, ...string[]],
        leewaySeconds: tenant.auth.leewaySeconds,
        now
      }
      const entry = keyring.entry(token)
      if (entry !== undefined) {
        const named = { ...entry.key, name: nameOf(tenant.id, entry.key.name) }
        const end = endOfKey(named, endpoint, entry.until, now)
        const verified = { principal: keyPrincipal(tenant.id, entry.key, end === Infinity ? undefined : end) }
        cache.set(digest, verified)
        return verified
      }
      if (!hasIssuer(tenant.auth))
        throw refused('unknown_key', 'This is not an API key of the tenant, which lets nobody in by anything else.')
      if (isJwt(token)) {
        const verified = await verifyToken(token, { ...checks, issuers })
        cache.set(digest, verified)
        return verified
      }
      if (opaque === undefined)
        throw refused('unknown_key', 'This is neither an API key of the tenant nor a JWT of one of its issuers.')
      const { introspector, config } = opaque
      const verified = await introspector.verified(digest, token, checks, address)
      cache.set(digest, verified, (config.introspection?.cacheSeconds ?? 0) * 1000)
      return verified
    },

    /** Forgets the tokens of tenants whose configuration has changed; keys of issuers that are still trusted stay. */
    reload(tenants: Iterable<Tenant>): void {
      const all = [...tenants]
      const before = credentials
      // Only tenants of this snapshot are kept: one that is removed and added again starts without cached credentials.
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

/** Identifies a key source: sources with equal ids keep their keys over a reload. */
const keySourceId = (
  tenant: Tenant,
  { issuer, jwksUri, hosts, publicHosts, staleSeconds }: Tenant['auth']['issuers'][number]
): string => JSON.stringify([tenant.id, issuer, jwksUri, hosts, publicHosts, staleSeconds])
