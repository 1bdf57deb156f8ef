// A gateway whose tenant has a login front, the company's provider behind it, and hosts that register and log in.

import { createHash, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { freePort } from '../kit/free-port.ts'
import { configOf, gateway, type TestGatewayOptions } from '../kit/gateway.ts'
import { browser } from '../kit/browser.ts'
import { identityProvider, providerClient, type IdentityProvider } from '../kit/identity-provider.ts'
import { listen, type Teardown } from '../kit/listen.ts'
import { trustedLocalhost } from '../kit/localhost-tls.ts'
import { stdioDefinition } from '../kit/connector.ts'

export const redirectUri = 'http://127.0.0.1:45678/callback'

export async function loginGateway(
  t: Teardown,
  {
    login = {},
    auth = {},
    port: given,
    provider: known,
    of = {},
    ...options
  }: Partial<TestGatewayOptions> & {
    login?: object
    auth?: object
    port?: number
    provider?: IdentityProvider
    of?: object
  } = {}
) {
  const port = given ?? (await freePort())
  const origin = `http://127.0.0.1:${port}`
  const provider = known ?? (await identityProvider(t, `${origin}/login/acme/callback`))
  const { command, args, env } = stdioDefinition()
  const all = {
    upstreams: { files: { command, args, env } },
    endpoints: { default: { upstreams: ['files'] }, other: { upstreams: ['files'] } },
    ...options,
    auth: {
      ...auth,
      login: {
        name: 'Acme Corporation',
        scopes: ['mcp'],
        provider: { issuer: provider.url, ...providerClient, ...of },
        ...login
      }
    },
    top: { listen: { host: '127.0.0.1', port }, publicUrl: origin, ...options.top }
  }
  const config = configOf(all) as { readonly tenants: Record<string, unknown> }
  return { ...(await gateway(t, all)), origin, port, issuer: `${origin}/login/acme`, provider, config }
}

type Front = Pick<Awaited<ReturnType<typeof loginGateway>>, 'issuer'>
type Json = Record<string, unknown>

export async function register({ issuer }: Front, metadata: object = {}, headers: Record<string, string> = {}) {
  const response = await fetch(`${issuer}/reg`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      client_name: 'A Host',
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'none',
      ...metadata
    })
  })
  const body = (await response.json()) as Json
  return { status: response.status, headers: response.headers, body, clientId: String(body['client_id']) }
}

export const pkce = () => {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

export function authorizationUrl({ issuer }: Front, parameters: Record<string, string>): string {
  const url = new URL(`${issuer}/auth`)
  const all = { response_type: 'code', redirect_uri: redirectUri, code_challenge_method: 'S256', ...parameters }
  for (const [name, value] of Object.entries(all)) url.searchParams.set(name, value)
  return url.href
}

export async function tokens({ issuer }: Front, parameters: Record<string, string>) {
  const response = await fetch(`${issuer}/token`, { method: 'POST', body: new URLSearchParams(parameters) })
  const { status, headers } = response
  return { status, headers, body: (await response.json()) as Json & { access_token: string } }
}

/** The whole way of a host: registration, sign-in, consent, tokens. */
export async function logIn(front: Front, resource: string, person = browser()) {
  const { clientId } = await register(front)
  const { verifier, challenge } = pkce()
  const url = authorizationUrl(front, { client_id: clientId, resource, state: 's', code_challenge: challenge })
  const page = await person.go(url, redirectUri)
  const end = page.html === '' ? page : await person.press(page, '/allow', redirectUri)
  const code = end.url.searchParams.get('code') ?? ''
  const grant = { grant_type: 'authorization_code', client_id: clientId, redirect_uri: redirectUri, resource }
  const answer = await tokens(front, { ...grant, code, code_verifier: verifier })
  return { clientId, code, verifier, page, end, ...answer }
}

/** @returns status of an `initialize` with the token */
export async function use(url: string, token: string): Promise<number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream'
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a host', version: '1' } }
    })
  })
  await response.body?.cancel()
  return response.status
}

/** Where a host sends the browser. */
export const begin = (front: Front, clientId: string, more: Record<string, string> = {}): string =>
  authorizationUrl(front, { client_id: clientId, state: 's', code_challenge: pkce().challenge, ...more })

export const refresh = (front: Front, { clientId, body }: { readonly clientId: string; readonly body: Json }) =>
  tokens(front, { grant_type: 'refresh_token', client_id: clientId, refresh_token: String(body['refresh_token']) })

/**
 * A client whose id is the URL of its metadata document, on a web server of its own that this process trusts.
 * @param answer in place of its document, which is `text`
 * @returns `asked`: how many connections came to it; `paths`: for what
 */
export async function documentedClient(
  t: Teardown,
  metadata: object = {},
  answer = (response: ServerResponse, text: string): void =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(text)
) {
  const { cert, key } = await trustedLocalhost(t)
  let connections = 0
  const paths: string[] = []
  const server = createServer({ cert, key }, ({ url = '' }, response) => {
    paths.push(url)
    const all = { client_id: clientId, redirect_uris: [redirectUri], token_endpoint_auth_method: 'none', ...metadata }
    answer(response, JSON.stringify(all))
  })
  server.on('connection', () => (connections += 1))
  const { port } = new URL(await listen(t, server))
  const clientId = `https://localhost:${port}/client.json`
  return { clientId, paths, asked: () => connections }
}

/** Lets the gateway fetch the document of such a client, which is at no public address. */
export const ownNetwork = { egress: { allow: ['127.0.0.0/8', '::1/128'] } }
