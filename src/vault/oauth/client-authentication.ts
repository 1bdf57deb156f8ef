// Client authentication of the gateway at authorization servers (RFC 6749 section 2.3, RFC 7523).

import { createPrivateKey } from 'node:crypto'
import * as oauth from 'oauth4webapi'

export interface ClientSecrets {
  readonly clientSecret?: string | undefined
  /** PEM, PKCS #8. */
  readonly privateKey?: string | undefined
  readonly algorithm?: keyof typeof importParameters
  readonly keyId?: string | undefined
}

const importParameters = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256' },
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
  EdDSA: { name: 'Ed25519' }
} as const

/**
 * Returns the `error` code of a token endpoint's refusal (RFC 6749 section 5.2), cut to a few characters.
 * @returns undefined if the error is no such refusal
 */
export function oauthRefusalOf(error: unknown): string | undefined {
  if (error instanceof oauth.ResponseBodyError) return error.error.slice(0, 100)
  // A client that authenticates by the Authorization header is refused with a challenge.
  return error instanceof oauth.WWWAuthenticateChallengeError && error.status === 401 ? 'invalid_client' : undefined
}

/** Whether the server refused the client itself: then it gives tokens to no person. */
export const isOfClient = (error: unknown): boolean =>
  ['invalid_client', 'unauthorized_client'].includes(oauthRefusalOf(error) ?? '')

/** @param method the one that the client is registered with; undefined: one that the server supports */
export async function authenticationOf(
  { clientSecret, privateKey, algorithm = 'ES256', keyId }: ClientSecrets,
  { token_endpoint_auth_methods_supported: methods }: oauth.AuthorizationServer,
  method?: string
): Promise<oauth.ClientAuth> {
  if (privateKey !== undefined) {
    const der = createPrivateKey(privateKey).export({ type: 'pkcs8', format: 'der' })
    const key = await crypto.subtle.importKey('pkcs8', new Uint8Array(der), importParameters[algorithm], false, [
      'sign'
    ])
    return oauth.PrivateKeyJwt(keyId === undefined ? key : { key, kid: keyId })
  }
  if (clientSecret === undefined) return oauth.None()
  // RFC 8414 section 2: `client_secret_basic` where the server does not say.
  const isBasic = method === undefined ? (methods?.includes('client_secret_basic') ?? true) : method.endsWith('_basic')
  return isBasic ? secretBasic(clientSecret) : oauth.ClientSecretPost(clientSecret)
}

/** Authenticates by HTTP Basic, without encoding `-` and `_` as the library does: many servers decode nothing. */
const secretBasic =
  (secret: string): oauth.ClientAuth =>
  (_server, { client_id: id }, _body, headers) =>
    headers.set('authorization', `Basic ${btoa(`${formEncoded(id)}:${formEncoded(secret)}`)}`)

/** RFC 6749 appendix B. */
const formEncoded = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1)
