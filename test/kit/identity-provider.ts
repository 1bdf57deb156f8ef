// The OpenID provider of a company, as many are: confidential clients that an administrator registers, no dynamic
// registration, no parameter `resource`. Whoever `person` is signs in at once.

import { createServer, type ServerResponse } from 'node:http'
import { Provider } from 'oidc-provider'
import { exchangeGrant, giveAssertions, passOnExchanges } from './identity-assertions.ts'
import { freshKeys } from './issuer.ts'
import { listen, type Teardown } from './listen.ts'

export interface IdentityProvider {
  readonly url: string
  /** Who sits before the browser; undefined: they refuse. */
  person: string | undefined
  readonly groups: Map<string, string[]>
  /** Those who have left the company. */
  readonly disabled: Set<string>
  /** Further claims of ID tokens. */
  claims: Record<string, unknown>
  /** Claims that are in userinfo only. */
  readonly userinfoOnly: Set<string>
  /** Userinfo knows nobody any more. */
  isUserinfoClosed: boolean
  /** It sends an ID token at a refresh, too. */
  hasIdTokens: boolean
  /** Whether it lets the gateway ask again without the person. */
  hasRefreshTokens: boolean
  /** It does not know the secret of the gateway any more. */
  isSecretWrong: boolean
  /** With this error it refuses whatever comes to its token endpoint. */
  refusal: string | undefined
  /** It answers 503 to everything. */
  down: boolean
  /** Its token endpoint answers when this is over. */
  held: Promise<unknown> | undefined
  /** Requests to its token endpoint. */
  tokenRequests: number
  /** As which client the gateway is known at authorization servers that take assertions, by their issuer. */
  readonly clientAt: Map<string, string>
  /** Whose ID tokens became assertions, in order. */
  readonly asserted: string[]
}

export const providerClient = { clientId: 'gatehouse', clientSecret: 'the-secret-of-the-gateway-at-its-provider' }

/** What it gives ends later than what the gateway does. */
const longSeconds = 400 * 24 * 60 * 60

/** @param assertedBy who gives assertions in its place */
export async function identityProvider(
  t: Teardown,
  redirectUri: string,
  assertedBy?: { readonly tokenUrl: string; readonly idToken: string }
): Promise<IdentityProvider> {
  let handle: ReturnType<Provider['callback']> | undefined
  let provider: Provider | undefined
  const state: Omit<IdentityProvider, 'url'> = {
    person: 'ada',
    groups: new Map(),
    disabled: new Set(),
    claims: {},
    userinfoOnly: new Set(),
    isUserinfoClosed: false,
    hasIdTokens: true,
    hasRefreshTokens: true,
    isSecretWrong: false,
    refusal: undefined,
    down: false,
    held: undefined,
    tokenRequests: 0,
    clientAt: new Map(),
    asserted: []
  }
  const url = await listen(
    t,
    createServer((request, response) => {
      if (state.down) return response.writeHead(503).end()
      if (request.url === '/token') state.tokenRequests += 1
      if (request.url === '/me' && state.isUserinfoClosed)
        return response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end()
      if (request.url === '/token' && state.refusal !== undefined)
        return response
          .writeHead(400, { 'content-type': 'application/json' })
          .end(JSON.stringify({ error: state.refusal, error_description: 'as it was told' }))
      if (request.url === '/token' && !state.hasIdTokens) withoutIdTokens(response)
      if (state.isSecretWrong) request.headers.authorization = `Basic ${btoa('gatehouse:wrong')}`
      if (request.url === '/token' && state.held !== undefined)
        return void state.held.then(() => handle?.(request, response))
      if (request.url?.startsWith('/in/') !== true || provider === undefined) return void handle?.(request, response)
      void finish(provider)
      async function finish(at: Provider): Promise<void> {
        const { person } = state
        if (person === undefined)
          return await at.interactionFinished(request, response, { error: 'access_denied', error_description: 'no' })
        const grant = new at.Grant({ accountId: person, clientId: providerClient.clientId })
        grant.addOIDCScope('openid profile email offline_access')
        const consent = { grantId: await grant.save() }
        await at.interactionFinished(request, response, { login: { accountId: person }, consent })
      }
    })
  )
  const keys = await freshKeys()
  provider = new Provider(url, {
    jwks: { keys },
    cookies: { keys: ['cookies of the provider'] },
    clients: [
      {
        client_id: providerClient.clientId,
        client_secret: providerClient.clientSecret,
        grant_types: ['authorization_code', 'refresh_token', exchangeGrant],
        redirect_uris: [redirectUri],
        post_logout_redirect_uris: [redirectUri.replace(/callback$/, 'session/end/success')],
        response_types: ['code']
      }
    ],
    claims: {
      openid: ['sub', 'groups', 'roles', 'realm_access', 'hasgroups', '_claim_names'],
      email: ['email'],
      profile: ['name']
    },
    conformIdTokenClaims: false,
    interactions: { url: (_ctx, { uid }) => `/in/${uid}` },
    issueRefreshToken: () => state.hasRefreshTokens,
    ttl: { Grant: longSeconds, RefreshToken: longSeconds },
    expiresWithSession: () => false,
    findAccount: (_ctx, sub) =>
      state.disabled.has(sub)
        ? undefined
        : {
            accountId: sub,
            claims: (use) => {
              const groups = state.groups.get(sub) ?? ['staff']
              const all = { sub, email: `${sub}@example.com`, name: sub, groups, ...state.claims }
              const isSaid = (claim: string): boolean => use !== 'id_token' || !state.userinfoOnly.has(claim)
              return Object.fromEntries(Object.entries(all).filter(([claim]) => isSaid(claim))) as typeof all
            }
          },
    features: { devInteractions: { enabled: false }, resourceIndicators: { enabled: false } }
  })
  if (assertedBy === undefined)
    giveAssertions(provider, url, keys, { clients: state.clientAt, subjects: state.asserted })
  else passOnExchanges(provider, url, assertedBy)
  handle = provider.callback()
  return Object.assign(state, { url })
}

function withoutIdTokens(response: ServerResponse): void {
  const end = response.end.bind(response)
  response.end = ((body: string) => {
    const { id_token: _left, ...rest } = JSON.parse(body) as Record<string, unknown>
    const text = JSON.stringify(rest)
    response.setHeader('content-length', text.length)
    return end(text)
  }) as typeof response.end
}
