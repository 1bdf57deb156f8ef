// The key that signs audit records: that of the configuration, or one that is made once and kept in the store. The key
// of the hashes of arguments follows from it.

import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject
} from 'node:crypto'
import { auditSigningKey } from '../store/keys.ts'
import { type Store, unavailable } from '../store/port.ts'

export interface AuditKeys {
  readonly privateKey: KeyObject
  /** The 32 bytes of the Ed25519 key (RFC 8032), base64url. */
  readonly publicKey: string
  /**
   * Returns the key for HMAC-SHA-256: equal arguments of a tenant have equal hashes, and nobody without the key can
   * guess them.
   */
  argumentKey(tenant: string): KeyObject
}

/**
 * @param pem PKCS #8 of the configuration
 * @throws GatewayError unavailable where the store cannot be reached
 */
export async function loadAuditKeys(pem: string | undefined, store: Store): Promise<AuditKeys> {
  return auditKeysOf(createPrivateKey(pem ?? (await keptKey(store))))
}

async function keptKey(store: Store): Promise<string> {
  const made = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  await store.set(auditSigningKey, made, { when: 'absent' })
  const kept = await store.get(auditSigningKey)
  if (kept === undefined) throw unavailable('The store of the gateway does not keep what is written to it.')
  return kept
}

function auditKeysOf(privateKey: KeyObject): AuditKeys {
  const { x = '', d = '' } = privateKey.export({ format: 'jwk' })
  const secret = Buffer.from(d, 'base64url')
  const derived = new Map<string, KeyObject>()
  return {
    privateKey,
    publicKey: x,
    argumentKey(tenant) {
      const key =
        derived.get(tenant) ?? createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', `arguments ${tenant}`, 32)))
      derived.set(tenant, key)
      return key
    }
  }
}

/** @param text the 32 bytes of the key, base64url, as the gateway logs them. @throws Error for anything else */
export const auditPublicKey = (text: string): KeyObject =>
  createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: text }, format: 'jwk' })

const publicKeyText = /^[\w-]{43}$/

/** @returns undefined for what is none */
export function namedKey(text: unknown): KeyObject | undefined {
  try {
    return typeof text === 'string' && publicKeyText.test(text) ? auditPublicKey(text) : undefined
  } catch {
    return undefined
  }
}
