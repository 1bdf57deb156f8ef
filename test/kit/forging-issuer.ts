// Tokens as an attacker or a careless issuer would make them, with a key set server of their own that counts and can
// misbehave.

import { randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import {
  CompactSign,
  exportJWK,
  generateKeyPair,
  type CompactJWSHeaderParameters,
  type CryptoKey,
  type JWK
} from 'jose'
import { listen, type Teardown } from './listen.ts'

export type Behaviour =
  | 'good'
  | 'huge'
  | 'endless'
  | 'hanging'
  | 'redirect'
  | 'html'
  | 'crowd'
  | 'duplicates'
  | 'gzip'
  | 'down'

export interface ForgedKey {
  readonly alg: string
  readonly kid: string
  readonly privateKey: CryptoKey
  /** Public, as in a key set. */
  readonly jwk: JWK
}

export interface ForgingIssuer {
  readonly issuer: string
  readonly jwksUri: string
  /** Published while behaving well. May be changed. */
  published: JWK[]
  /** The first published key. */
  readonly key: ForgedKey
  behaviour: Behaviour
  /** Paths that were asked for, in order. */
  readonly requests: string[]
  keySetRequests(): number
  /** `header` and `claims` are put over good ones; undefined removes a member. */
  sign(claims?: Record<string, unknown>, header?: Record<string, unknown>, key?: ForgedKey): Promise<string>
}

export interface ForgingIssuerOptions {
  readonly resource: string
  /** Epoch milliseconds. */
  readonly now: number
  readonly alg?: string
  /** Path of the issuer's URL. */
  readonly path?: string
}

export async function forgedKey(alg: string, kid: string = randomUUID()): Promise<ForgedKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, jwk: { ...(await exportJWK(publicKey)), alg, use: 'sig', kid } }
}

/** Any three parts, signed with anything. */
export function assemble(header: unknown, claims: unknown, signature = ''): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part(header)}.${part(claims)}.${signature}`
}

export async function forgingIssuer(
  t: Teardown,
  { resource, now, alg = 'ES256', path = '' }: ForgingIssuerOptions
): Promise<ForgingIssuer> {
  const key = await forgedKey(alg)
  const requests: string[] = []
  const origin = await listen(
    t,
    createServer((request, response) => {
      requests.push(request.url ?? '')
      if (request.url === '/jwks') behave(response, made)
      else if (request.url === `/.well-known/oauth-authorization-server${path}`)
        json(response, { issuer: made.issuer, jwks_uri: made.jwksUri })
      else response.writeHead(404).end()
    })
  )

  const made: ForgingIssuer = {
    issuer: `${origin}${path}`,
    jwksUri: `${origin}/jwks`,
    published: [key.jwk],
    key,
    behaviour: 'good',
    requests,
    keySetRequests: () => requests.filter((path) => path === '/jwks').length,
    async sign(claims = {}, header = {}, by = key) {
      const seconds = Math.floor(now / 1000)
      const good = {
        iss: made.issuer,
        aud: resource,
        sub: 'ada',
        client_id: 'app',
        scope: 'mcp',
        iat: seconds,
        exp: seconds + 300,
        jti: randomUUID()
      }
      const payload = new TextEncoder().encode(JSON.stringify({ ...good, ...claims }))
      const protectedHeader = { alg: by.alg, kid: by.kid, typ: 'at+jwt', ...header }
      return await new CompactSign(payload)
        .setProtectedHeader(JSON.parse(JSON.stringify(protectedHeader)) as CompactJWSHeaderParameters)
        .sign(by.privateKey)
    }
  }
  return made
}

function json(response: ServerResponse, value: unknown) {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

function behave(response: ServerResponse, { behaviour, published, key }: ForgingIssuer) {
  switch (behaviour) {
    case 'good':
      return json(response, { keys: published })
    case 'down':
      return response.writeHead(503).end()
    case 'html':
      return response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Sign in</title>')
    case 'redirect':
      return response.writeHead(302, { location: '/elsewhere' }).end()
    case 'crowd':
      return json(response, { keys: Array.from({ length: 10_000 }, (_, index) => ({ kty: 'EC', kid: String(index) })) })
    case 'duplicates':
      return json(response, { keys: [key.jwk, { ...key.jwk, x: key.jwk.y }] })
    case 'gzip':
      return response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(Buffer.alloc(100))
    case 'hanging':
      return response.writeHead(200, { 'content-type': 'application/json' }).write('{"keys":[')
    case 'huge':
      return pour(response, 100 * 1024 * 1024)
    case 'endless':
      return pour(response, Infinity)
  }
}

/** As fast as the reader takes it. */
function pour(response: ServerResponse, bytes: number) {
  const chunk = Buffer.alloc(64 * 1024, ' ')
  let left = bytes
  response.writeHead(200, { 'content-type': 'application/json' })
  const more = () => {
    while (left > 0 && !response.destroyed) {
      left -= chunk.length
      if (!response.write(chunk)) return response.once('drain', more)
    }
    return response.end()
  }
  more()
}
