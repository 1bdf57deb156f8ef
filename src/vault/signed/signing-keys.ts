// The keys with which the gateway signs who calls: of each tenant its own, made once for all processes, sealed in the
// store, and replaced while the old ones are still published.

import { randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose'
import type { TenantId } from '../../protocol/messages.ts'
import { assertionKeysKey, assertionRotationKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { SealedValues } from '../sealed-values.ts'

/** A key is replaced after this time. */
const rotateMs = 30 * 24 * 60 * 60_000
/** A new key is published for so long before it signs: servers keep what they know for minutes. */
const publishedFirstMs = 60 * 60_000
/** An old key is published for so long after it was replaced; assertions live for a minute. */
const publishedAfterMs = 24 * 60 * 60_000
/** So old may be what a process knows of them. */
const maxAgeMs = 60_000
/** One process has so long to make a new one. */
const makingMs = 10_000

interface StoredKey {
  /** Private, ES256. */
  readonly jwk: JWK
  /** It signs from this time on: epoch ms. */
  readonly from: number
}

/** Newest first. */
type StoredKeys = readonly StoredKey[]

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
  store: Pick<Store, 'set'>,
  values: SealedValues,
  epochOf: (tenant: TenantId) => Promise<number>,
  wall: { now(): number }
) {
  const known = new Map<TenantId, KnownKeys>()
  const loading = new Map<TenantId, Promise<KnownKeys>>()

  const isFirst = (tenant: TenantId): Promise<boolean> =>
    store.set(assertionRotationKey(tenant), '1', { ttlMs: makingMs, when: 'absent' })

  async function stored(tenant: TenantId): Promise<StoredKeys> {
    const now = wall.now()
    const place = assertionKeysKey(tenant)
    const found = (await values.read(tenant, place)) as StoredKeys | undefined
    const [newest] = found ?? []
    if (found === undefined || newest === undefined) {
      const first: StoredKeys = [{ jwk: await newKey(), from: now }]
      if (await values.write(tenant, place, first, { when: 'absent' })) return first
      const made = (await values.read(tenant, place)) as StoredKeys | undefined
      if (made !== undefined) return made
      // What cannot be opened is of a tenant that was removed, and had the same name.
      if (await isFirst(tenant)) await values.write(tenant, place, first)
      return ((await values.read(tenant, place)) as StoredKeys | undefined) ?? []
    }
    if (now - newest.from <= rotateMs) return found
    if (!(await isFirst(tenant))) return found
    const live = found.filter((_key, index) => index === 0 || now - (found[index - 1]?.from ?? 0) < publishedAfterMs)
    const next = [{ jwk: await newKey(), from: now + publishedFirstMs }, ...live]
    await values.write(tenant, place, next)
    return next
  }

  async function load(tenant: TenantId): Promise<KnownKeys> {
    const [epoch, at] = [await epochOf(tenant), wall.now()]
    const all = await stored(tenant)
    const signing = all.find(({ from }) => from <= at) ?? all[0]
    if (signing === undefined) throw new Error('there is no key to sign with')
    const key = (await importJWK(signing.jwk, 'ES256')) as CryptoKey
    const keys = {
      signing: key,
      kid: String(signing.jwk.kid),
      published: all.map(({ jwk }) => publicOf(jwk)),
      epoch,
      at
    }
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

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: randomUUID() }
}

/** RFC 7517, without what must stay here. */
const publicOf = ({ d: _private, ...rest }: JWK): JWK => rest
