// A gateway with the tenant acme, which most tests call: one scripted upstream under its own names, and two people,
// each with an API key and a token of a real issuer.

import { type Teardown } from './until.ts'
import { gateway, type TestGateway, type TestGatewayOptions } from './gateway.ts'
import { forgingIssuer, type ForgingIssuer } from './forging-issuer.ts'
import { rawExchange, type RawResponse } from './raw-http.ts'
import { startUpstream, type HttpUpstream, type HttpUpstreamOptions } from './upstream.ts'

export interface AcmeGatewayOptions extends Partial<TestGatewayOptions> {
  readonly script?: HttpUpstreamOptions
  /** Of the upstream. */
  readonly isolation?: string
}

export type Credential = 'API key' | 'JWT'
export const credentials: readonly Credential[] = ['API key', 'JWT']

export interface AcmeGateway extends TestGateway {
  readonly upstream: HttpUpstream
  readonly issuer: ForgingIssuer
  readonly port: number
  /** A bearer of ada or bob at the endpoint (default: the default one). */
  bearer(kind: Credential, who?: 'ada' | 'bob', claims?: Record<string, unknown>): Promise<string>
  /** Bytes on a connection of their own; the answer when it is closed. */
  exchange(bytes: string | Buffer): Promise<RawResponse>
  /** A POST of ada as bytes; `headers` are put in front, each with its line end. */
  post(body: string, headers?: string, path?: string): string
}

export const keyOf = { ada: 'gh_key_of_ada_0123456789', bob: 'gh_key_of_bob_0123456789' } as const

export async function acmeGateway(t: Teardown, options: AcmeGatewayOptions = {}): Promise<AcmeGateway> {
  const { script, isolation, ...rest } = options
  const upstream = await startUpstream(script)
  t.teardown(() => upstream.close())
  const issuer = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url, ...(isolation !== undefined && { isolation }) } },
    endpoints: { default: { upstreams: ['up'], prefix: '' }, files: { upstreams: ['up'] } },
    auth: authOf(issuer),
    ...rest
  })
  const port = Number(new URL(made.publicUrl).port)
  return {
    ...made,
    get log() {
      return made.log
    },
    upstream,
    issuer,
    port,
    bearer: async (kind, who = 'ada', claims = {}) =>
      kind === 'API key'
        ? keyOf[who]
        : await issuer.sign({ aud: made.url(), sub: who, client_id: `app-of-${who}`, ...claims }),
    exchange: (bytes) => rawExchange(port, bytes),
    post: (body, headers = '', path = '/t/acme/mcp') =>
      `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nContent-Type: application/json\r\n` +
      `Accept: application/json, text/event-stream\r\n${headers}Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  }
}

export function authOf(issuer: ForgingIssuer): unknown {
  return {
    issuers: [{ issuer: issuer.issuer, jwksUri: issuer.jwksUri }],
    keys: [
      { name: 'ada', key: keyOf.ada },
      { name: 'bob', key: keyOf.bob }
    ]
  }
}

export const initializeBody = (revision: unknown = '2025-11-25', id: unknown = 1): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'initialize',
    params: { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
  })
