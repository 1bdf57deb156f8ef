// Reads the published key set of an issuer and selects the keys that may verify signatures.

import { createLocalJWKSet, type JWK } from 'jose'
import { isObject, type JsonObject } from '../protocol/messages.ts'

export type KeySet = ReturnType<typeof readKeySet>

const maxKeys = 100

/**
 * Reads a JSON Web Key Set (RFC 7517): it is accepted whole, or not at all.
 * @returns `size`: how many keys may be used; `ignored`: why others may not, for the log
 * @throws Error where the document is no key set, has too many keys, or two different ones under one name
 */
export function readKeySet(document: unknown) {
  const keys = isObject(document) ? document['keys'] : undefined
  if (!Array.isArray(keys)) throw new Error('the answer is not a key set: it has no "keys" array')
  if (keys.length > maxKeys) throw new Error(`the key set has ${keys.length} keys; at most ${maxKeys} are taken`)
  const usable = new Map<string, JWK>()
  const ignored: string[] = []
  for (const key of keys as unknown[]) {
    if (!isObject(key)) throw new Error('a member of the key set is not an object')
    const problem = whyUnusable(key)
    if (problem !== undefined) {
      ignored.push(problem)
      continue
    }
    const id = JSON.stringify([key['kid'] ?? material(key), key['kty'], key['crv'], key['alg']])
    const other = usable.get(id)
    // With two keys under one id, an attacker could choose which of them a signature is checked with.
    if (other !== undefined && material(other) !== material(key))
      throw new Error('the key set has two different keys of the same kid')
    usable.set(id, key)
  }
  return { find: createLocalJWKSet({ keys: [...usable.values()] }), size: usable.size, ignored }
}

const material = ({ n, e, x, y }: JsonObject): string => JSON.stringify([n, e, x, y])

/** @returns undefined for a public key that signatures may be checked with */
export function whyUnusable({ kty, use, d, n, e }: JsonObject): string | undefined {
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return 'not an asymmetric key'
  if (use !== undefined && use !== 'sig') return 'not for signatures'
  if (d !== undefined) return 'a private key that was published: revoke it'
  if (kty !== 'RSA') return undefined
  if (typeof n !== 'string' || typeof e !== 'string') return 'an RSA key without modulus or exponent'
  const bits = modulusBits(n)
  if (bits < 2048) return `an RSA key of ${bits} bits: 2048 are needed`
  // Far larger numbers make each verification slow enough to be an attack.
  return bits > 8192 || e.length > 6 ? 'an RSA key of absurd size' : undefined
}

function modulusBits(n: string): number {
  const bytes = Buffer.from(n, 'base64url')
  const first = bytes.findIndex((byte) => byte !== 0)
  return first === -1 ? 0 : (bytes.length - first) * 8 - Math.clz32(bytes[first] ?? 0) + 24
}
