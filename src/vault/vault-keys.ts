// The keys of the vault: each tenant has one of its own, in the store, wrapped by a key of the configuration (JWE,
// RFC 7516). Whoever has the store alone can read nothing, and a tenant whose key is deleted has lost everything.

import { randomBytes } from 'node:crypto'
import { CompactEncrypt, compactDecrypt } from 'jose'
import type { Snapshot } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError, type TenantId } from '../protocol/messages.ts'
import { digest, vaultKeyKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'

/** A tenant's key stays in memory so long: what an operator has deleted is gone soon. */
const keptMs = 60_000

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
}

export type VaultKeys = ReturnType<typeof createVaultKeys>

export function createVaultKeys({ store, snapshot, epochs, clock, log }: VaultKeysOptions) {
  const known = new Map<TenantId, { readonly value: Promise<KeyOfTenant>; readonly until: number }>()

  /** @throws GatewayError unavailable where the configuration names no keys */
  function wrapping() {
    const keys = snapshot().vault?.keys ?? []
    const [first] = keys
    if (first === undefined)
      throw new GatewayError('unavailable', 'This gateway keeps no accounts of people: it has no keys for them.')
    return { first, byId: new Map(keys.map(({ id, key }) => [id, Buffer.from(key, 'base64')])) }
  }

  async function wrapped(key: Uint8Array, tenant: string): Promise<string> {
    const { first } = wrapping()
    return await new CompactEncrypt(key)
      .setProtectedHeader({ alg: 'A256GCMKW', enc: 'A256GCM', kid: first.id, for: digest(tenant) })
      .encrypt(Buffer.from(first.key, 'base64'))
  }

  async function unwrapped(text: string, tenant: string): Promise<{ key: Uint8Array; kid: string }> {
    const { byId } = wrapping()
    const { plaintext, protectedHeader } = await compactDecrypt(
      text,
      ({ kid = '' }) => {
        const key = byId.get(kid)
        if (key === undefined)
          throw new GatewayError('unavailable', `The vault is sealed with the key ${kid}, which is not configured.`)
        return key
      },
      { keyManagementAlgorithms: ['A256GCMKW'], contentEncryptionAlgorithms: ['A256GCM'] }
    )
    if (protectedHeader['for'] !== digest(tenant) || plaintext.length !== 32)
      throw new GatewayError('unavailable', 'A key of the vault in the store is damaged, or is that of another tenant.')
    return { key: plaintext, kid: String(protectedHeader.kid) }
  }

  async function read(tenant: TenantId): Promise<KeyOfTenant> {
    // Where the tenant was removed, its key is deleted first (session/session-epochs.ts).
    const epoch = await epochs.epochOf(tenant)
    const place = vaultKeyKey(tenant)
    if ((await store.get(place)) === undefined)
      await store.set(place, await wrapped(randomBytes(32), tenant), { when: 'absent' })
    return { key: await wrappedAnew(place, (await store.get(place)) ?? '', tenant), epoch }
  }

  /** @param text what is at the place. Afterwards the first key opens it, and the one before is needed no more */
  async function wrappedAnew(place: string, text: string, tenant: TenantId): Promise<Uint8Array> {
    const { key, kid } = await unwrapped(text, tenant)
    if (kid !== wrapping().first.id) await store.set(place, await wrapped(key, tenant), { when: 'present' })
    return key
  }

  let settledWith: string | undefined

  /** After a change of the keys, for tenants that nobody uses too. Never rejects. */
  async function settle(tenants: Iterable<TenantId>): Promise<void> {
    const [first, ...others] = snapshot().vault?.keys ?? []
    if (first === undefined || others.length === 0 || first.id === settledWith) return
    settledWith = first.id
    let left = 0
    for (const tenant of tenants) {
      try {
        const text = await store.get(vaultKeyKey(tenant))
        if (text !== undefined) await wrappedAnew(vaultKeyKey(tenant), text, tenant)
      } catch (err) {
        left++
        log.warn({ err, tenant }, 'the key of a tenant cannot be wrapped with the first key of the vault')
      }
    }
    if (left > 0) settledWith = undefined
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
      const value = read(tenant)
      known.set(tenant, { value, until: now + keptMs })
      value.catch(() => known.delete(tenant))
      return (await value).key
    },
    /** Forgets those of tenants that are configured no more. */
    retain(tenants: Pick<ReadonlySet<TenantId>, 'has'>): void {
      for (const tenant of known.keys()) if (!tenants.has(tenant)) known.delete(tenant)
    },
    settle
  }
}
