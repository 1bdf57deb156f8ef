// Authenticates a request: turns its Authorization header, for a tenant and an endpoint, into a principal, or into a
// refusal with a challenge.

import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { Store } from '../store/port.ts'
import type { Clock } from '../time/clock.ts'
import {
  askedFor,
  challenge,
  type ChallengeError,
  createCredentialReader,
  hasIssuer,
  refusalOf,
  refused,
  type Refusal,
  type Scheme
} from './bearer.ts'
import { boundCredential, createProofs, nonceHeader, schemeFor, schemeOf } from './dpop.ts'
import { createNonces, type NonceParts } from './dpop-nonces.ts'
import type { FetchFor } from '../egress/fetch.ts'
import { adviceOnScopes, anonymousPrincipal, isStopped, type Principal } from './principal.ts'
import { createVerifier, type ProtectedResource } from './verifier.ts'

export type Authenticator = ReturnType<typeof createAuthenticator>

export interface PresentedRequest {
  /** The headers as Node has them: name, value, name, value. */
  readonly rawHeaders: readonly string[]
  /** The connection of the request, if that is known: its last token is remembered as long as it is open. */
  readonly connection?: object | undefined
  /** The address of the client, if that is known: unauthenticated clients are counted by it. */
  readonly address?: string | undefined
  /**
   * The HTTP method, which a proof of possession has to name. undefined: the request was let in with its proof before,
   * and only the token is checked again. The member is required, so that no caller skips the proof by mistake.
   */
  readonly method: string | undefined
  /** The headers of the response: a new DPoP nonce is added to them. */
  readonly replyHeaders?: Record<string, string>
}

/** The error of the challenge by the reason of a refusal; all others are `invalid_token`. */
const challengeErrors: Readonly<Record<string, ChallengeError | undefined>> = {
  no_token: undefined,
  scheme: undefined,
  proof: 'invalid_dpop_proof',
  nonce: 'use_dpop_nonce'
}

interface AuthenticatorParts {
  /** The time of day. */
  readonly clock: Pick<Clock, 'now'>
  readonly fetchFor: FetchFor
  /** The store of proofs that were used. */
  readonly store: Pick<Store, 'set'>
  readonly sealer: NonceParts['sealer']
  readonly log: Log
  /** Returns the name of a caller for the log. */
  readonly nameOf?: (tenant: string, subject: string) => string
}

export function createAuthenticator({
  clock,
  fetchFor,
  store,
  sealer,
  log,
  nameOf = (_tenant, name) => name
}: AuthenticatorParts) {
  const proofs = createProofs({ store, nonces: createNonces({ sealer, clock }), clock })
  const verifier = createVerifier({ clock, fetchFor, log, nameOf })
  const readCredential = createCredentialReader()
  const anonymous = new WeakMap<Tenant, Principal>()

  function anonymousOf(tenant: Tenant): Principal {
    const principal = anonymous.get(tenant) ?? anonymousPrincipal(tenant.id)
    anonymous.set(tenant, principal)
    return principal
  }

  /** @returns undefined also for a credential that is refused: `identify` says why */
  function credentialIn(place: ProtectedResource, { rawHeaders, connection }: PresentedRequest) {
    try {
      return readCredential(rawHeaders, audienceOf(place), connection)
    } catch {
      return undefined
    }
  }

  async function identify(tenant: Tenant, place: ProtectedResource, presented: PresentedRequest): Promise<Principal> {
    const credential = readCredential(presented.rawHeaders, audienceOf(place), presented.connection)
    if (credential === undefined)
      throw refused(
        'no_token',
        hasIssuer(tenant.auth)
          ? 'A bearer token is needed. Follow resource_metadata to get one' +
              (tenant.auth.keys.length > 0 ? ', or send an API key of the tenant.' : '.')
          : 'An API key of the tenant is needed. Send it as "Authorization: Bearer KEY". There is no authorization ' +
              'server to get a token from.'
      )
    const { token, scheme, digest } = credential
    const verified =
      verifier.remembered(tenant, digest) ?? (await verifier.verify(tenant, place, token, digest, presented.address))
    const { principal, boundTo } = verified
    if (boundTo !== undefined || scheme === 'DPoP' || tenant.auth.dpop === 'required') {
      const bound = boundCredential(verified, scheme, tenant)
      const { rawHeaders, method, replyHeaders } = presented
      if (bound !== undefined && method !== undefined) {
        const nonce = await proofs.check(rawHeaders, bound, { tenant, method, url: place.url, token })
        if (nonce !== undefined && replyHeaders !== undefined) replyHeaders[nonceHeader] = nonce
      }
    }
    return principal
  }

  /** @returns the error to throw: with the challenge of the endpoint if a credential was refused */
  function challenged(error: unknown, { id, auth }: Tenant, place: ProtectedResource, scheme: Scheme): unknown {
    const refusal = error instanceof GatewayError ? refusalOf(error) : undefined
    if (!(error instanceof GatewayError) || refusal === undefined) return error
    const { reason, detail } = refusal
    log.debug({ tenant: id, reason, detail }, 'authentication refused')
    const { code, message, data } = error
    const name =
      code === 'invalid_request' ? code : reason in challengeErrors ? challengeErrors[reason] : 'invalid_token'
    const metadata = hasIssuer(auth) ? place.metadata : undefined
    const asked = askedFor(auth, place.requiredScopes)
    return new GatewayError(code, message, {
      cause: refusal,
      data,
      headers: {
        ...error.headers,
        'WWW-Authenticate': challenge(metadata, asked, name, message, schemeFor(reason, scheme, auth))
      }
    })
  }

  return {
    /**
     * Returns the caller of a credential that was verified before and is bound to no key.
     * @returns undefined if `authenticate` has to verify or refuse the credential. Never throws
     */
    known(tenant: Tenant, place: ProtectedResource, presented: PresentedRequest): Principal | undefined {
      const { auth } = tenant
      if (auth.stopped !== undefined || auth.dpop === 'required' || auth.mode === 'none') return undefined
      const credential = credentialIn(place, presented)
      if (credential === undefined || credential.scheme === 'DPoP') return undefined
      const verified = verifier.remembered(tenant, credential.digest)
      if (verified === undefined || verified.boundTo !== undefined) return undefined
      const { principal } = verified
      const { requiredScopes: scopes = auth.requiredScopes } = place
      return scopes.every((scope) => principal.scopes.has(scope)) ? principal : undefined
    },

    /**
     * @throws GatewayError `unauthenticated`, `insufficient_scope` or `invalid_request`, each with WWW-Authenticate in
     * its headers; `unavailable` with Retry-After where an issuer or the store cannot be asked; `rate_limited`;
     * `stopped` for a tenant, CallerStopped for a caller
     */
    async authenticate(tenant: Tenant, place: ProtectedResource, presented: PresentedRequest): Promise<Principal> {
      if (tenant.auth.stopped === 'everybody')
        throw new GatewayError(
          'stopped',
          `An administrator of this gateway has stopped the tenant ${tenant.id}. Ask them when it comes back.`
        )
      if (tenant.auth.mode === 'none') return notStopped(anonymousOf(tenant), tenant)
      const principal = await identify(tenant, place, presented).catch((error: unknown) => {
        throw challenged(error, tenant, place, schemeOf(presented.rawHeaders))
      })
      notStopped(principal, tenant)
      const { requiredScopes: scopes = tenant.auth.requiredScopes } = place
      if (scopes.every((scope) => principal.scopes.has(scope))) return principal
      const { issuer } = principal
      const subject = nameOf(tenant.id, principal.subject)
      log.debug({ tenant: tenant.id, issuer, subject, reason: 'scope' }, 'authentication refused')
      const isToken = principal.kind === 'token'
      const description =
        `The ${isToken ? 'token' : 'API key'} needs all of these scopes: ${scopes.join(' ')}. ` +
        adviceOnScopes(principal)
      const metadata = isToken ? place.metadata : undefined
      const asked = askedFor(tenant.auth, scopes)
      const scheme = schemeOf(presented.rawHeaders)
      throw new GatewayError('insufficient_scope', description, {
        cause: { reason: 'scope', detail: `${subject} of ${issuer}`.slice(0, 200) } satisfies Refusal,
        headers: { 'WWW-Authenticate': challenge(metadata, asked, 'insufficient_scope', description, scheme) }
      })
    },

    /** Forgets the tokens of tenants whose configuration has changed; keys of issuers that are still trusted stay. */
    reload: verifier.reload,
    uses: verifier.uses,
    close: verifier.close
  }
}

const audienceOf = ({ aliases, resource }: ProtectedResource): string =>
  aliases.length === 0 ? resource : [resource, ...aliases].join('\n')

/** A caller whom a kill switch stops, although the credential is valid. */
export class CallerStopped extends GatewayError {
  readonly principal: Principal

  constructor(principal: Principal) {
    const what = principal.kind === 'key' ? 'API key' : 'caller'
    super('stopped', `An administrator of this gateway has stopped this ${what}. Ask them when it may come back.`)
    this.principal = principal
  }
}

/** @throws CallerStopped */
function notStopped(principal: Principal, { auth }: Tenant): Principal {
  if (isStopped(principal, auth)) throw new CallerStopped(principal)
  return principal
}
