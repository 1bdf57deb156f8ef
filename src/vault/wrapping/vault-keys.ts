// The keys of the vault: each tenant has its own, in the store, wrapped by a configured key. The store alone reveals no
// value, and without the key of a tenant all its values are lost.

import { randomBytes } from 'node:crypto'
import type { Snapshot } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { vaultKeyKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import { createTenantWrapping, isServiceAway } from './tenant-wrapping.ts'
import { wrappedBy } from './wrapping-key.ts'

/** How long a tenant's key is used before it is read from the store again: a deleted key is noticed soon. */
const keptMs = 60_000
/** How long an unchanged key is used before it is unwrapped again: the permission at a key service may end. */
const unwrappedMs = 15 * 60_000

/** How long an unwrapped key is used while its key service is away. */
const awayMs = 24 * 60 * 60_000

/** The epoch of each tenant: a tenant that was removed and created again has a new one. */
export interface Epochs {
  /** @throws GatewayError unavailable */
  epochOf(tenant: TenantId): Promise<number>
  /** Whether this process knows no later epoch. */
  isCurrentEpoch(tenant: TenantId, epoch: number): boolean
}

interface VaultKeysOptions {
  readonly store: Store
  readonly snapshot: () => Pick<Snapshot, 'vault'>
  readonly epochs: Epochs
  readonly clock: { now(): number }
  readonly log: Log
}

interface KeyOfTenant {
  readonly key: Uint8Array
  /** The epoch of the tenant when the key was read. */
  readonly epoch: number
  /** The wrapped key, as it stands in the store. */
  readonly text: string
  readonly unwrappedAt: number
  /** The key of the configuration that opened it, as text. */
  readonly by: string | undefined
}

/** The result of a rotation: what has become of the keys of tenants. */
export interface RotatedKeys {
  readonly first: string
  /** How many keys were wrapped with the first key now, and how many were before. */
  readonly anew: number
  readonly before: number
  readonly failed: ReadonlyArray<{ readonly tenant: TenantId; readonly error: unknown }>
}

export type VaultKeys = ReturnType<typeof createVaultKeys>

export function createVaultKeys({ store, snapshot, epochs, clock, log }: VaultKeysOptions) {
  const known = new Map<TenantId, { readonly value: Promise<KeyOfTenant>; readonly until: number }>()

  const { firstId, wrapped, unwrapped, openerOf } = createTenantWrapping(snapshot, log)

  /** Whether the present configuration would unwrap it with the same key. */
  const isOpenedBy = ({ text, by }: KeyOfTenant): boolean => by !== undefined && by === openerOf(text)

  /** @param reading the key as it was read before: it is not unwrapped again while the stored text is the same */
  async function read(tenant: TenantId, reading: Promise<KeyOfTenant> | undefined): Promise<KeyOfTenant> {
    const before = await reading?.catch(() => undefined)
    // When a tenant is removed, its key is deleted before the epoch changes (session/session-epochs.ts).
    const epoch = await epochs.epochOf(tenant)
    const place = vaultKeyKey(tenant)
    if ((await store.get(place)) === undefined)
      await store.set(place, await wrapped(randomBytes(32), tenant), { when: 'absent' })
    const text = (await store.get(place)) ?? ''
    const now = clock.now()
    const isSame = before !== undefined && before.epoch === epoch && before.text === text && isOpenedBy(before)
    if (isSame && now < before.unwrappedAt + unwrappedMs) return before
    const by = openerOf(text)
    try {
      return { key: await unwrapped(text, tenant), epoch, text, unwrappedAt: now, by }
    } catch (error) {
      // The service did not refuse: an outage must not end people's connections.
      if (isSame && isServiceAway(error) && now < before.unwrappedAt + awayMs) return before
      throw error
    }
  }

  /**
   * Wraps the key of a tenant anew. A read never does that: a process that has the keys in their earlier order would
   * undo it.
   */
  async function wrapAnew(tenant: TenantId, text: string): Promise<void> {
    const key = await unwrapped(text, tenant)
    if (wrappedBy(text) === firstId()) return
    const next = await wrapped(key, tenant)
    // The tenant may have been removed meanwhile, and made again with another key.
    await store.set(vaultKeyKey(tenant), next, { when: { is: text } })
  }

  /**
   * Unwraps the keys of these tenants and wraps them with the first configured key, so that the other keys can be
   * removed. Each is checked once more afterwards, because a process with another order of keys may have written
   * meanwhile.
   * @param tenantsNow called before and afterwards
   * @throws GatewayError unavailable if no keys are configured
   */
  async function rotate(tenantsNow: () => Promise<Iterable<TenantId>>): Promise<RotatedKeys> {
    const first = firstId()
    const counts = { anew: 0, before: 0 }
    const left: Array<RotatedKeys['failed'][number]> = []
    for (const tenant of await tenantsNow()) {
      try {
        const text = await store.get(vaultKeyKey(tenant))
        if (text === undefined) continue
        await wrapAnew(tenant, text)
        counts[wrappedBy(text) === first ? 'before' : 'anew']++
      } catch (error) {
        left.push({ tenant, error })
      }
    }
    const known = new Set(left.map(({ tenant }) => tenant))
    for (const tenant of await tenantsNow()) {
      if (known.has(tenant)) continue
      const error = await whyNotUnder(first, tenant).catch((reason: unknown) => reason)
      if (error !== undefined) left.push({ tenant, error })
    }
    return { first, ...counts, failed: left }
  }

  /** @returns undefined if the key of the tenant is wrapped by this one, or there is none; else the reason */
  async function whyNotUnder(id: string, tenant: TenantId): Promise<Error | undefined> {
    const text = await store.get(vaultKeyKey(tenant))
    if (text === undefined || wrappedBy(text) === id) return undefined
    return new Error(
      `its key was wrapped with ${wrappedBy(text)} meanwhile: a process has other keys, or has them in another order`
    )
  }

  let settledWith: string | undefined

  /** Wraps the keys of all tenants anew after a change of the wrapping keys. Never rejects. */
  async function settle(tenants: Iterable<TenantId>): Promise<void> {
    const [first, ...others] = snapshot().vault?.keys ?? []
    if (first === undefined || others.length === 0 || first.id === settledWith) return
    settledWith = first.id
    const all = [...tenants]
    const { failed: left } = await rotate(() => Promise.resolve(all))
    for (const { tenant, error: err } of left)
      log.warn({ err, tenant }, 'the key of a tenant cannot be wrapped with the first key of the vault')
    if (left.length > 0) settledWith = undefined
    else log.info({ kid: first.id }, 'all tenants are under the first key of the vault; the others can be taken out')
  }

  /** Logs the tenants whose keys cannot be opened, before a request needs one. Never rejects. */
  async function check(tenants: Iterable<TenantId>): Promise<void> {
    for (const tenant of tenants) {
      const text = await store.get(vaultKeyKey(tenant)).catch(() => undefined)
      if (text !== undefined) await unwrapped(text, tenant).catch(() => undefined)
    }
  }

  return {
    check,
    /** Returns the key of a tenant; creates it if there is none. @throws GatewayError unavailable */
    async of(tenant: TenantId): Promise<Uint8Array> {
      const now = clock.now()
      const found = known.get(tenant)
      const kept = found !== undefined && now < found.until ? await found.value : undefined
      if (kept !== undefined && epochs.isCurrentEpoch(tenant, kept.epoch) && isOpenedBy(kept)) return kept.key
      const again = known.get(tenant)
      // Another caller that waited has begun to read it again.
      if (again !== undefined && again !== found) return (await again.value).key
      const value = read(tenant, found?.value)
      known.set(tenant, { value, until: now + keptMs })
      value.catch(() => {
        if (known.get(tenant)?.value !== value) return
        // After a failure of the store or a service, the key unwrapped before is kept.
        if (found === undefined) known.delete(tenant)
        else known.set(tenant, { value: found.value, until: -Infinity })
      })
      return (await value).key
    },
    /** Forgets the keys of tenants that are no longer configured. */
    retain(tenants: Pick<ReadonlySet<TenantId>, 'has'>): void {
      for (const tenant of known.keys()) if (!tenants.has(tenant)) known.delete(tenant)
    },
    rotate,
    settle
  }
}
