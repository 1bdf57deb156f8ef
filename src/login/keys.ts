// The signing keys and cookie keys of a tenant's login front: made once for all processes, kept sealed in the store,
// and replaced while the old ones are still published.

import type { FetchFor } from '../egress/fetch.ts'
import { liveKeys, publicKey, replaced, rotated, type SigningKeySet, signingKey } from '../auth/signing/rotated-keys.ts'
import type { Snapshot, Tenant } from '../config/snapshot.ts'
import { createHmac, randomBytes } from 'node:crypto'
import type { JWK } from 'jose'
import { maxTokenSeconds } from '../config/schema/login.ts'
import type { Clock } from '../time/clock.ts'
import type { LoginRecords } from './records.ts'

/** A key is published for so long after the end of the longest token: clocks of machines differ. */
const marginMs = 5 * 60_000
/** `tokenSeconds` of the configuration may have been longer when it signed. */
const publishedAfterMs = maxTokenSeconds * 1_000 + marginMs
/** The longest time for which a process uses the keys that it read, in milliseconds. */
const maxAgeMs = 60_000

interface StoredKeys {
  readonly keys: SigningKeySet
  /** Signs cookies. */
  readonly cookieKey: string
}

export interface LoginKeys {
  /** The one that signs now comes first. */
  readonly keys: readonly JWK[]
  readonly cookieKey: string
  /** Nonces for proofs of DPoP are made by it. */
  readonly nonceSecret: Buffer
}

/**
 * @param clock the time of day
 */
export function createLoginKeys(records: LoginRecords, clock: Pick<Clock, 'now'>) {
  let known: { readonly stored: StoredKeys; readonly at: number } | undefined
  let pending: Promise<StoredKeys> | undefined

  async function load(): Promise<StoredKeys> {
    const now = clock.now()
    const stored = await replaced<StoredKeys>(
      () => records.readToReplace('Keys', ''),
      async (before) => {
        const keys = await rotated(before?.keys ?? [], now, publishedAfterMs)
        if (before === undefined) return { keys, cookieKey: randomBytes(32).toString('base64url') }
        return keys === before.keys ? before : { ...before, keys }
      }
    )
    known = { stored, at: now }
    return stored
  }

  return async (): Promise<LoginKeys> => {
    const now = clock.now()
    const stored =
      known !== undefined && now >= known.at && now < known.at + maxAgeMs
        ? known.stored
        : await (pending ??= load().finally(() => (pending = undefined)))
    const keys = liveKeys(stored.keys, now, publishedAfterMs)
    const signing = signingKey(keys, now)
    const others = keys.filter((each) => each !== signing)
    const { cookieKey } = stored
    const nonceSecret = createHmac('sha256', cookieKey).update('DPoP nonces').digest()
    return { keys: [signing, ...others].flatMap((each) => each?.jwk ?? []), cookieKey, nonceSecret }
  }
}

/**
 * Requests as they were, but for keys of login fronts of our own, which are had without one.
 * @param frontOf a tenant that has one
 */
export const withOwnKeys =
  (
    inner: FetchFor,
    snapshot: () => Pick<Snapshot, 'tenants'>,
    frontOf: (tenant: Tenant) => { readonly keysOf: ReturnType<typeof createLoginKeys> } | undefined
  ): FetchFor =>
  (...whose) => {
    const fetch = inner(...whose)
    return async (url, init) => {
      for (const tenant of snapshot().tenants.values())
        if (tenant.auth.login !== undefined && url === `${tenant.auth.login.issuer}/jwks`) {
          const keys = await frontOf(tenant)?.keysOf()
          if (keys !== undefined) return Response.json({ keys: keys.keys.map(publicKey) })
        }
      return await fetch(url, init)
    }
  }
