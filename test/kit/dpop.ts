// A client that holds a key, and proves it with each request (RFC 9449).

import { hash, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose'

export interface ProofOptions {
  readonly method?: string
  readonly url: string
  /** None: a proof for the token endpoint. */
  readonly token?: string
  /** Put over good ones; undefined removes a member. */
  readonly claims?: Record<string, unknown>
  readonly header?: Record<string, unknown>
}

export async function keyHolder(alg = 'ES256') {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  const jwk = await exportJWK(publicKey)
  return {
    thumbprint: await calculateJwkThumbprint(jwk),
    jwk,
    privateJwk: await exportJWK(privateKey),
    async proof({ method = 'POST', url, token, claims = {}, header = {} }: ProofOptions): Promise<string> {
      const payload = {
        jti: randomUUID(),
        htm: method,
        htu: url,
        iat: Math.floor(Date.now() / 1000),
        ...(token !== undefined && { ath: hash('sha256', token, 'base64url') }),
        ...claims
      }
      return await new SignJWT(JSON.parse(JSON.stringify(payload)) as Record<string, unknown>)
        .setProtectedHeader({ typ: 'dpop+jwt', alg, jwk, ...header })
        .sign(privateKey)
    }
  }
}
