// Reads a JSON Web Key Set (RFC 7517) of an issuer: a set is accepted whole, or not at all.

import { createLocalJWKSet, type CryptoKey, type JWK } from 'jose'
import { isObject } from '../protocol/messages.ts'

export interface KeySet {
  /** Rejects with jose's JWKSNoMatchingKey where no key fits `alg` and `kid`. */
  readonly find: (header: { readonly alg: string; readonly kid?: string }) => Promise<CryptoKey>
  /** How many keys may be used. */
  readonly size: number
  /** Why others may not, for the log. */
  readonly ignored: readonly string[]
}

const maxKeys = 100

/** @throws Error where the document is no key set, has too many keys, or two different ones under one name */
export function readKeySet(document: unknown): KeySet {
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
  const find = createLocalJWKSet({ keys: [...usable.values()] })
  return { find, size: usable.size, ignored }
}

function material(key: Readonly<Record<string, unknown>>): string {
  return JSON.stringify([key['n'], key['e'], key['x'], key['y']])
}

function whyUnusable(key: Readonly<Record<string, unknown>>): string | undefined {
  const kty = key['kty']
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return 'not an asymmetric key'
  if (key['use'] !== undefined && key['use'] !== 'sig') return 'not for signatures'
  if (key['d'] !== undefined) return 'a private key that was published: revoke it'
  if (kty !== 'RSA') return undefined
  const { n, e } = key
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
