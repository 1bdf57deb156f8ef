// The port of wrapping keys, which encrypt the keys of tenants: a key of the configuration, or one in a key management
// service. docs/connections.md says what a service has to support.

import { CompactEncrypt, compactDecrypt } from 'jose'
import type { VaultKey } from '../../config/snapshot.ts'
import { digest } from '../../store/keys.ts'

/** The key service does not answer or has a temporary failure: it has not refused. */
export class KeyServiceAway extends Error {}

export interface WrappingKey {
  /** The id of the key in the configuration, and in the values that it has wrapped. */
  readonly id: string
  /** @returns the text for the store: `wrappedBy` reads the id from it; it reveals neither the key nor the tenant */
  wrap(key: Uint8Array, tenant: string): Promise<string>
  /**
   * @throws KeyServiceAway if the service is away; Error for a text that was not wrapped by this key for this tenant
   */
  unwrap(text: string, tenant: string): Promise<Uint8Array>
}

/** The first part of what is stored, as that of a JWE. */
interface WrappedHeader {
  readonly kid?: unknown
}

/** Reads which key has wrapped the text; empty where no key has. */
export function wrappedBy(text: string): string {
  try {
    const { kid } = JSON.parse(Buffer.from(text.split('.', 1)[0] ?? '', 'base64url').toString()) as WrappedHeader
    return typeof kid === 'string' ? kid : ''
  } catch {
    return '' // Damaged, or no text of ours: the caller reports it.
  }
}

/** Makes the wrapping key of a configured key. The client of a service is loaded with its first use. */
export function wrappingKeyOf({ id, key, awsKms }: VaultKey): WrappingKey {
  if (awsKms === undefined) return localKey(id, Buffer.from(key ?? '', 'base64'))
  let loading: Promise<WrappingKey> | undefined
  const loaded = (): Promise<WrappingKey> =>
    (loading ??= import('./aws-kms.ts').then(({ awsKmsKey }) => awsKmsKey(id, awsKms)))
  return {
    id,
    wrap: async (own, tenant) => await (await loaded()).wrap(own, tenant),
    unwrap: async (text, tenant) => await (await loaded()).unwrap(text, tenant)
  }
}

/** JWE (RFC 7516) with A256GCMKW: the header, with the tenant in it, is authenticated. */
const localKey = (id: string, secret: Uint8Array): WrappingKey => ({
  id,
  wrap: async (key, tenant) =>
    await new CompactEncrypt(key)
      .setProtectedHeader({ alg: 'A256GCMKW', enc: 'A256GCM', kid: id, for: digest(tenant) })
      .encrypt(secret),
  async unwrap(text, tenant) {
    const { plaintext, protectedHeader } = await compactDecrypt(text, secret, {
      keyManagementAlgorithms: ['A256GCMKW'],
      contentEncryptionAlgorithms: ['A256GCM']
    })
    if (protectedHeader['for'] !== digest(tenant)) throw new Error('it is that of another tenant')
    return plaintext
  }
})
