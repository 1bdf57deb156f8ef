// API keys of a tenant, and admin keys. Only their SHA-256 is known; their form lets secret scanners recognise them.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { KeyConfig } from '../config/auth/auth-config.ts'
import { refused } from './bearer.ts'

/** 32 random bytes, and a checksum: a scanner finds them by their form, and knows those that only look like it. */
export function newApiKey(): string {
  const secret = randomBytes(32).toString('base64url')
  return `gatehouse_${secret}${checksumOf(secret)}`
}

const checksumOf = (secret: string): string => crc32(secret).toString(16).padStart(8, '0')

export function createKeyring<Key extends Pick<KeyConfig, 'sha256' | 'previous'>>(keys: readonly Key[]) {
  const entries = keys
    .flatMap((key) => [
      { key, digest: Buffer.from(key.sha256, 'hex'), until: Infinity },
      ...(key.previous === undefined
        ? []
        : [{ key, digest: Buffer.from(key.previous.sha256, 'hex'), until: key.previous.until }])
    ])
    .filter((entry) => entry.digest.length === 32)
  return {
    find(presented: string): Key | undefined {
      return this.entry(presented)?.key
    },

    /**
     * Finds the key of a presented text, with the time until which that text is good, in epoch ms: a replaced one has
     * an end.
     */
    entry(presented: string): { readonly key: Key; readonly until: number } | undefined {
      if (entries.length === 0) return undefined
      const digest = hash('sha256', presented, 'buffer')
      let found: (typeof entries)[number] | undefined
      // Every entry is compared, so that the time does not tell which one came close.
      for (const entry of entries) if (timingSafeEqual(entry.digest, digest)) found = entry
      return found
    }
  }
}

/**
 * Returns until when a key is valid at an endpoint, in epoch ms.
 * @param until the end of the presented text: a replaced text of a key ends earlier than the key
 * @throws GatewayError unauthenticated
 */
export function endOfKey(
  { name, expires, endpoints }: KeyConfig,
  endpoint: string,
  until: number,
  now: number
): number {
  const end = Math.min(until, expires ?? Infinity)
  if (now >= end) throw refused('expired', 'The API key has expired. Ask for a new one.', name)
  if (!isForEndpoint({ endpoints }, endpoint)) throw refused('endpoint', 'The API key is not for this endpoint.', name)
  return end
}

/** Whether a key is for an endpoint. A key without a list is for all endpoints of its tenant. */
export const isForEndpoint = (
  { endpoints = [] }: { readonly endpoints?: readonly string[] | undefined },
  endpoint: string
): boolean => endpoints.length === 0 || endpoints.includes(endpoint)
