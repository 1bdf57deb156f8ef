// When people last used their connections, for their page: stored at most once a minute, in the background.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import type { Log } from '../observe/log.ts'
import { grantUsedKey, yearTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'

/** The shortest time between two writes for one connection, in milliseconds. */
const notedMs = 60_000

interface GrantUsesOptions {
  readonly store: Store
  /** The time of day. */
  readonly wall: { now(): number }
  readonly log: Log
}

export type GrantUses = ReturnType<typeof createGrantUses>

export function createGrantUses({ store, wall, log }: GrantUsesOptions) {
  /** When a use was stored last, by the hash of the personal definition; epoch ms. */
  const noted = new Map<string, number>()
  const keyOf = ({ tenant, issuer, subject }: Person, upstream: string): string =>
    grantUsedKey(tenant, issuer, subject, upstream)

  return {
    /** Notes that a person used their own connection to an upstream. */
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
