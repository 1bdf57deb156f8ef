// Refreshes the tokens of accounts (RFC 6749 section 6) and revokes them (RFC 7009).

import * as oauth from 'oauth4webapi'
import type { Fetch, FetchFor } from '../../egress/fetch.ts'
import type { AccountRevocation } from '../../config/auth/account-providers.ts'
import type { UserAuth } from '../../config/auth/upstream-auth.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { isObject } from '../../protocol/messages.ts'
import { accountFetch, providerOf } from './account-source.ts'
import { authenticationOf } from './client-authentication.ts'
import type { Account } from '../grant.ts'
import type { ListedGrant } from '../stored/grant-index.ts'
import { tokensFrom } from './tokens.ts'

const serverOf = ({ issuer, tokenEndpoint, revocationEndpoint, authMethods }: Account): oauth.AuthorizationServer => ({
  issuer,
  token_endpoint: tokenEndpoint,
  ...(revocationEndpoint !== undefined && { revocation_endpoint: revocationEndpoint }),
  ...(authMethods && { token_endpoint_auth_methods_supported: [...authMethods] })
})

/**
 * Returns the client secret of the configuration. It is only for the configured client at its issuer: after a change of
 * the configuration it is not sent to the server of an older account.
 */
function configuredSecret(own: Account, auth: UserAuth | undefined): string | undefined {
  if (auth === undefined) return undefined
  const isItsClient = own.clientId === auth.clientId
  const isItsServer = own.issuer === (auth.issuer ?? own.issuer)
  const isItsEndpoint = own.tokenEndpoint === (auth.tokenUrl ?? own.tokenEndpoint)
  return isItsClient && isItsServer && isItsEndpoint ? auth.clientSecret : undefined
}

function clientOf(
  own: Account,
  auth: UserAuth | undefined
): [server: oauth.AuthorizationServer, client: oauth.Client, auth: Promise<oauth.ClientAuth>] {
  const server = serverOf(own)
  const secrets = { clientSecret: own.clientSecret ?? configuredSecret(own, auth) }
  return [server, { client_id: own.clientId }, authenticationOf(secrets, server, own.clientMethod)]
}

/**
 * @returns the account with new tokens; undefined if the server has refused the refresh token for good
 * @throws Error if the server does not answer, or the response is invalid
 */
export async function renewedAccount(
  own: Account,
  auth: UserAuth,
  fetch: Fetch,
  wall: { now(): number }
): Promise<Account | undefined> {
  const { refreshToken } = own.tokens
  if (refreshToken === undefined) return undefined
  const [server, client, authentication] = clientOf(own, auth)
  try {
    const response = await oauth.refreshTokenGrantRequest(server, client, await authentication, refreshToken, {
      [oauth.customFetch]: fetch,
      [oauth.allowInsecureRequests]: true,
      ...(own.resource !== undefined && { additionalParameters: { resource: own.resource } })
    })
    const answer = await oauth.processRefreshTokenResponse(server, client, response)
    const now = wall.now()
    const tokens = tokensFrom(answer, now)
    return {
      ...own,
      tokens: { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken },
      since: now,
      renewedAt: now
    }
  } catch (error) {
    // RFC 6749 section 5.2: the refresh token was used, revoked or has expired. The person has to connect again.
    if (error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant') return undefined
    throw error
  }
}

/**
 * Revokes the tokens of an account, if its server supports that.
 * @param auth undefined if the upstream is no longer configured
 * @throws Error if the server does not answer, or the response is invalid
 */
export async function revokeAccount(own: Account, auth: UserAuth | undefined, fetch: Fetch): Promise<void> {
  if (own.revocationEndpoint === undefined) return
  const otherwise = auth && providerOf(auth)?.revocation
  if (otherwise !== undefined) return await revokedOtherwise(own, otherwise, configuredSecret(own, auth), fetch)
  const [server, client, authentication] = clientOf(own, auth)
  const token = own.tokens.refreshToken ?? own.tokens.accessToken
  const options = { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true }
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(server, client, await authentication, token, options)
  )
}

/** Revokes in the provider's own way. @throws Error if the provider does not confirm it */
async function revokedOtherwise(
  { clientId, tokens: { accessToken }, revocationEndpoint = '' }: Account,
  { method, authorization, tokenIn, headers }: AccountRevocation,
  clientSecret: string | undefined,
  fetch: Fetch
): Promise<void> {
  if (authorization === 'client' && clientSecret === undefined)
    throw new Error('its client is another one now: give it back at the provider')
  const url = revocationEndpoint.replace('{client_id}', encodeURIComponent(clientId))
  const response = await fetch(url, {
    method,
    headers: {
      accept: 'application/json',
      // GitHub refuses requests without User-Agent.
      'user-agent': 'gatehouse',
      authorization:
        authorization === 'token' ? `Bearer ${accessToken}` : `Basic ${btoa(`${clientId}:${clientSecret}`)}`,
      ...(tokenIn !== undefined && { 'content-type': 'application/json' }),
      ...headers
    },
    body: tokenIn === undefined ? undefined : JSON.stringify({ [tokenIn]: accessToken })
  })
  const said: unknown = await response.json().catch(() => undefined)
  // Slack refuses with status 200 and `ok: false`.
  if (!response.ok || (isObject(said) && said['ok'] === false))
    throw new Error(`${new URL(url).host} answered ${response.status}`)
}

export const createGiveBack =
  (fetch: FetchFor, log: Log) =>
  /**
   * Revokes the tokens at their provider. Never rejects.
   * @param definition undefined if it is no longer configured: then no configured URL is known
   */
  async (
    definition: UpstreamDefinition | undefined,
    { person: { tenant }, upstream }: ListedGrant,
    account: Account
  ): Promise<void> => {
    const isHttp = definition?.type === 'http'
    const auth = definition?.auth?.type === 'user' ? definition.auth : undefined
    const own = isHttp && auth !== undefined ? accountFetch(fetch, definition, auth) : fetch(tenant, [])
    await revokeAccount(account, auth, own).catch((err: unknown) => {
      log.warn({ err, upstream, tenant }, 'an account could not be given back')
    })
  }
