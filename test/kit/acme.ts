// The tenant that most tests of the door call at: one scripted upstream under its own names, two people with an API key and a token
// of a real issuer each.

import { gateway } from './gateway.ts'
import type { TestGateway, TestGatewayOptions } from './gateway.ts'
import { forge } from './forge.ts'
import type { Forge } from './forge.ts'
import { exchange } from './raw.ts'
import type { RawAnswer } from './raw.ts'
import { startUpstream } from './upstream.ts'
import type { HttpUpstream, HttpUpstreamOptions } from './upstream.ts'

export interface AcmeOptions extends Partial<TestGatewayOptions> {
  readonly script?: HttpUpstreamOptions
}

export type Credential = 'API key' | 'JWT'
export const credentials: readonly Credential[] = ['API key', 'JWT']

export interface Acme extends TestGateway {
  readonly upstream: HttpUpstream
  readonly issuer: Forge
  readonly port: number
  /** A bearer of ada or bob at the endpoint (default: the default one). */
  bearer (kind: Credential, who?: 'ada' | 'bob', claims?: Record<string, unknown>): Promise<string>
  /** Bytes on a connection of their own; the answer when it is closed. */
  exchange (bytes: string | Buffer): Promise<RawAnswer>
  /** A POST of ada as bytes; `headers` are put in front, each with its line end. */
  post (body: string, headers?: string, path?: string): string
}

export const keyOf = { ada: 'gh_key_of_ada_0123456789', bob: 'gh_key_of_bob_0123456789' } as const

interface Teardown { teardown (run: () => unknown): void }

export async function acme (t: Teardown, options: AcmeOptions = {}): Promise<Acme> {
  const { script, ...rest } = options
  const upstream = await startUpstream(script)
  t.teardown(() => upstream.close())
  const issuer = await forge(t, { resource: 'urn:none', now: Date.now() })
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' }, files: { upstreams: ['up'] } },
    auth: authOf(issuer),
    ...rest
  })
  const port = Number(new URL(made.publicUrl).port)
  return {
    ...made,
    get log () { return made.log },
    upstream,
    issuer,
    port,
    bearer: async (kind, who = 'ada', claims = {}) =>
      kind === 'API key' ? keyOf[who] : await issuer.sign({ aud: made.url(), sub: who, client_id: `app-of-${who}`, ...claims }),
    exchange: (bytes) => exchange(port, bytes),
    post: (body, headers = '', path = '/t/acme/mcp') =>
      `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nContent-Type: application/json\r\n` +
      `Accept: application/json, text/event-stream\r\n${headers}Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  }
}

export function authOf (issuer: Forge): unknown {
  return {
    issuers: [{ issuer: issuer.issuer, jwksUri: issuer.jwksUri }],
    keys: [{ name: 'ada', key: keyOf.ada }, { name: 'bob', key: keyOf.bob }]
  }
}

export const initializeBody = (revision: unknown = '2025-11-25', id: unknown = 1): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'initialize', params: { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'raw', version: '1' } } })
