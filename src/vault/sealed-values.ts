// Values of the vault at rest: JWE under the key of their tenant (RFC 7516, A256GCM), each bound to its place, so that
// one that was moved from the place of somebody else is nobody's.

import { CompactEncrypt, compactDecrypt } from 'jose'
import type { TenantId } from '../protocol/messages.ts'
import { digest } from '../store/keys.ts'
import type { SetOptions, Store } from '../store/port.ts'
import type { Log } from '../observe/log.ts'
import type { VaultKeys } from './wrapping/vault-keys.ts'

export type SealedValues = ReturnType<typeof createSealedValues>

export function createSealedValues(store: Store, keys: VaultKeys, log: Log) {
  return {
    /** @returns undefined where there is nothing, or nothing that can be opened, which is logged */
    async read(tenant: TenantId, key: string): Promise<unknown> {
      const text = await store.get(key)
      if (text === undefined) return undefined
      const own = await keys.of(tenant)
      try {
        const { plaintext, protectedHeader } = await compactDecrypt(text, own, {
          keyManagementAlgorithms: ['dir'],
          contentEncryptionAlgorithms: ['A256GCM']
        })
        if (protectedHeader['for'] !== digest(key)) throw new Error('it was sealed for another place')
        return JSON.parse(Buffer.from(plaintext).toString()) as unknown
      } catch (err) {
        log.error({ err, tenant }, 'a value of the vault cannot be opened; it counts as absent')
        return undefined
      }
    },
    /** @returns false where `when` was not met */
    async write(tenant: TenantId, key: string, value: unknown, options: SetOptions = {}): Promise<boolean> {
      const text = await new CompactEncrypt(Buffer.from(JSON.stringify(value)))
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', for: digest(key) })
        .encrypt(await keys.of(tenant))
      return await store.set(key, text, options)
    }
  }
}
