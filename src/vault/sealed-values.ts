// Values of the vault in the store: JWE under the key of the tenant (RFC 7516, A256GCM). Each is bound to its store
// key, so that a value copied to another key cannot be decrypted.

import { CompactEncrypt, compactDecrypt } from 'jose'
import type { TenantId } from '../protocol/messages.ts'
import { digest } from '../store/keys.ts'
import { type SetOptions, type Store, unavailable } from '../store/port.ts'
import type { Log } from '../observe/log.ts'
import type { VaultKeys } from './wrapping/vault-keys.ts'

export type SealedValues = ReturnType<typeof createSealedValues>

/** How often a change is tried while other processes change the same value. */
const maxTries = 8

export function createSealedValues(store: Store, keys: VaultKeys, log: Log) {
  async function opened(tenant: TenantId, key: string, text: string): Promise<unknown> {
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
  }

  const sealed = async (tenant: TenantId, key: string, value: unknown): Promise<string> =>
    await new CompactEncrypt(Buffer.from(JSON.stringify(value)))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', for: digest(key) })
      .encrypt(await keys.of(tenant))

  /** @returns the value, and a function that replaces it: false if another process has replaced it before */
  async function readToReplace(tenant: TenantId, key: string) {
    const text = await store.get(key)
    const when = text === undefined ? ('absent' as const) : { is: text }
    return {
      value: text === undefined ? undefined : await opened(tenant, key, text),
      replace: async (value: unknown, ttlMs?: number): Promise<boolean> =>
        await store.set(key, await sealed(tenant, key, value), { when, ...(ttlMs !== undefined && { ttlMs }) })
    }
  }

  return {
    /** @returns undefined if there is no value, or it cannot be decrypted, which is logged */
    read: async (tenant: TenantId, key: string): Promise<unknown> => (await readToReplace(tenant, key)).value,
    readToReplace,
    /** Gives the value a new time to live, in milliseconds, also if it was replaced meanwhile. */
    touch: (key: string, ttlMs: number): Promise<boolean> => store.touch(key, ttlMs),
    /** @returns false if `when` was not met */
    write: async (tenant: TenantId, key: string, value: unknown, options: SetOptions = {}): Promise<boolean> =>
      await store.set(key, await sealed(tenant, key, value), options),
    /**
     * Changes a value by compare-and-set, so that a late process overwrites nothing that it has not read.
     * @param next returns the new value; undefined: no change. Called again if another process has written meanwhile
     * @returns whether it was changed
     */
    async change(tenant: TenantId, key: string, next: (value: unknown) => unknown, ttlMs?: number): Promise<boolean> {
      for (let tries = 0; tries < maxTries; tries++) {
        const { value, replace } = await readToReplace(tenant, key)
        const changed = value === undefined ? undefined : next(value)
        if (changed === undefined) return false
        if (await replace(changed, ttlMs)) return true
      }
      throw unavailable('What was connected is being changed by others. Try again in a moment.')
    }
  }
}
