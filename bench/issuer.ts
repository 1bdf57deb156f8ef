// The identity provider of the benches: a key set, ES256 tokens signed with it, and what opaque tokens mean. Asked once,
// or once in half a minute, so never part of what is measured.

import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'

export interface Issuer {
  readonly url: string
  /** @param audience URL of an endpoint */
  token(audience: string): Promise<string>
  /** One that the issuer alone can read (RFC 7662). */
  opaque(audience: string): string
  close(): void
}

export async function startIssuer(): Promise<Issuer> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }
  const audiences = new Map<string, string>()
  const answer = async (request: IncomingMessage) =>
    request.url === '/introspect' ? meaningOf(await text(request)) : { keys: [jwk] }
  const meaningOf = (body: string) => {
    const aud = audiences.get(new URLSearchParams(body).get('token') ?? '')
    const claims = { iss: url, sub: 'bench', client_id: 'bench', scope: 'mcp', token_type: 'Bearer' }
    const iat = Math.floor(Date.now() / 1000)
    return aud === undefined ? { active: false } : { active: true, ...claims, aud, iat, exp: iat + 7_200 }
  }
  const server = createServer((request, response) => {
    void answer(request).then((json) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json))
    )
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    token: (audience) =>
      new SignJWT({ client_id: 'bench', scope: 'mcp' })
        .setProtectedHeader({ alg: 'ES256', kid: 'bench', typ: 'at+jwt' })
        .setIssuer(url)
        .setSubject('bench')
        .setAudience(audience)
        .setJti('bench')
        .setIssuedAt()
        .setExpirationTime('2h')
        .sign(privateKey),
    opaque(audience) {
      const token = randomBytes(32).toString('base64url')
      audiences.set(token, audience)
      return token
    },
    close() {
      server.closeAllConnections()
      server.close()
    }
  }
}
