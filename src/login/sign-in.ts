// Signing people in at the tenant's own OpenID provider, as a confidential client: authorization code with PKCE, state
// and nonce (OpenID Connect Core 1.0 section 3.1, RFC 9700); and asking it again who they are, at each refresh.

import * as oauth from 'oauth4webapi'
import { discoverProvider, type Fetch } from '../auth/fetch.ts'
import type { LoginConfig } from '../config/auth/login-config.ts'
import { maxLoggedChars } from '../observe/calls.ts'
import { isObject } from '../protocol/messages.ts'
import { firstOf } from '../protocol/own-text.ts'
import type { Clock } from '../time/clock.ts'

/** Of what went wrong, which may name two URLs; in characters. */
const maxReasonChars = 500
const metadataMs = 10 * 60_000

/** What is kept between the redirect to the provider and the way back. */
export interface PendingSignIn {
  readonly uid: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** Who somebody is, as the provider said it last. */
export interface Identity {
  readonly subject: string
  readonly name: string
  readonly groups: readonly string[]
  readonly roles: readonly string[]
  readonly refreshToken?: string | undefined
  /** When the person signed in, and when the provider was asked last: epoch ms. */
  readonly signedInAt: number
  readonly askedAt: number
}

/** The provider says no: the person is not let in, and is told why. */
export class SignInRefused extends Error {
  readonly error: string

  constructor(error: string, message: string) {
    super(message)
    this.error = error
  }
}

export function createSignIn({ issuer, provider }: LoginConfig, fetch: Fetch, clock: Pick<Clock, 'now'>) {
  const client: oauth.Client = { client_id: provider.clientId }
  const redirectUri = `${issuer}/callback`
  // Whether the provider may be plain http was decided when the configuration was compiled.
  const options = { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true } as const
  let known: { readonly server: oauth.AuthorizationServer; readonly at: number } | undefined

  async function metadata(): Promise<oauth.AuthorizationServer> {
    const now = clock.now()
    if (known !== undefined && now >= known.at && now < known.at + metadataMs) return known.server
    const server = await discoverProvider(provider, fetch)
    known = { server, at: now }
    return server
  }

  const authentication = ({ token_endpoint_auth_methods_supported: methods }: oauth.AuthorizationServer) =>
    methods === undefined || methods.includes('client_secret_basic')
      ? oauth.ClientSecretBasic(provider.clientSecret)
      : oauth.ClientSecretPost(provider.clientSecret)

  function identityOf(claims: oauth.IDToken, refreshToken: string | undefined, signedInAt: number): Identity {
    const subject = claims[provider.subjectClaim]
    if (typeof subject !== 'string' || subject === '' || subject.length > 255)
      throw new SignInRefused('server_error', `Its ID token has no usable claim ${provider.subjectClaim}.`)
    const name = [claims['email'], claims['preferred_username'], claims['name'], subject].find(
      (each) => typeof each === 'string' && each !== ''
    ) as string
    const [groups, roles] = [provider.groupsClaim, provider.rolesClaim].map((claim) => namesIn(claims, claim))
    // Not cut: a policy that denies a group would let its members in.
    if (groups === undefined || roles === undefined)
      throw new SignInRefused(
        'server_error',
        'Its ID token says only where the groups or roles are to be had (_claim_names), as of people who have many. ' +
          'Have it send only those that policies name.'
      )
    if (JSON.stringify([groups, roles]).length > maxTextChars)
      throw new SignInRefused(
        'server_error',
        `It names ${groups.length} groups and ${roles.length} roles, which are more than a token can hold. Have it ` +
          'send only those that policies name.'
      )
    return {
      subject,
      name: name.slice(0, 200),
      groups,
      roles,
      refreshToken,
      signedInAt,
      askedAt: clock.now()
    }
  }

  return {
    /** @returns what to keep, and where to send the browser */
    async begin(uid: string, prompt: string | undefined): Promise<{ pending: PendingSignIn; url: string }> {
      const { authorization_endpoint: endpoint } = await metadata()
      if (endpoint === undefined) throw new Error(`${provider.issuer} has no authorization endpoint`)
      const pending = {
        uid,
        state: oauth.generateRandomState(),
        nonce: oauth.generateRandomNonce(),
        verifier: oauth.generateRandomCodeVerifier()
      }
      const url = new URL(endpoint)
      const parameters = {
        client_id: provider.clientId,
        response_type: 'code',
        redirect_uri: redirectUri,
        scope: provider.scopes.join(' '),
        state: pending.state,
        nonce: pending.nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(pending.verifier),
        code_challenge_method: 'S256',
        ...(prompt !== undefined && { prompt })
      }
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
      return { pending, url: url.href }
    },

    /**
     * @param query of the URL to which the provider sent the browser back
     * @throws SignInRefused where the provider says no; Error where it cannot be asked, or answers wrongly
     */
    async finish(query: URLSearchParams, { state, nonce, verifier }: PendingSignIn): Promise<Identity> {
      const server = await metadata()
      try {
        const parameters = oauth.validateAuthResponse(server, client, query, state)
        const response = await oauth.authorizationCodeGrantRequest(
          server,
          client,
          authentication(server),
          parameters,
          redirectUri,
          verifier,
          options
        )
        const result = await oauth.processAuthorizationCodeResponse(server, client, response, {
          expectedNonce: nonce,
          requireIdToken: true
        })
        const claims = oauth.getValidatedIdTokenClaims(result)
        if (claims === undefined) throw new Error('the provider sent no ID token')
        return identityOf(claims, result.refresh_token, clock.now())
      } catch (error) {
        throw refusalOf(error)
      }
    },

    /**
     * Asks who a person is now.
     * @returns undefined where the provider does not know the person any more
     * @throws Error where it cannot be asked
     */
    async again(identity: Identity): Promise<Identity | undefined> {
      const { refreshToken, signedInAt } = identity
      if (refreshToken === undefined) return undefined
      const server = await metadata()
      try {
        const response = await oauth.refreshTokenGrantRequest(
          server,
          client,
          authentication(server),
          refreshToken,
          options
        )
        const result = await oauth.processRefreshTokenResponse(server, client, response)
        const claims = oauth.getValidatedIdTokenClaims(result)
        const nextToken = result.refresh_token ?? refreshToken
        if (claims === undefined) return { ...identity, refreshToken: nextToken, askedAt: clock.now() }
        const next = identityOf(claims, nextToken, signedInAt)
        return next.subject === identity.subject ? next : undefined
      } catch (error) {
        // RFC 6749 section 5.2; `invalid_client` and the like are faults of the configuration, not of the person.
        if (error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant') return undefined
        throw error
      }
    }
  }
}

function refusalOf(error: unknown): unknown {
  if (error instanceof oauth.AuthorizationResponseError) return new SignInRefused(error.error, saidByProvider(error))
  return error
}

/** What went wrong at the provider, for the log: what it said itself, where it did. */
export function saidByProvider(error: unknown): string {
  // A wrong client secret is refused with a challenge (RFC 6749 section 5.2).
  const { error: code, error_description: description }: { error?: string; error_description?: string } =
    error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError
      ? error
      : error instanceof oauth.WWWAuthenticateChallengeError
        ? (error.cause[0]?.parameters ?? {})
        : {}
  if (code === undefined) return error instanceof Error ? firstOf(error.message, maxReasonChars) : 'unknown'
  return firstOf(`the provider answered ${code}${description === undefined ? '' : ` (${description})`}`, maxLoggedChars)
}

/** Groups and roles of a person, as JSON: with all else that a token says, it is not longer than we accept. */
const maxTextChars = 4_000

/**
 * Groups or roles: an array, or one text, which may hold spaces and is one name.
 * @returns undefined where they are elsewhere (OpenID Connect Core 1.0 section 5.6.2; Entra, for more than 200 groups)
 */
function namesIn(claims: oauth.IDToken, claim: string): string[] | undefined {
  const [value, elsewhere] = [claims[claim], claims['_claim_names']]
  if (value === undefined && isObject(elsewhere) && Object.hasOwn(elsewhere, claim)) return undefined
  return [value].flat().filter((each): each is string => typeof each === 'string')
}
