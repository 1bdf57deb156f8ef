// Both sides of enterprise-managed authorization, as grants of oidc-provider: an identity provider that gives assertions
// for ID tokens (ID-JAG), and an authorization server that gives tokens for assertions of that provider.

import { randomUUID } from 'node:crypto'
import { createRemoteJWKSet, importJWK, type JWK, jwtVerify, SignJWT } from 'jose'
import { errors, type KoaContextWithOIDC, type Provider } from 'oidc-provider'

export const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const assertionGrant = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const exchangeParameters = [
  'subject_token',
  'subject_token_type',
  'requested_token_type',
  'audience',
  'resource',
  'scope'
]
const assertionType = 'urn:ietf:params:oauth:token-type:id-jag'

function asked({ oidc: { params, client } }: KoaContextWithOIDC): { given: Record<string, unknown>; clientId: string } {
  return { given: (params ?? {}) as Record<string, unknown>, clientId: client?.clientId ?? '' }
}

/** Each key of the JWKS of a provider is under its issuer. */
const keysOf = (issuer: string) => createRemoteJWKSet(new URL(`${issuer}/jwks`))

/**
 * @param clients by which name clients of this provider are known at each authorization server
 * @param subjects whose ID tokens came, in order
 */
export function giveAssertions(
  provider: Provider,
  issuer: string,
  keys: readonly JWK[],
  { clients, subjects }: { readonly clients: ReadonlyMap<string, string>; readonly subjects: string[] }
): void {
  const trusted = keysOf(issuer)
  provider.registerGrantType(
    exchangeGrant,
    async (context) => {
      const { given, clientId } = asked(context)
      const name = clients.get(String(given['audience']))
      if (given['subject_token_type'] !== 'urn:ietf:params:oauth:token-type:id_token' || name === undefined)
        throw new errors.InvalidRequest('an ID token, and an audience that is known')
      if (given['requested_token_type'] !== assertionType) throw new errors.InvalidRequest('only assertions are given')
      const { payload } = await jwtVerify(String(given['subject_token']), trusted, { issuer, audience: clientId })
      subjects.push(String(payload.sub))
      const key = keys.find(({ alg }) => alg === 'ES256') as JWK
      const assertion = await new SignJWT({ client_id: name, resource: given['resource'], scope: given['scope'] })
        .setProtectedHeader({ alg: 'ES256', typ: 'oauth-id-jag+jwt', kid: String(key.kid) })
        .setIssuer(issuer)
        .setSubject(String(payload.sub))
        .setAudience(String(given['audience']))
        .setIssuedAt()
        .setExpirationTime('2m')
        .setJti(randomUUID())
        .sign(await importJWK(key, 'ES256'))
      context.body = { access_token: assertion, issued_token_type: assertionType, token_type: 'N_A', expires_in: 120 }
    },
    exchangeParameters
  )
}

/**
 * The provider has another one give the assertions: a request comes there as it came here, with an ID token of that one
 * in place of its own.
 */
export function passOnExchanges(
  provider: Provider,
  issuer: string,
  { tokenUrl, idToken }: { readonly tokenUrl: string; readonly idToken: string }
): void {
  const trusted = keysOf(issuer)
  provider.registerGrantType(
    exchangeGrant,
    async (context) => {
      const { given, clientId } = asked(context)
      await jwtVerify(String(given['subject_token']), trusted, { issuer, audience: clientId })
      const body = new URLSearchParams({ grant_type: exchangeGrant })
      for (const name of exchangeParameters) if (typeof given[name] === 'string') body.set(name, given[name])
      body.set('subject_token', idToken)
      const answer = await fetch(tokenUrl, { method: 'POST', body })
      context.status = answer.status
      context.body = await answer.json()
    },
    exchangeParameters
  )
}

/** @param from the issuer whose assertions count */
export function takeAssertions(provider: Provider, issuer: string, from: string): void {
  const trusted = keysOf(from)
  provider.registerGrantType(
    assertionGrant,
    async (context) => {
      const { given, clientId } = asked(context)
      const checks = { issuer: from, audience: issuer, typ: 'oauth-id-jag+jwt' }
      const { payload } = await jwtVerify(String(given['assertion']), trusted, checks)
      if (payload['client_id'] !== clientId) throw new errors.InvalidGrant('the assertion is for another client')
      const resource = String(payload['resource'])
      const token = new provider.AccessToken({
        accountId: String(payload.sub),
        client: context.oidc.client,
        scope: 'mcp',
        gty: 'jwt_bearer',
        grantId: 'none'
      } as never)
      token.resourceServer = new provider.ResourceServer(resource, {
        scope: 'mcp',
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 600,
        jwt: { sign: { alg: 'ES256' } }
      })
      context.body = { access_token: await token.save(), token_type: 'Bearer', expires_in: 600, scope: 'mcp' }
    },
    ['assertion', 'scope']
  )
}
