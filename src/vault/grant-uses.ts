// When people used last what they have connected, for their page: noted once a minute at most, and nobody waits for it.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import type { Log } from '../observe/log.ts'
import { grantUsedKey, yearTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'

/** The time between two notes of one use, in milliseconds. */
const notedMs = 60_000

interface GrantUsesOptions {
  readonly store: Store
  /** The time of day. */
  readonly wall: { now(): number }
  readonly log: Log
}

export type GrantUses = ReturnType<typeof createGrantUses>

export function createGrantUses({ store, wall, log }: GrantUsesOptions) {
  /** When a use was noted, by the hash of a definition, which belongs to one person. */
  const noted = new Map<string, number>()
  const keyOf = ({ tenant, issuer, subject }: Person, upstream: string): string =>
    grantUsedKey(tenant, issuer, subject, upstream)

  return {
    /** A person's own upstream was asked for something that they wanted. */
    note({ hash, name, person }: UpstreamDefinition): void {
      const now = wall.now()
      if (person === undefined || now < (noted.get(hash) ?? 0) + notedMs) return
      noted.set(hash, now)
      store
        .set(keyOf(person, name), String(now), { ttlMs: yearTtlMs })
        .catch((err: unknown) => log.debug({ err }, 'when an account was used last is not known'))
    },
    /** @returns epoch ms. @throws GatewayError unavailable */
    async last(person: Person, upstream: string): Promise<number | undefined> {
      const at = Number(await store.get(keyOf(person, upstream)))
      return at > 0 ? at : undefined
    },
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const hash of noted.keys()) if (!hashes.has(hash)) noted.delete(hash)
    }
  }
}
