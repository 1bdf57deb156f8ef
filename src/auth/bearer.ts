// Access tokens (RFC 6750, RFC 9449): read from the Authorization header or refused, with a challenge; and the metadata
// that tells a host where to get one (RFC 9728). No message or log line ever holds the credential.

import type { AuthConfig } from '../config/auth/auth-config.ts'
import { GatewayError } from '../protocol/messages.ts'
import { digestOf } from './token-cache.ts'

/** The algorithms of proofs (RFC 9449 section 5.1): asymmetric ones. */
export const proofAlgorithms: readonly string[] = ['ES256', 'ES384', 'Ed25519', 'EdDSA', 'PS256', 'RS256']

/** Bytes. Longer tokens are refused before any of them is decoded. */
export const maxTokenBytes = 8192

// RFC 6750 section 2.1: b64token. The scheme is case-insensitive (RFC 9110 section 11.1); only spaces stand between the
// two.
const credentials = /^(?:bearer|dpop) +([\w\-.~+/]+=*)$/i
const scheme = /^(?:bearer|dpop)(?:[ \t]|$)/i

/** DPoP: the token is bound to a key, and a proof comes with it (RFC 9449 section 7.1). */
export type Scheme = 'Bearer' | 'DPoP'

/**
 * Query, body and cookies are never read (RFC 6750 section 5.3).
 * @param rawHeaders of node's IncomingMessage: name, value, name, value. In `headers` node drops a second Authorization
 * silently.
 * @returns undefined where there is no Authorization header
 * @throws GatewayError `invalid_request` for two headers, `unauthenticated` for anything that is not one token
 */
function readCredential(
  rawHeaders: readonly string[]
): { readonly scheme: Scheme; readonly token: string } | undefined {
  let value: string | undefined
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length !== 13 || name.toLowerCase() !== 'authorization') continue
    // RFC 6750 section 3.1.
    if (value !== undefined)
      throw new GatewayError('invalid_request', 'The request carries two Authorization headers. Send one.', {
        cause: { reason: 'duplicate' } satisfies Refusal
      })
    value = rawHeaders[index + 1] ?? ''
  }
  if (value === undefined) return undefined
  if (!scheme.test(value))
    throw refused(
      'scheme',
      'The Authorization header is not "Bearer" followed by a token. Other schemes are not used here.'
    )
  const token = credentials.exec(value)?.[1]
  if (value.length > maxTokenBytes + 64 || (token !== undefined && token.length > maxTokenBytes))
    throw refused('size', `The token is longer than ${maxTokenBytes} bytes. Ask the issuer for one with fewer claims.`)
  if (token === undefined)
    throw refused('syntax', 'The Authorization header must be "Bearer", one space and one token, and nothing else.')
  return { scheme: value.startsWith('B') || value.startsWith('b') ? 'Bearer' : 'DPoP', token }
}

export interface RememberedCredential {
  readonly rawHeaders: readonly string[]
  readonly audience: string
  readonly scheme: Scheme
  readonly token: string
  readonly digest: string
}

/**
 * Caches the last token of each connection: reading and hashing it costs more than all other checks of a known token.
 * @returns as `readCredential`, with the digest of the token for this audience
 */
export function createCredentialReader() {
  const lastOf = new WeakMap<object, RememberedCredential>()
  return (
    rawHeaders: readonly string[],
    audience: string,
    connection: object | undefined
  ): RememberedCredential | undefined => {
    const last = connection && lastOf.get(connection)
    const isSame = last?.audience === audience
    if (isSame && last.rawHeaders === rawHeaders) return last
    const read = readCredential(rawHeaders)
    if (read === undefined) return undefined
    const digest = isSame && last.token === read.token ? last.digest : digestOf(audience, read.token)
    const credential = { rawHeaders, audience, digest, ...read }
    if (connection !== undefined) lastOf.set(connection, credential)
    return credential
  }
}

/** Reads the token where only the scheme `Bearer` is accepted: at the admin API. */
export function readBearer(rawHeaders: readonly string[]): string | undefined {
  const credential = readCredential(rawHeaders)
  if (credential?.scheme === 'DPoP') throw refused('scheme', 'Send the key as "Authorization: Bearer KEY".')
  return credential?.token
}

/** Why a credential was refused. */
export interface Refusal {
  /** The check that it did not pass. */
  readonly reason: string
  /** A detail for the log alone: a cause, or one short claim of the token, such as the unknown issuer. */
  readonly detail?: string | undefined
}

/**
 * @param reason goes to the caller as `data.refusal`: doctors decide by it, and not by the words of the message
 * @param message goes to the caller
 * @returns the error to throw, still without the challenge (WWW-Authenticate), which `authenticate` adds
 */
export function refused(
  reason: string,
  message: string,
  detail?: string,
  headers: GatewayError['headers'] = {}
): GatewayError {
  return new GatewayError('unauthenticated', message, {
    data: { refusal: reason },
    cause: { reason, detail: detail?.slice(0, 200) } satisfies Refusal,
    headers
  })
}

export function refusalOf(error: GatewayError): Refusal | undefined {
  const { cause } = error
  return typeof cause === 'object' && cause !== null && 'reason' in cause ? (cause as Refusal) : undefined
}

/** Whether the tenant has an issuer. A tenant with API keys only has no authorization server to advertise. */
export const hasIssuer = ({ issuers }: Pick<AuthConfig, 'issuers'>): boolean => issuers.length > 0

/** RFC 6750 section 3.1, RFC 9449 sections 7.1 and 9. */
export type ChallengeError =
  | 'invalid_request'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce'

/**
 * @param metadataUrl undefined if there is no metadata, because the tenant has no authorization server
 * @param scopes all that the operation needs, not only what is missing: a client replaces its scopes by these
 * @param error left out where no bearer token was presented (RFC 6750 section 3.1)
 * @returns the value of WWW-Authenticate (RFC 6750 section 3, RFC 9728 section 5.1)
 */
export function challenge(
  metadataUrl: string | undefined,
  scopes: readonly string[],
  error?: ChallengeError,
  description = '',
  scheme: Scheme = 'Bearer'
): string {
  // RFC 6750 section 3: at least one parameter follows the scheme.
  const parameters = [metadataUrl === undefined ? 'realm="API key"' : `resource_metadata="${quotable(metadataUrl)}"`]
  if (error !== undefined) parameters.unshift(`error="${error}"`, `error_description="${quotable(description)}"`)
  const named = advertisedScopes(scopes)
  if (named.length > 0) parameters.push(`scope="${named.join(' ')}"`)
  // RFC 9449 section 7.1.
  if (scheme === 'DPoP') parameters.push(`algs="${proofAlgorithms.join(' ')}"`)
  return `${scheme} ${parameters.join(', ')}`
}

// RFC 6750 section 3: characters of error_description. Anything else could end the quoted string or the header.
const quotable = (text: string): string => text.replaceAll('"', "'").replace(/[^\x20\x21\x23-\x5B\x5D-\x7E]/g, '?')

/** RFC 6749 section 3.3 scope-token. */
export const scopeToken = /^[\x21\x23-\x5B\x5D-\x7E]+$/

// 2026-07-28 basic/authorization: not `offline_access`, which does not concern a resource server.
const advertisedScopes = (scopes: readonly string[]): string[] =>
  scopes.filter((scope) => scope !== 'offline_access' && scopeToken.test(scope))

/**
 * Returns the scopes to request at the first issuer for these scopes of the gateway: issuers may name them otherwise.
 * @param scopes of the gateway; `requiredScopes` are among them
 */
export function askedFor(
  { issuers, requiredScopes, askedScopes = [] }: Pick<AuthConfig, 'issuers' | 'requiredScopes' | 'askedScopes'>,
  scopes = requiredScopes
): readonly string[] {
  const prefix = issuers[0]?.scopePrefix ?? ''
  if (prefix === '' && askedScopes.length === 0) return scopes
  const others = askedScopes.length === 0 ? scopes : scopes.filter((scope) => !requiredScopes.includes(scope))
  return [...askedScopes, ...others.map((scope) => prefix + scope)]
}

/** RFC 9728 section 3.1: the well-known part goes between the host and the path of the resource. */
export function metadataUrlOf(resource: string): string {
  const url = new URL(resource)
  const path = url.pathname === '/' ? '' : url.pathname
  return `${url.origin}/.well-known/oauth-protected-resource${path}${url.search}`
}

/**
 * Protected resource metadata (RFC 9728).
 * @param auth with an issuer: MCP wants at least one authorization server (basic/authorization)
 * @param resource URL of the endpoint, exactly as clients connect to it and as tokens name it in `aud`
 * @param name what a person may be shown
 * @param required the scopes that a caller needs there
 */
export function resourceMetadata(
  resource: string,
  auth: Pick<AuthConfig, 'issuers' | 'requiredScopes' | 'askedScopes' | 'dpop'>,
  name?: string,
  required = auth.requiredScopes
) {
  const scopes = advertisedScopes(askedFor(auth, required))
  return {
    resource,
    authorization_servers: [
      ...new Set(auth.issuers.map(({ issuer, authorizationServer }) => authorizationServer ?? issuer))
    ],
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: proofAlgorithms,
    ...(auth.dpop === 'required' && { dpop_bound_access_tokens_required: true }),
    ...(name !== undefined && { resource_name: name })
  }
}
