// A real authorization server on a free port of loopback: oidc-provider with client credentials and resource
// indicators. Its access tokens are RFC 9068 JWTs for any resource. The server before it counts key set requests and
// can take the key set away.

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify, type JWK } from 'jose'
import { errors, Provider } from 'oidc-provider'
import { assertionGrant, exchangeGrant, takeAssertions } from './identity-assertions.ts'
import { listen, type Teardown } from './listen.ts'

export interface IssuerOptions {
  /** What clients may ask for; all of it is granted to whoever asks. */
  readonly scopes?: readonly string[]
  readonly clients?: readonly string[]
  readonly lifetimeSeconds?: number
  /** The issuer whose identity assertions (ID-JAG) are taken for tokens. */
  readonly assertionsOf?: string
}

export interface TokenRequest {
  /** Becomes `aud`. */
  readonly resource: string
  readonly scope?: string
  readonly clientId?: string
  readonly alg?: 'ES256' | 'RS256'
  /** A token that only the issuer can read. */
  readonly opaque?: boolean
  /** For a token that is bound to the key of the proof (RFC 9449 section 5). */
  readonly proof?: string
}

export interface Issuer {
  readonly url: string
  readonly jwksUri: string
  /** Asks the token endpoint for an access token by client credentials. */
  token(request: TokenRequest): Promise<string>
  /** From now on tokens are signed by new keys; the old ones are withdrawn, or stay published. */
  rotate(old: 'withdrawn' | 'published'): Promise<void>
  /** Down: the key set answers 503, everything else goes on. */
  setKeySet(state: 'up' | 'down'): void
  keySetRequests(): number
  /** A client that may ask what tokens mean, and where. */
  readonly introspection: { readonly url: string; readonly clientId: string; readonly clientSecret: string }
  introspectionRequests(): number
  revoke(token: string): Promise<void>
  /** A client that may exchange tokens (RFC 8693). */
  readonly exchanger: { readonly clientId: string; readonly clientSecret: string }
  /** Subject tokens of requests to exchange one, in order. */
  readonly exchanges: string[]
  /** Refuses to exchange any. */
  exchangeRefused: boolean
  /** Called before an exchange is answered; it may keep the answer back. */
  beforeExchange: (() => Promise<void>) | undefined
}

export async function issuer(t: Teardown, options: IssuerOptions = {}): Promise<Issuer> {
  const { scopes = ['mcp'], clients = ['robot'], lifetimeSeconds = 600, assertionsOf } = options
  let handle: ReturnType<Provider['callback']> | undefined
  let state: 'up' | 'down' = 'up'
  let requests = 0
  let introspections = 0
  let keys: JWK[] = await freshKeys()
  const secret = randomUUID()
  const asker = 'gateway'
  const askerGrants = [exchangeGrant, ...(assertionsOf === undefined ? [] : [assertionGrant])]
  const exchanging = {
    exchanges: [] as string[],
    exchangeRefused: false,
    beforeExchange: undefined as (() => Promise<void>) | undefined
  }

  const url = await listen(
    t,
    createServer((request, response) => {
      if (request.url === '/jwks') {
        requests += 1
        if (state === 'down') {
          response.writeHead(503).end()
          return
        }
      }
      if (request.url === '/token/introspection') introspections += 1
      void handle?.(request, response)
    })
  )

  function publish() {
    const provider = new Provider(url, {
      jwks: { keys },
      scopes: ['openid', ...scopes],
      clients: [...clients, asker].map((client) => ({
        client_id: client,
        client_secret: secret,
        grant_types: ['client_credentials', ...(client === asker ? askerGrants : [])],
        redirect_uris: [],
        response_types: []
      })),
      ttl: { ClientCredentials: lifetimeSeconds },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        introspection: { enabled: true },
        revocation: { enabled: true },
        dPoP: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (context, resource) => ({
            scope: scopes.join(' '),
            audience: resource,
            accessTokenFormat: context.get('x-opaque') === 'yes' ? ('opaque' as const) : ('jwt' as const),
            accessTokenTTL: lifetimeSeconds,
            jwt: { sign: { alg: context.get('x-alg') === 'RS256' ? ('RS256' as const) : ('ES256' as const) } }
          })
        }
      }
    })
    registerExchange(provider, url, exchanging)
    if (assertionsOf !== undefined) takeAssertions(provider, url, assertionsOf)
    handle = provider.callback()
  }

  publish()
  const made: Omit<Issuer, keyof typeof exchanging> = {
    url,
    jwksUri: `${url}/jwks`,

    async token({
      resource,
      scope = scopes.join(' '),
      clientId = clients[0] ?? 'robot',
      alg = 'ES256',
      opaque,
      proof
    }) {
      const response = await fetch(`${url}/token`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(`${clientId}:${secret}`)}`,
          'x-alg': alg,
          ...(opaque && { 'x-opaque': 'yes' }),
          ...(proof !== undefined && { dpop: proof })
        },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope })
      })
      const answer = (await response.json()) as { access_token?: string; error?: string; error_description?: string }
      if (answer.access_token === undefined)
        throw new Error(`the issuer gives no token: ${answer.error} ${answer.error_description}`)
      return answer.access_token
    },

    async rotate(old) {
      const fresh = await freshKeys()
      keys = old === 'published' ? [...fresh, ...keys] : fresh
      publish()
    },

    setKeySet(next) {
      state = next
    },

    keySetRequests: () => requests,
    introspection: { url: `${url}/token/introspection`, clientId: asker, clientSecret: secret },
    exchanger: { clientId: asker, clientSecret: secret },
    introspectionRequests: () => introspections,
    async revoke(token) {
      await fetch(`${url}/token/revocation`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${clients[0] ?? 'robot'}:${secret}`)}` },
        body: new URLSearchParams({ token })
      })
    }
  }
  return Object.assign(exchanging, made)
}

/** RFC 8693: a token that this issuer gave for one of the same subject for another resource. */
function registerExchange(
  provider: Provider,
  url: string,
  state: Pick<Issuer, 'exchanges' | 'exchangeRefused' | 'beforeExchange'>
): void {
  const parameters = ['subject_token', 'subject_token_type', 'requested_token_type', 'resource', 'audience', 'scope']
  const keys = createRemoteJWKSet(new URL(`${url}/jwks`))
  provider.registerGrantType(
    exchangeGrant,
    async (context) => {
      const { client } = context.oidc
      const params = context.oidc.params ?? ({} as Record<string, unknown>)
      const subjectToken = String(params['subject_token'])
      state.exchanges.push(subjectToken)
      await state.beforeExchange?.()
      if (state.exchangeRefused) throw new errors.InvalidGrant('this one is not exchanged')
      const { payload } = await jwtVerify(subjectToken, keys, { issuer: url, typ: 'at+jwt' })
      const resource = String(params['resource'])
      const token = new provider.AccessToken({
        accountId: String(payload.sub),
        client: client as NonNullable<typeof client>,
        scope: String(payload['scope']),
        gty: 'token_exchange',
        grantId: 'none'
      } as never)
      token.resourceServer = new provider.ResourceServer(resource, {
        scope: String(payload['scope']),
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 600,
        jwt: { sign: { alg: 'ES256' } }
      })
      context.body = {
        access_token: await token.save(),
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        token_type: 'Bearer',
        expires_in: 600,
        scope: payload['scope']
      }
    },
    parameters
  )
}

export async function freshKeys(): Promise<JWK[]> {
  return await Promise.all(
    ['ES256', 'RS256'].map(async (alg) => {
      const { privateKey } = await generateKeyPair(alg, { extractable: true })
      return { ...(await exportJWK(privateKey)), alg, use: 'sig', kid: randomUUID() }
    })
  )
}
