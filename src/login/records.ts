// What the login front keeps in the store, sealed with the key of the gateway: whoever reads the records, and not that
// key, which lies in the same store, learns neither tokens nor people. Keys hold digests only. It ends with the tenant,
// since another organisation may come under its name, and where people sign in at another provider, which may call
// somebody else by the same name.

import type { TenantId } from '../protocol/messages.ts'
import { digest, foreverMs, loginGrantKey, loginKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'

export type LoginRecords = ReturnType<typeof createLoginRecords>

/** Tokens of one grant that can be revoked together; those issued first are forgotten first. */
const grantMembersKept = 500
/** Consents of one person; whoever allows more has the oldest taken back. */
const consentsKept = 200

interface RecordOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly epochOf: (tenant: TenantId) => Promise<number>
}

interface Counted {
  readonly id: string
  readonly windowMs: number
  /** Epoch ms. */
  readonly now: number
}

/** @param provider issuer of the tenant's provider */
export function createLoginRecords(tenant: TenantId, provider: string, { store, sealer, epochOf }: RecordOptions) {
  /** Returns the key of a record, and what its seal is bound to. */
  async function placeOf(kind: string, id: string) {
    const own = JSON.stringify([await epochOf(tenant), provider, id])
    return { key: loginKey(tenant, kind, own), binding: [tenant, kind, digest(own)] }
  }

  async function readToReplace(kind: string, id: string) {
    const { key, binding } = await placeOf(kind, id)
    const sealed = await store.get(key)
    const text = sealed === undefined ? undefined : sealer.open('login', binding, sealed)
    const when = sealed === undefined ? 'absent' : { is: sealed }
    return {
      value: text === undefined ? undefined : (JSON.parse(text) as unknown),
      replace: (value: unknown): Promise<boolean> =>
        store.set(key, sealer.seal('login', binding, JSON.stringify(value)), { ttlMs: foreverMs, when })
    }
  }

  const read = async (kind: string, id: string): Promise<unknown> => (await readToReplace(kind, id)).value

  /** @returns whether there was one: of several who delete one record, one is told so */
  const remove = async (kind: string, id: string): Promise<boolean> => store.delete((await placeOf(kind, id)).key)

  async function removeGrant(grant: string): Promise<void> {
    const members = await store.entries(loginGrantKey(tenant, grant))
    await Promise.all([...members, loginGrantKey(tenant, grant)].map((member) => store.delete(member)))
  }

  /** First what lets its client ask again, then what it has. */
  async function endGrant(grant: string): Promise<void> {
    await remove('Grant', grant)
    await removeGrant(grant)
  }

  const openedAll = async ({ key, binding }: Awaited<ReturnType<typeof placeOf>>): Promise<string[]> =>
    (await store.entries(key)).flatMap((sealed) => sealer.open('login', binding, sealed) ?? [])

  return {
    read,
    remove,
    async write(kind: string, id: string, value: unknown, ttlMs = foreverMs): Promise<void> {
      const { key, binding } = await placeOf(kind, id)
      await store.set(key, sealer.seal('login', binding, JSON.stringify(value)), { ttlMs })
    },
    /** @returns what it is, and what writes something else in its place: false where another process did so before */
    readToReplace,
    /** Reads a record that may be used once. */
    async take(kind: string, id: string): Promise<unknown> {
      const value = await read(kind, id)
      return value !== undefined && (await remove(kind, id)) ? value : undefined
    },
    /** @returns true for the first who asks within the time, in all processes */
    isFirst: async (kind: string, id: string, ttlMs: number): Promise<boolean> =>
      store.set((await placeOf(kind, id)).key, '1', { ttlMs, when: 'absent' }),
    touch: async (kind: string, id: string, ttlMs: number): Promise<boolean> =>
      store.touch((await placeOf(kind, id)).key, ttlMs),
    /**
     * Adds to a counter that begins with the first of its window.
     * @param now epoch ms
     * @returns how many there were in the window, with these
     */
    async count(kind: string, { id, by, windowMs, now }: Counted & { readonly by: number }): Promise<number> {
      const counted = await store.count(loginKey(tenant, kind, id), by, windowMs)
      const since = { ttlMs: windowMs, when: 'absent' } as const
      if (by === 1 && counted === 1) await store.set((await placeOf(`${kind} since`, id)).key, String(now), since)
      return counted
    },
    /** @returns when the window of a counter began: epoch ms */
    async windowBegan(kind: string, id: string): Promise<number | undefined> {
      const since = await store.get((await placeOf(`${kind} since`, id)).key)
      return since === undefined ? undefined : Number(since)
    },
    /** @returns after how many seconds the next window of a counter begins, at the latest */
    async secondsLeft(kind: string, { id, windowMs, now }: Counted): Promise<number> {
      const since = await store.get((await placeOf(`${kind} since`, id)).key)
      const leftMs = since === undefined ? windowMs : Number(since) + windowMs - now
      return Math.max(1, Math.ceil(Math.min(leftMs, windowMs) / 1_000))
    },
    /** The token belongs to the grant, and ends with it. */
    addToGrant: async (grant: string, kind: string, id: string, ttlMs: number): Promise<void> =>
      store.append(loginGrantKey(tenant, grant), (await placeOf(kind, id)).key, { ttlMs, keep: grantMembersKept }),
    removeGrant,
    endGrant,
    /** Ids of what a person has allowed, oldest first; also of what is over. */
    grantsOf: async (subject: string): Promise<string[]> => openedAll(await placeOf('Consents', subject)),
    async addConsent(subject: string, grant: string, ttlMs: number): Promise<void> {
      const { key, binding } = await placeOf('Consents', subject)
      const known = await openedAll({ key, binding })
      if (known.includes(grant)) return
      const [oldest] = known.length >= consentsKept ? known : []
      await store.append(key, sealer.seal('login', binding, grant), { ttlMs, keep: consentsKept })
      if (oldest !== undefined) await endGrant(oldest)
    }
  }
}
