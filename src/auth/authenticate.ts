// Ties the room together: a request's Authorization header and the tenant it asks for, to a principal or a refusal with its challenge.

import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/errors.ts'
import { readBearer } from './bearer.ts'
import { challenge } from './challenge.ts'
import type { Fetch } from './fetch.ts'
import { createKeySource } from './jwks.ts'
import type { KeySource } from './jwks.ts'
import { createKeyring } from './keys.ts'
import type { Keyring } from './keys.ts'
import { anonymousPrincipal, keyPrincipal, ownIssuers } from './principal.ts'
import type { Principal } from './principal.ts'
import { refusalOf, refused } from './refusal.ts'
import { isJwt, verifyToken } from './token.ts'
import type { TrustedIssuer } from './token.ts'
import { createVerdicts, digestOf } from './verdicts.ts'
import type { Clock, Verdicts } from './verdicts.ts'

export interface Authenticator {
  /**
   * @param resource URL of the endpoint, as its metadata says it; tokens must name it in `aud`
   * @param metadataUrl where the metadata of the resource is served
   * @param rawHeaders as node has them: name, value, name, value
   * @param aliases further URLs of the very same endpoint, which `aud` may name instead
   * @throws GatewayError `unauthenticated`, `insufficient_scope` or `invalid_request`, each with WWW-Authenticate in its headers;
   * `unavailable` with Retry-After where an issuer's keys cannot be had
   */
  authenticate (tenant: Tenant, resource: string, metadataUrl: string, rawHeaders: readonly string[], aliases?: readonly string[]): Promise<Principal>
  /** All verdicts are forgotten; keys of issuers that are still trusted stay. */
  reload (tenants: Iterable<Tenant>): void
  close (): void
}

export interface AuthenticatorParts {
  readonly clock: Clock
  readonly fetch: Fetch
  readonly log: Log
}

/** What is known of one compiled tenant: a new snapshot begins with none of it. */
interface Desk {
  readonly tenant: Tenant
  readonly keyring: Keyring
  readonly issuers: ReadonlyMap<string, TrustedIssuer>
  readonly verdicts: Verdicts
}

export function createAuthenticator ({ clock, fetch, log }: AuthenticatorParts): Authenticator {
  let desks = new WeakMap<Tenant, Desk>()
  // Never shared between tenants, even for the same issuer: one tenant's flood of kids must not use up another one's cooldown.
  const sources = new Map<string, KeySource>()

  function sourceOf (place: string, issuer: Tenant['auth']['issuers'][number]): KeySource {
    const known = sources.get(place)
    if (known !== undefined) return known
    const source = createKeySource(issuer, { fetch, clock, log })
    sources.set(place, source)
    return source
  }

  function deskOf (tenant: Tenant): Desk {
    const known = desks.get(tenant)
    if (known !== undefined) return known
    const issuers = new Map<string, TrustedIssuer>()
    for (const config of tenant.auth.issuers) {
      if (config.issuer.startsWith(ownIssuers)) continue
      if (!config.requireTyp) log.warn({ tenant: tenant.id, issuer: config.issuer }, 'tokens without typ "at+jwt" are accepted from this issuer')
      issuers.set(config.issuer, { config, keys: sourceOf(placeOf(tenant, config), config) })
    }
    const desk: Desk = { tenant, keyring: createKeyring(tenant.auth.keys), issuers, verdicts: createVerdicts({ clock }) }
    desks.set(tenant, desk)
    return desk
  }

  async function identify ({ tenant, keyring, issuers, verdicts }: Desk, resource: string, aliases: readonly string[], rawHeaders: readonly string[]): Promise<Principal> {
    const token = readBearer(rawHeaders)
    if (token === undefined) throw refused('missing', 'A bearer token is needed. Follow resource_metadata to get one, or send an API key of the tenant.')
    const digest = digestOf([resource, ...aliases].join('\n'), token)
    const remembered = verdicts.get(digest)
    if (remembered !== undefined) return remembered
    const key = keyring.find(token)
    if (key === undefined && !isJwt(token)) throw refused('unknown_key', 'This is neither an API key of the tenant nor a JWT of one of its issuers.')
    const principal = key !== undefined
      ? keyPrincipal(tenant.id, key)
      : await verifyToken(token, { tenant: tenant.id, issuers, resource, aliases, leewaySeconds: tenant.auth.leewaySeconds, clock })
    verdicts.set(digest, principal)
    return principal
  }

  /** @returns what to throw: the same error, with the challenge of the endpoint */
  function challenged (error: unknown, tenant: Tenant, metadataUrl: string): unknown {
    const refusal = refusalOf(error)
    if (!(error instanceof GatewayError) || refusal === undefined) return error
    log[refusal.reason === 'missing' ? 'debug' : 'info']({ tenant: tenant.id, reason: refusal.reason, detail: refusal.detail }, 'authentication refused')
    // RFC 6750 section 3.1: no error where no bearer token was tried.
    const silent = refusal.reason === 'missing' || refusal.reason === 'scheme'
    const word = silent ? undefined : error.code === 'invalid_request' ? 'invalid_request' as const : 'invalid_token' as const
    const value = challenge({ metadataUrl, scopes: tenant.auth.requiredScopes, error: word, description: error.message })
    return new GatewayError(error.code, error.message, { cause: refusal, headers: { 'WWW-Authenticate': value } })
  }

  return {
    async authenticate (tenant, resource, metadataUrl, rawHeaders, aliases = []) {
      if (tenant.auth.mode === 'none') return anonymousPrincipal(tenant.id)
      let principal: Principal
      try {
        principal = await identify(deskOf(tenant), resource, aliases, rawHeaders)
      } catch (error) {
        throw challenged(error, tenant, metadataUrl)
      }
      if (tenant.auth.requiredScopes.every((scope) => principal.scopes.has(scope))) return principal
      throw outOfScope(tenant, metadataUrl, principal)
    },

    reload (tenants) {
      desks = new WeakMap()
      const trusted = new Set<string>()
      for (const tenant of tenants) {
        for (const issuer of tenant.auth.issuers) trusted.add(placeOf(tenant, issuer))
      }
      for (const [place, source] of sources) {
        if (trusted.has(place)) continue
        source.close()
        sources.delete(place)
      }
    },

    close () {
      for (const source of sources.values()) source.close()
      sources.clear()
    }
  }

  function outOfScope (tenant: Tenant, metadataUrl: string, { issuer, subject }: Principal): GatewayError {
    const scopes = tenant.auth.requiredScopes
    const message = `The token needs all of these scopes: ${scopes.join(' ')}. Ask for a token with them.`
    log.info({ tenant: tenant.id, issuer, subject, reason: 'scope' }, 'authentication refused')
    const value = challenge({ metadataUrl, scopes, error: 'insufficient_scope', description: message })
    return new GatewayError('insufficient_scope', message, { headers: { 'WWW-Authenticate': value } })
  }
}

/** Equal place, same keys over a reload. */
function placeOf (tenant: Tenant, { issuer, jwksUri }: Tenant['auth']['issuers'][number]): string {
  return JSON.stringify([tenant.id, issuer, jwksUri])
}
