// What the login front keeps in the store, sealed: whoever reads the store learns neither tokens nor people. Keys hold
// digests only.

import type { TenantId } from '../protocol/messages.ts'
import { digest, foreverMs, loginGrantKey, loginKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'

export type LoginRecords = ReturnType<typeof createLoginRecords>

/** Tokens of one grant that can be revoked together; those issued first are forgotten first. */
const grantMembersKept = 500

export function createLoginRecords(tenant: TenantId, { store, sealer }: { store: Store; sealer: Sealer }) {
  const binding = (kind: string, id: string): string[] => [tenant, kind, digest(id)]

  async function read(kind: string, id: string): Promise<unknown> {
    const sealed = await store.get(loginKey(tenant, kind, id))
    const text = sealed === undefined ? undefined : sealer.open('login', binding(kind, id), sealed)
    return text === undefined ? undefined : (JSON.parse(text) as unknown)
  }

  return {
    read,
    async write(kind: string, id: string, value: unknown, ttlMs = foreverMs): Promise<void> {
      const sealed = sealer.seal('login', binding(kind, id), JSON.stringify(value))
      await store.set(loginKey(tenant, kind, id), sealed, { ttlMs })
    },
    /** @returns whether there was one: of several who delete one record, one is told so */
    remove: (kind: string, id: string): Promise<boolean> => store.delete(loginKey(tenant, kind, id)),
    /** Reads a record that may be used once. */
    async take(kind: string, id: string): Promise<unknown> {
      const value = await read(kind, id)
      return value !== undefined && (await store.delete(loginKey(tenant, kind, id))) ? value : undefined
    },
    /** @returns true for the first who asks within the time, in all processes */
    isFirst: (kind: string, id: string, ttlMs: number): Promise<boolean> =>
      store.set(loginKey(tenant, kind, id), '1', { ttlMs, when: 'absent' }),
    touch: (kind: string, id: string, ttlMs: number): Promise<boolean> =>
      store.touch(loginKey(tenant, kind, id), ttlMs),
    /** @returns how many there were in the window, this one included */
    count: (kind: string, ttlMs: number): Promise<number> => store.count(loginKey(tenant, kind, ''), 1, ttlMs),
    /** The token belongs to the grant, and ends with it. */
    addToGrant: (grant: string, kind: string, id: string, ttlMs: number): Promise<void> =>
      store.append(loginGrantKey(tenant, grant), loginKey(tenant, kind, id), { ttlMs, keep: grantMembersKept }),
    async removeGrant(grant: string): Promise<void> {
      const members = await store.entries(loginGrantKey(tenant, grant))
      await Promise.all([...members, loginGrantKey(tenant, grant)].map((member) => store.delete(member)))
    }
  }
}
