// The authorization server of an upstream: oidc-provider with client credentials, authorization codes, refresh tokens,
// registration and resource indicators. Whoever `person` is signs in at once and allows what is asked.

import { createServer } from 'node:http'
import { Provider, type ClientMetadata } from 'oidc-provider'
import { freshKeys } from './issuer.ts'
import { listen, type Teardown } from './listen.ts'

export interface AuthorizationServer {
  readonly url: string
  readonly jwksUri: string
  /** Who sits before the browser; undefined: they refuse. */
  person: string | undefined
  /** Answers 503 to everything. */
  down: boolean
  /** Bodies of requests to its token endpoint, in order. */
  readonly tokenRequests: URLSearchParams[]
  /** Clients that have registered themselves. */
  registrations: number
  /** Who asked for tokens, in order. */
  readonly clientIds: string[]
  /** All tokens that it has given out. */
  readonly issued: Array<{ readonly access: string; readonly refresh: string | undefined }>
  /** Called before an answer with tokens is sent, once; it may keep it back. */
  beforeTokens: (() => Promise<void>) | undefined
  /** Tokens that were given back. */
  revocations: number
  /** Of the tokens that it gives from now on. */
  lifetimeSeconds: number
  /** Every grant of a person ends: their refresh tokens are refused. */
  revoke(person: string): void
  /** It knows a client no more that registered itself. */
  forget(clientId: string): Promise<void>
}

export interface AuthorizationServerOptions {
  readonly clients?: readonly ClientMetadata[]
  readonly scopes?: readonly string[]
  readonly registration?: boolean
  /** Takes metadata documents of clients. */
  readonly documents?: boolean
  /** A refresh token is good once. Default true. */
  readonly rotates?: boolean
  /** What its tokens are for where nobody says so (`resource`, RFC 8707). */
  readonly resource?: () => string
  readonly lifetimeSeconds?: number
}

export const robot: ClientMetadata = {
  client_id: 'robot',
  client_secret: 'the-secret_of.robot~at:its/server',
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: []
}

export async function authorizationServer(
  t: Teardown,
  {
    clients = [robot],
    scopes = ['read', 'write'],
    registration = false,
    documents = false,
    rotates = true,
    resource: usual = () => 'urn:none',
    lifetimeSeconds = 600
  }: AuthorizationServerOptions = {}
): Promise<AuthorizationServer> {
  let provider: Provider | undefined
  const revoked = new Set<string>()
  const state = {
    person: 'ada' as string | undefined,
    down: false,
    tokenRequests: [] as URLSearchParams[],
    clientIds: [] as string[],
    issued: [] as Array<{ access: string; refresh: string | undefined }>,
    beforeTokens: undefined as (() => Promise<void>) | undefined,
    registrations: 0,
    revocations: 0,
    lifetimeSeconds,
    revoke: (person: string) => void revoked.add(person)
  }
  const url = await listen(
    t,
    createServer((request, response) => {
      if (state.down) return response.writeHead(503).end()
      if (request.url === '/reg' && request.method === 'POST') state.registrations++
      if (request.url?.startsWith('/in/') !== true || provider === undefined)
        return void provider?.callback()(request, response)
      void finish(provider)
      async function finish(at: Provider): Promise<void> {
        const { person } = state
        if (person === undefined)
          return await at.interactionFinished(request, response, { error: 'access_denied', error_description: 'no' })
        const { params } = await at.interactionDetails(request, response)
        const grant = new at.Grant({ accountId: person, clientId: String(params['client_id']) })
        grant.addOIDCScope(`openid offline_access ${scopes.join(' ')}`)
        grant.addResourceScope(String(params['resource'] ?? usual()), scopes.join(' '))
        revoked.delete(person)
        await at.interactionFinished(request, response, {
          login: { accountId: person },
          consent: { grantId: await grant.save() }
        })
      }
    })
  )
  provider = new Provider(url, {
    jwks: { keys: await freshKeys() },
    cookies: { keys: ['cookies of the authorization server'] },
    clients: [...clients],
    scopes: ['openid', 'offline_access', ...scopes],
    ttl: { ClientCredentials: lifetimeSeconds, AccessToken: lifetimeSeconds },
    // Its own guard refuses documents of this machine, where all of a test is.
    ...(documents && {
      fetch: (at: string | Request | URL, init?: RequestInit) =>
        fetch(at, { headers: init?.headers ?? {}, signal: init?.signal ?? null })
    }),
    interactions: { url: (_ctx, { uid }) => `/in/${uid}` },
    issueRefreshToken: () => true,
    rotateRefreshToken: rotates,
    findAccount: (_ctx, sub) => (revoked.has(sub) ? undefined : { accountId: sub, claims: () => ({ sub }) }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: registration },
      clientIdMetadataDocument: { enabled: documents, ack: 'draft-02' },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: usual,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, resource) => ({
          scope: scopes.join(' '),
          audience: resource,
          accessTokenFormat: 'jwt' as const,
          accessTokenTTL: state.lifetimeSeconds,
          jwt: { sign: { alg: 'ES256' as const } }
        })
      }
    }
  })
  provider.use(async (context, next) => {
    await next()
    if (context.path === '/token/revocation' && context.status === 200) state.revocations++
    if (context.path !== '/token') return
    state.tokenRequests.push(new URLSearchParams(context.oidc?.body as Record<string, string>))
    state.clientIds.push(context.oidc?.client?.clientId ?? '')
    const { access_token: access, refresh_token: refresh } = context.body as Partial<Record<string, string>>
    if (access === undefined) return
    state.issued.push({ access, refresh })
    const before = state.beforeTokens
    state.beforeTokens = undefined
    await before?.()
  })
  const { adapter } = provider.Client as unknown as { adapter: { destroy(id: string): Promise<void> } }
  return Object.assign(state, { url, jwksUri: `${url}/jwks`, forget: (id: string) => adapter.destroy(id) })
}
