// The keys with which the gateway signs who calls: of each tenant its own, made once for all processes, sealed in the
// store, and replaced while the old ones are still published.

import { importJWK, type CryptoKey, type JWK } from 'jose'
import { publicKey, replaced, rotated, type SigningKeySet, signingKey } from '../../auth/signing/rotated-keys.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { assertionKeysKey } from '../../store/keys.ts'
import type { SealedValues } from '../sealed-values.ts'

/** An old key is published for so long after it was replaced; assertions live for a minute. */
const publishedAfterMs = 24 * 60 * 60_000
/** The longest time for which a process uses the keys that it read. */
const maxAgeMs = 60_000

interface KnownKeys {
  readonly signing: CryptoKey
  readonly kid: string
  readonly published: readonly JWK[]
  readonly epoch: number
  readonly at: number
}

export type SigningKeys = ReturnType<typeof createSigningKeys>

/** @param epochOf of a tenant: another one has other keys, although it has the same name */
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
    // What cannot be opened is of a tenant that was removed, and had the same name.
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
    /** @throws GatewayError unavailable where the store is away */
    async of(tenant: TenantId): Promise<Pick<KnownKeys, 'signing' | 'kid' | 'published'>> {
      const kept = known.get(tenant)
      const age = wall.now() - (kept?.at ?? 0)
      if (kept !== undefined && age >= 0 && age < maxAgeMs && kept.epoch === (await epochOf(tenant))) return kept
      const work = loading.get(tenant) ?? load(tenant).finally(() => loading.delete(tenant))
      loading.set(tenant, work)
      return await work
    },
    /** Forgets those of tenants that are configured no more. */
    retain(tenants: Pick<ReadonlySet<TenantId>, 'has'>): void {
      for (const tenant of known.keys()) if (!tenants.has(tenant)) known.delete(tenant)
    }
  }
}
