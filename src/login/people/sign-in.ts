// Signing people in at the tenant's own OpenID provider, as a confidential client: authorization code with PKCE, state
// and nonce (OpenID Connect Core 1.0 section 3.1, RFC 9700); and asking it again who they are, at each refresh.

import * as oauth from 'oauth4webapi'
import { claimAt } from '../../auth/claims.ts'
import { providerUrl } from '../../auth/provider-metadata.ts'
import type { Fetch } from '../../egress/fetch.ts'
import type { LoginConfig } from '../../config/auth/login-config.ts'
import { maxLoggedChars } from '../../observe/calls.ts'
import type { JsonObject } from '../../protocol/messages.ts'
import { firstOf } from '../../protocol/own-text.ts'
import type { Clock } from '../../time/clock.ts'
import { identityOf, SignInRefused, type Identity } from './identity.ts'
import { rememberedMetadata } from './remembered-metadata.ts'

/** The longest reason of a failure, which may name two URLs, in characters. */
const maxReasonChars = 500

/** The state of a sign-in between the redirect to the provider and the way back. */
export interface PendingSignIn {
  readonly uid: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** The provider, and the URLs to which it sends browsers back. */
interface SignInConfig extends Pick<LoginConfig, 'provider'> {
  readonly redirectUri: string
  /** The URL after signing out there. */
  readonly signedOutUri: string
}

export function createSignIn(config: SignInConfig, fetch: Fetch, clock: Pick<Clock, 'now'>) {
  const { provider, redirectUri, signedOutUri } = config
  const client: oauth.Client = { client_id: provider.clientId }
  // Whether the provider may be plain http was decided when the configuration was compiled.
  const options = { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true } as const
  const metadata = rememberedMetadata(provider, fetch, clock)

  const authentication = ({ token_endpoint_auth_methods_supported: methods }: oauth.AuthorizationServer) =>
    methods === undefined || methods.includes('client_secret_basic')
      ? oauth.ClientSecretBasic(provider.clientSecret)
      : oauth.ClientSecretPost(provider.clientSecret)

  return {
    /**
     * Where a browser signs out at the provider, and comes back from.
     * @param identity who does; undefined: whoever it is
     * @returns undefined where it cannot, or shall not
     */
    async signOutUrl(identity: Identity | undefined): Promise<string | undefined> {
      if (!provider.signOut) return undefined
      const endpoint = await metadata()
        .then((server) => providerUrl(provider, server, 'end_session_endpoint'))
        // Signed out here they are in any case.
        .catch(() => undefined)
      if (endpoint === undefined) return undefined
      const url = new URL(endpoint)
      url.searchParams.set('client_id', provider.clientId)
      url.searchParams.set('post_logout_redirect_uri', signedOutUri)
      if (identity?.idToken !== undefined) url.searchParams.set('id_token_hint', identity.idToken)
      return url.href
    },

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
      const asked = prompt === 'login' ? (provider.promptForLogin ?? prompt) : prompt
      const prompts = [provider.parameters?.['prompt'] ?? [], asked ?? []].flat()
      const parameters = {
        client_id: provider.clientId,
        response_type: 'code',
        redirect_uri: redirectUri,
        scope: provider.scopes.join(' '),
        state: pending.state,
        nonce: pending.nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(pending.verifier),
        code_challenge_method: 'S256',
        ...provider.parameters,
        ...(prompts.length > 0 && { prompt: prompts.join(' ') })
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
        const { sub } = claims
        const all = await withUserinfo(config, options, server, sub, claims, result.access_token)
        // The subject is signed.
        const signed = { ...all, [provider.subjectClaim]: claims[provider.subjectClaim] }
        const now = clock.now()
        const { refresh_token: refreshToken, id_token: idToken } = result
        const about = { sub, refreshToken, idToken, signedInAt: now, askedAt: now }
        return identityOf(provider, signed, about)
      } catch (error) {
        throw refusalOf(error)
      }
    },

    /**
     * Asks who a person is now.
     * @throws SignInRefused where the provider does not know the person any more, wants to see them, or says what
     *   cannot be used; Error where it cannot be asked
     */
    async again(identity: Identity & { readonly refreshToken: string }): Promise<Identity> {
      const { refreshToken, signedInAt, subject } = identity
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
        const claims: JsonObject = oauth.getValidatedIdTokenClaims(result) ?? {}
        const sub = typeof claims['sub'] === 'string' ? claims['sub'] : identity.sub
        const named = { [provider.subjectClaim]: subject, ...claims }
        if (named[provider.subjectClaim] !== subject || (identity.sub !== undefined && sub !== identity.sub))
          throw new SignInRefused('invalid_grant', 'the provider answered with the name of somebody else')
        const { refresh_token: nextToken = refreshToken, id_token: idToken = identity.idToken } = result
        const about = { sub, refreshToken: nextToken, idToken, signedInAt, askedAt: clock.now() }
        const all =
          sub === undefined ? named : await withUserinfo(config, options, server, sub, named, result.access_token)
        const isSilent = Object.keys(all).length === 1
        if (isSilent && Object.keys(provider.requiredClaims ?? {}).length > 0)
          throw new SignInRefused('access_denied', 'the provider says nothing of requiredClaims at a refresh')
        return isSilent ? { ...identity, ...about } : identityOf(provider, all, about)
      } catch (error) {
        const isOfPerson = error instanceof oauth.ResponseBodyError && refusalsOfPerson.has(error.error)
        // Userinfo does not take a token that is new: it knows the person no more (RFC 6750 section 3.1).
        const isUnknown = error instanceof oauth.WWWAuthenticateChallengeError && isInvalidToken(error)
        throw isOfPerson || isUnknown ? new SignInRefused('invalid_grant', saidByProvider(error)) : error
      }
    }
  }
}

/**
 * What a provider answers where only the person can help, who has to come again: RFC 6749 section 5.2, OpenID Connect
 * Core 1.0 section 3.1.2.6 (Entra answers them to refreshes, where a policy asks for a second factor), Auth0's
 * `mfa_required`. `invalid_client` and the like are faults of the configuration.
 */
const refusalsOfPerson = new Set([
  'invalid_grant',
  'access_denied',
  'interaction_required',
  'login_required',
  'consent_required',
  'account_selection_required',
  'mfa_required'
])

/**
 * What else the provider says of a person (OpenID Connect Core 1.0 section 5.3): many put groups and roles there
 * only, or send no ID token at a refresh.
 * @param claims of the ID token, which win
 * @throws Error where it cannot be asked, or answers of somebody else
 */
async function withUserinfo(
  { provider }: SignInConfig,
  options: oauth.UserInfoRequestOptions,
  server: oauth.AuthorizationServer,
  sub: string,
  claims: JsonObject,
  accessToken: string
): Promise<JsonObject> {
  const client = { client_id: provider.clientId }
  const { groupsClaim, rolesClaim, requiredClaims = {} } = provider
  const wanted = [groupsClaim, rolesClaim, ...Object.keys(requiredClaims)].filter((path) => path !== '')
  const lacking = wanted.filter((path) => claimAt(claims, path) === undefined)
  if (!provider.userinfo || lacking.length === 0 || providerUrl(provider, server, 'userinfo_endpoint') === undefined)
    return claims
  const response = await oauth.userInfoRequest(server, client, accessToken, options)
  const said: JsonObject = await oauth.processUserInfoResponse(server, client, sub, response)
  // An object of the ID token may hold other members than the one there.
  const found = lacking.map((path) => [path, claimAt(said, path)] as const).filter(([, value]) => value !== undefined)
  return { ...said, ...claims, ...Object.fromEntries(found) }
}

const isInvalidToken = ({ status, cause }: oauth.WWWAuthenticateChallengeError): boolean =>
  status === 401 && cause.some(({ parameters }) => parameters.error === 'invalid_token')

function refusalOf(error: unknown): unknown {
  if (error instanceof oauth.AuthorizationResponseError) return new SignInRefused(error.error, saidByProvider(error))
  return error
}

/** Describes a failure at the provider for the log, in the words of the provider where it gave any. */
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
