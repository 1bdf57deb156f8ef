// The requests by which a token that says who somebody is becomes one that an upstream takes: token exchange at the
// identity provider (RFC 8693), and, where the authorization server of the upstream wants an assertion of that
// provider, the grant at which it is presented (RFC 7523; draft-ietf-oauth-identity-assertion-authz-grant, ID-JAG; the
// extension enterprise-managed authorization of MCP).

import * as oauth from 'oauth4webapi'
import type { Fetch } from '../../egress/fetch.ts'
import type { TokenExchangeAuth } from '../../config/auth/upstream-auth.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import { authenticationOf } from './client-authentication.ts'
import { discoverAuthorization, type FirstIssuer, serverMetadata } from './discovery.ts'
import { type Tokens, tokensFrom } from './tokens.ts'

export type ExchangingDefinition = HttpDefinition & { readonly auth: TokenExchangeAuth }

const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const assertionGrant = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

const tokenType = {
  accessToken: 'urn:ietf:params:oauth:token-type:access_token',
  idToken: 'urn:ietf:params:oauth:token-type:id_token',
  identityAssertion: 'urn:ietf:params:oauth:token-type:id-jag'
} as const

/** The longest assertion, in characters: it is sent in a form. */
const maxAssertionLength = 16_384

/** A failed token exchange. The message goes to operators. */
class ExchangeFailed extends Error {}

/**
 * @param subjectToken of the caller: of the type that `auth.subjectToken` names
 * @param fetch to where the definition leads
 * @param now epoch ms
 * @param first of the client that an assertion is presented by
 * @throws oauth4webapi's errors, ExchangeFailed, and those of discovery
 */
export async function exchangedTokens(
  definition: ExchangingDefinition,
  subjectToken: string,
  fetch: Fetch,
  now: () => number,
  first?: FirstIssuer
): Promise<Tokens> {
  const { auth, url } = definition
  const { scopes, identityAssertion } = auth
  const provider = await providerOf(definition, fetch)
  const subject = { subject_token: subjectToken, subject_token_type: tokenType[auth.subjectToken] }
  if (identityAssertion === undefined) {
    const { audience, resource = audience === undefined ? url : 'none' } = auth
    const wanted = { ...subject, requested_token_type: tokenType.accessToken, ...named({ audience, resource }) }
    return tokensFrom(await granted(auth, provider, exchangeGrant, wanted, { scopes, fetch }), now())
  }
  const target = await discoverAuthorization(url, undefined, identityAssertion.issuer, fetch, first)
  const wanted = {
    ...subject,
    requested_token_type: tokenType.identityAssertion,
    ...named({ audience: auth.audience ?? target.server.issuer, resource: auth.resource ?? target.resource })
  }
  const answer = await granted(auth, provider, exchangeGrant, wanted, { scopes, fetch })
  if (answer['issued_token_type'] !== tokenType.identityAssertion)
    throw new ExchangeFailed(`${auth.issuer} gave something else than an identity assertion (ID-JAG)`)
  if (answer.access_token.length > maxAssertionLength)
    throw new ExchangeFailed(`the identity assertion is longer than ${maxAssertionLength} characters`)
  const presented = { assertion: answer.access_token }
  return tokensFrom(
    await granted(identityAssertion, target.server, assertionGrant, presented, { scopes, fetch }),
    now()
  )
}

const named = (parameters: {
  readonly audience: string | undefined
  readonly resource: string
}): Record<string, string> => ({
  ...(parameters.audience !== undefined && { audience: parameters.audience }),
  ...(parameters.resource !== 'none' && { resource: parameters.resource })
})

async function providerOf({ auth, url }: ExchangingDefinition, fetch: Fetch): Promise<oauth.AuthorizationServer> {
  const server =
    auth.tokenUrl === undefined
      ? await serverMetadata(auth.issuer, fetch)
      : { issuer: auth.issuer, token_endpoint: auth.tokenUrl }
  // Whatever metadata says: who has the token of a caller can be that caller.
  if (server.token_endpoint !== undefined && new URL(server.token_endpoint).origin === new URL(url).origin)
    throw new ExchangeFailed('the token endpoint is the upstream itself, which never gets the token of a caller')
  return server
}

/** @param credentials of the gateway at the server */
async function granted(
  credentials: TokenExchangeAuth | NonNullable<TokenExchangeAuth['identityAssertion']>,
  server: oauth.AuthorizationServer,
  grant: string,
  parameters: Readonly<Record<string, string>>,
  { scopes, fetch }: { readonly scopes: readonly string[]; readonly fetch: Fetch }
): Promise<oauth.TokenEndpointResponse> {
  const client: oauth.Client = { client_id: credentials.clientId }
  const response = await oauth.genericTokenEndpointRequest(
    server,
    client,
    await authenticationOf(credentials, server),
    grant,
    { ...parameters, ...(scopes.length > 0 && { scope: scopes.join(' ') }) },
    { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true }
  )
  // An assertion is no access token: its `token_type` is `N_A` (RFC 8693 section 2.2.1). What is used as a token has to
  // be a bearer token, which `tokensFrom` sees to.
  return await oauth.processGenericTokenEndpointResponse(server, client, response, {
    recognizedTokenTypes: { n_a: () => {} }
  })
}
