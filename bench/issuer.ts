// The identity provider of the benches: a key set, and ES256 tokens signed with it. Asked once, so never part of what
// is measured.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'

export interface Issuer {
  readonly url: string
  /** @param audience URL of an endpoint */
  token(audience: string): Promise<string>
  close(): void
}

export async function startIssuer(): Promise<Issuer> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [jwk] }))
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
    close() {
      server.closeAllConnections()
      server.close()
    }
  }
}
