// API keys of a tenant: known by their SHA-256 only.

import { hash, timingSafeEqual } from 'node:crypto'
import type { KeyConfig } from '../config/snapshot.ts'

export interface Keyring {
  /** @returns the key's entry, or undefined where it is none of the tenant's */
  find(presented: string): KeyConfig | undefined
}

export function createKeyring(keys: readonly KeyConfig[]): Keyring {
  const entries = keys
    .map((key) => ({ key, digest: Buffer.from(key.sha256, 'hex') }))
    .filter((entry) => entry.digest.length === 32)
  return {
    find(presented) {
      if (entries.length === 0) return undefined
      const digest = hash('sha256', presented, 'buffer')
      let found: KeyConfig | undefined
      // Every entry is compared, so that the time does not tell which one came close.
      for (const entry of entries) {
        if (timingSafeEqual(entry.digest, digest)) found = entry.key
      }
      return found
    }
  }
}
