// The keys of the vault: each tenant has one of its own, in the store, wrapped by a key of the configuration. Whoever
// has the store alone can read nothing, and a tenant whose key is deleted has lost everything.

import { randomBytes } from 'node:crypto'
import type { Snapshot, VaultKey } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError, type TenantId } from '../../protocol/messages.ts'
import { vaultKeyKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import { wrappedBy, type WrappingKey, wrappingKeyOf } from './wrapping-key.ts'

/** A tenant's key is looked for in the store so often: what an operator has deleted is gone soon. */
const keptMs = 60_000
/** While the store has the same text, it is unwrapped so often: the right to use the key of a service may end. */
const unwrappedMs = 15 * 60_000

/** Of tenants: another one once a tenant was removed, whoever comes under its name. */
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
  /** Of the tenant when it was read. */
  readonly epoch: number
  /** As the store has it. */
  readonly text: string
  readonly unwrappedAt: number
}

/** What has become of the keys of tenants. */
export interface RotatedKeys {
  readonly first: string
  /** How many were wrapped with the first key now, and how many were before. */
  readonly anew: number
  readonly before: number
  readonly failed: ReadonlyArray<{ readonly tenant: TenantId; readonly error: unknown }>
}

export type VaultKeys = ReturnType<typeof createVaultKeys>

export function createVaultKeys({ store, snapshot, epochs, clock, log }: VaultKeysOptions) {
  const known = new Map<TenantId, { readonly value: Promise<KeyOfTenant>; readonly until: number }>()

  const wrappingKeys = new WeakMap<VaultKey, WrappingKey>()

  /** One for each key of a configuration: that of a service keeps a client. */
  function wrappingKey(key: VaultKey): WrappingKey {
    const made = wrappingKeys.get(key) ?? wrappingKeyOf(key)
    wrappingKeys.set(key, made)
    return made
  }

  /** @throws GatewayError unavailable where the configuration names no keys */
  function firstKey(): WrappingKey {
    const [first] = snapshot().vault?.keys ?? []
    if (first === undefined)
      throw new GatewayError('unavailable', 'This gateway keeps no accounts of people: it has no keys for them.')
    return wrappingKey(first)
  }

  async function wrapped(key: Uint8Array, tenant: TenantId): Promise<string> {
    const first = firstKey()
    return await first.wrap(key, tenant).catch((error: unknown) => failed(tenant, first.id, 'wrap', error))
  }

  async function unwrapped(text: string, tenant: TenantId): Promise<Uint8Array> {
    const id = wrappedBy(text)
    const found = snapshot().vault?.keys.find((key) => key.id === id)
    if (found === undefined)
      throw new GatewayError('unavailable', `The vault is sealed with the key ${id}, which is not configured.`)
    const key = await wrappingKey(found)
      .unwrap(text, tenant)
      .catch((error: unknown) => failed(tenant, id, 'open', error))
    if (key.length !== 32) return failed(tenant, id, 'open', new Error('it has the wrong length'))
    return key
  }

  /** @throws GatewayError unavailable: callers are not told where a service is, nor what it said */
  function failed(tenant: TenantId, id: string, what: 'wrap' | 'open', err: unknown): never {
    log.error({ err, tenant, kid: id }, `the key ${id} of the vault cannot ${what} the key of a tenant`)
    throw new GatewayError(
      'unavailable',
      `The key ${id} of the vault cannot ${what} the key of this tenant: it cannot be reached, or the key of the ` +
        'tenant is damaged, or is that of another tenant. Those who run this gateway find the reason in its log.',
      { cause: err, headers: { 'Retry-After': '5' } }
    )
  }

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
    const isSame = before !== undefined && before.epoch === epoch && before.text === text
    if (isSame && now < before.unwrappedAt + unwrappedMs) return before
    return { key: await unwrapped(text, tenant), epoch, text, unwrappedAt: now }
  }

  /** Not done by whoever merely reads: a process that has the keys in their order of before would undo it. */
  async function wrapAnew(tenant: TenantId, text: string): Promise<void> {
    const key = await unwrapped(text, tenant)
    if (wrappedBy(text) === firstKey().id) return
    const next = await wrapped(key, tenant)
    // The tenant may have been removed meanwhile, and made again with another key.
    const place = vaultKeyKey(tenant)
    if ((await store.get(place)) === text) await store.set(place, next, { when: 'present' })
  }

  /**
   * The keys of these tenants are opened, and wrapped with the first key: it opens them then, and no other is needed.
   * @throws GatewayError unavailable where there are no keys
   */
  async function rotate(tenants: Iterable<TenantId>): Promise<RotatedKeys> {
    const first = firstKey().id
    const counts = { anew: 0, before: 0 }
    const left: Array<RotatedKeys['failed'][number]> = []
    for (const tenant of tenants) {
      try {
        const text = await store.get(vaultKeyKey(tenant))
        if (text === undefined) continue
        await wrapAnew(tenant, text)
        counts[wrappedBy(text) === first ? 'before' : 'anew']++
      } catch (error) {
        left.push({ tenant, error })
      }
    }
    return { first, ...counts, failed: left }
  }

  let settledWith: string | undefined

  /** After a change of the keys, for tenants that nobody uses too. Never rejects. */
  async function settle(tenants: Iterable<TenantId>): Promise<void> {
    const [first, ...others] = snapshot().vault?.keys ?? []
    if (first === undefined || others.length === 0 || first.id === settledWith) return
    settledWith = first.id
    const { failed: left } = await rotate(tenants)
    for (const { tenant, error: err } of left)
      log.warn({ err, tenant }, 'the key of a tenant cannot be wrapped with the first key of the vault')
    if (left.length > 0) settledWith = undefined
    else log.info({ kid: first.id }, 'all tenants are under the first key of the vault; the others can be taken out')
  }

  return {
    /** The key of a tenant, made where there is none. @throws GatewayError unavailable */
    async of(tenant: TenantId): Promise<Uint8Array> {
      const now = clock.now()
      const found = known.get(tenant)
      const kept = found !== undefined && now < found.until ? await found.value : undefined
      if (kept !== undefined && epochs.isCurrentEpoch(tenant, kept.epoch)) return kept.key
      const again = known.get(tenant)
      // Others who waited have asked for it already.
      if (again !== undefined && again !== found) return (await again.value).key
      const value = read(tenant, found?.value)
      known.set(tenant, { value, until: now + keptMs })
      value.catch(() => known.delete(tenant))
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
