// The keys of the vault: each tenant has one of its own, in the store, wrapped by a key of the configuration. Whoever
// has the store alone can read nothing, and a tenant whose key is deleted has lost everything.

import { randomBytes } from 'node:crypto'
import type { Snapshot } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { vaultKeyKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import { createTenantWrapping, isServiceAway } from './tenant-wrapping.ts'
import { wrappedBy } from './wrapping-key.ts'

/** A tenant's key is looked for in the store so often: what an operator has deleted is gone soon. */
const keptMs = 60_000
/** While the store has the same text, it is unwrapped so often: the right to use the key of a service may end. */
const unwrappedMs = 15 * 60_000

/** While its service is away, a key that was opened is used on for so long. */
const awayMs = 24 * 60 * 60_000

/** The epoch of each tenant: another one once a tenant was removed, whoever comes under its name. */
export interface Epochs {
  /** @throws GatewayError unavailable */
  epochOf(tenant: TenantId): Promise<number>
  /** Is no later one known here? */
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

  /** Would the configuration of now open it in the same way? */
  const isOpenedBy = ({ text, by }: KeyOfTenant): boolean => by !== undefined && by === openerOf(text)

  /** @param reading what was read before: not unwrapped again while the store has the same */
  async function read(tenant: TenantId, reading: Promise<KeyOfTenant> | undefined): Promise<KeyOfTenant> {
    const before = await reading?.catch(() => undefined)
    // Where the tenant was removed, its key is deleted first (session/session-epochs.ts).
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
      // It refused nothing: people and their connections are not to end with it.
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
   * The keys of these tenants are opened, and wrapped with the first key: it opens them then, and no other is needed.
   * Each is looked at once more afterwards: a process that has the keys in another order may have written meanwhile.
   * @param tenantsNow asked before and afterwards
   * @throws GatewayError unavailable where there are no keys
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

  /** @returns undefined where the key of the tenant is under this one, or is not there */
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
    /** The key of a tenant, made where there is none. @throws GatewayError unavailable */
    async of(tenant: TenantId): Promise<Uint8Array> {
      const now = clock.now()
      const found = known.get(tenant)
      const kept = found !== undefined && now < found.until ? await found.value : undefined
      if (kept !== undefined && epochs.isCurrentEpoch(tenant, kept.epoch) && isOpenedBy(kept)) return kept.key
      const again = known.get(tenant)
      // Others who waited have asked for it already.
      if (again !== undefined && again !== found) return (await again.value).key
      const value = read(tenant, found?.value)
      known.set(tenant, { value, until: now + keptMs })
      value.catch(() => {
        if (known.get(tenant)?.value !== value) return
        // The store or a service was away for a moment: what was opened before need not be opened again.
        if (found === undefined) known.delete(tenant)
        else known.set(tenant, { value: found.value, until: -Infinity })
      })
      return (await value).key
    },
    /** Forgets those of tenants that are configured no more. */
    retain(tenants: Pick<ReadonlySet<TenantId>, 'has'>): void {
      for (const tenant of known.keys()) if (!tenants.has(tenant)) known.delete(tenant)
    },
    rotate,
    settle
  }
}
