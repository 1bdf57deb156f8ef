// The keys with which the gateway signs assertions about callers. Each tenant has its own, shared by all processes and
// sealed in the store; old keys stay published for a while after they were replaced.

import { importJWK, type CryptoKey, type JWK } from 'jose'
import { publicKey, replaced, rotated, type SigningKeySet, signingKey } from '../../auth/signing/rotated-keys.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { assertionKeysKey } from '../../store/keys.ts'
import type { SealedValues } from '../sealed-values.ts'

/** An old key is published for so long after it was replaced; assertions live for a minute. */
const publishedAfterMs = 24 * 60 * 60_000
/** How long a process uses keys before it reads them again, in milliseconds. */
const maxAgeMs = 60_000

interface KnownKeys {
  readonly signing: CryptoKey
  readonly kid: string
  readonly published: readonly JWK[]
  readonly epoch: number
  readonly at: number
}

export type SigningKeys = ReturnType<typeof createSigningKeys>

/** @param epochOf the epoch of a tenant: a tenant that was removed and created again has new keys */
export function createSigningKeys(
  values: Pick<SealedValues, 'readToReplace'>,
  epochOf: (tenant: TenantId) => Promise<number>,
  wall: { now(): number }
) {
  const known = new Map<TenantId, KnownKeys>()
  const loading = new Map<TenantId, Promise<KnownKeys>>()

  async function load(tenant: TenantId): Promise<KnownKeys> {
    const epoch = await epochOf(tenant)
    const at = wall.now()
    // Keys that cannot be decrypted belong to a removed tenant of the same name.
    const all = await replaced<SigningKeySet>(
      () => values.readToReplace(tenant, assertionKeysKey(tenant)),
      (stored = []) => rotated(stored, at, publishedAfterMs)
    )
    const signing = signingKey(all, at)
    if (signing === undefined) throw new Error('there is no key to sign with')
    const key = (await importJWK(signing.jwk, 'ES256')) as CryptoKey
    const published = all.map(({ jwk }) => publicKey(jwk))
    const keys = { signing: key, kid: String(signing.jwk.kid), published, epoch, at }
    known.set(tenant, keys)
    return keys
  }

  return {
    /** @throws GatewayError unavailable if the store is away */
    async of(tenant: TenantId): Promise<Pick<KnownKeys, 'signing' | 'kid' | 'published'>> {
      const kept = known.get(tenant)
      const age = wall.now() - (kept?.at ?? 0)
      if (kept !== undefined && age >= 0 && age < maxAgeMs && kept.epoch === (await epochOf(tenant))) return kept
      const work = loading.get(tenant) ?? load(tenant).finally(() => loading.delete(tenant))
      loading.set(tenant, work)
      return await work
    },
    /** Forgets the keys of tenants that are no longer configured. */
    retain(tenants: Pick<ReadonlySet<TenantId>, 'has'>): void {
      for (const tenant of known.keys()) if (!tenants.has(tenant)) known.delete(tenant)
    }
  }
}
