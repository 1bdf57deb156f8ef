// The index of grants: which person has a grant for which upstream, for administrators. It is needed because the store
// keys of grants hold digests only. It holds no secrets.

import type { Person } from '../../config/auth/upstream-auth.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { foreverMs, grantIndexKey, grantsListed } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'

export interface ListedGrant {
  readonly person: Person
  readonly upstream: string
}

export function createGrantIndex(store: Pick<Store, 'append' | 'entries'>) {
  return {
    /**
     * Adds a grant to the index before it is written: one that is not listed could not be revoked.
     * @throws GatewayError unavailable
     */
    async add({ tenant, issuer, subject }: Person, upstream: string): Promise<void> {
      const key = grantIndexKey(tenant)
      const entry = JSON.stringify([issuer, subject, upstream])
      // A person who connects again and again must not push out the entries of others.
      if ((await store.entries(key)).includes(entry)) return
      await store.append(key, entry, { ttlMs: foreverMs, keep: grantsListed })
    },
    /** Lists the grants; some may have been removed since. @throws GatewayError unavailable */
    async list(tenant: TenantId): Promise<ListedGrant[]> {
      const entries = new Set(await store.entries(grantIndexKey(tenant)))
      return [...entries].map((entry) => {
        const [issuer, subject, upstream] = JSON.parse(entry) as [string, string, string]
        return { person: { tenant, issuer, subject }, upstream }
      })
    }
  }
}
