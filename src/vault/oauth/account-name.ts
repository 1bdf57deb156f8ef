// The name of an account at its provider, for the person's page: from the ID token, or from an endpoint of the provider
// that is asked with the new token. It is only shown, never used for authorization, and may be missing.

import * as oauth from 'oauth4webapi'
import type { Fetch } from '../../egress/fetch.ts'
import type { AccountNameSource } from '../../config/auth/account-providers.ts'
import type { UserAuth } from '../../config/auth/upstream-auth.ts'
import { isObject } from '../../protocol/messages.ts'
import { firstOf } from '../../protocol/own-text.ts'
import { providerOf } from './account-source.ts'

/** The longest name of an account, in characters: that of an e-mail address. */
const maxName = 254
/** Members of OpenID Connect (Core 1.0 section 5.1), and what many others call it. */
const usualNames = ['email', 'preferred_username', 'name', 'login']

interface NameOptions {
  readonly auth: UserAuth
  readonly server: oauth.AuthorizationServer
  readonly answer: oauth.TokenEndpointResponse
  /** The scopes that the token has. */
  readonly scopes: readonly string[]
  readonly fetch: Fetch
}

/**
 * @returns undefined where the provider does not say it
 * @throws Error where it does not answer as it should
 */
export async function accountNameOf({ auth, server, answer, scopes, fetch }: NameOptions): Promise<string | undefined> {
  const claimed = nameIn(oauth.getValidatedIdTokenClaims(answer), usualNames)
  if (claimed !== undefined) return claimed
  const source = sourceOf(auth, server, scopes)
  if (source === undefined) return undefined
  const { url, names = usualNames, headers, body } = source
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      accept: 'application/json',
      // GitHub refuses requests without User-Agent.
      'user-agent': 'gatehouse',
      authorization: `Bearer ${answer.access_token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers
    },
    body
  })
  if (response.status !== 200) throw new Error(`${new URL(url).host} answered ${response.status}`)
  return nameIn(await response.json(), names)
}

/** Selects where the name is read: the token is sent only to its own provider or to a URL of the configuration. */
function sourceOf(
  auth: UserAuth,
  { userinfo_endpoint: userinfo }: oauth.AuthorizationServer,
  scopes: readonly string[]
): AccountNameSource | undefined {
  const known: AccountNameSource | undefined = providerOf(auth)?.account
  if (auth.accountUrl !== undefined) return { ...known, url: auth.accountUrl }
  // The known URL is for the provider itself, not for a server that is configured in its place.
  if (auth.tokenUrl === undefined && known !== undefined) return known
  return userinfo !== undefined && scopes.includes('openid') ? { url: userinfo } : undefined
}

/** @param paths of members, with dots between them; the first that is there counts */
function nameIn(said: unknown, paths: readonly string[]): string | undefined {
  for (const path of paths) {
    const found = path
      .split('.')
      .reduce<unknown>(
        (value, member) => (isObject(value) && Object.hasOwn(value, member) ? value[member] : undefined),
        said
      )
    // Invisible and direction characters let one name pass for another.
    const text =
      typeof found === 'string' ? firstOf(found, maxName).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '') : ''
    if (text.trim() !== '') return text.trim()
  }
  return undefined
}
