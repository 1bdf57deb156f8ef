// The signing keys and cookie keys of a tenant's login front: made once for all processes, kept sealed in the store,
// and replaced while the old ones are still published.

import type { FetchFor } from '../auth/fetch.ts'
import type { Snapshot, Tenant } from '../config/snapshot.ts'
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { maxTokenSeconds } from '../config/schema/login.ts'
import type { Clock } from '../time/clock.ts'
import type { LoginRecords } from './records.ts'

const dayMs = 24 * 60 * 60_000
/** A signing key is replaced after this time. */
const rotateMs = 30 * dayMs
/** A new key is published for so long before it signs: verifiers keep what they know for minutes. */
const publishedFirstMs = 60 * 60_000
/** A key is published for so long after the end of the longest token: clocks of machines differ. */
const marginMs = 5 * 60_000
/** So old may be what a process knows of them. */
const maxAgeMs = 60_000

interface StoredKey {
  /** Private, ES256. */
  readonly jwk: JWK
  /** It signs from this time on: epoch ms. */
  readonly from: number
}

interface StoredKeys {
  /** Newest first. */
  readonly keys: readonly StoredKey[]
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

  /** Those that sign, will sign, or have signed what may still be shown. */
  function live({ keys }: StoredKeys, now: number): readonly StoredKey[] {
    // `tokenSeconds` of the configuration may have been longer when it signed.
    const signedUntil = now - maxTokenSeconds * 1_000 - marginMs
    return keys.filter((_key, index) => index === 0 || (keys[index - 1]?.from ?? 0) > signedUntil)
  }

  function isCurrent(stored: StoredKeys | undefined, now: number): stored is StoredKeys {
    const newest = stored?.keys[0]
    if (stored === undefined || newest === undefined || now - newest.from > rotateMs) return false
    return live(stored, now).length === stored.keys.length
  }

  async function load(): Promise<StoredKeys> {
    const now = clock.now()
    const { value, replace } = await records.readToReplace('Keys', '')
    const before = value as StoredKeys | undefined
    const stored = isCurrent(before, now) ? before : await next(before, now)
    // Another process has replaced them meanwhile.
    if (stored !== before && !(await replace(stored))) return await load()
    known = { stored, at: now }
    return stored
  }

  async function next(stored: StoredKeys | undefined, now: number): Promise<StoredKeys> {
    const newest = stored?.keys[0]
    const cookieKey = stored?.cookieKey ?? randomBytes(32).toString('base64url')
    if (stored === undefined || newest === undefined) return { keys: [{ jwk: await newKey(), from: now }], cookieKey }
    const kept = live(stored, now)
    if (now - newest.from <= rotateMs) return { keys: kept, cookieKey }
    return { keys: [{ jwk: await newKey(), from: now + publishedFirstMs }, ...kept], cookieKey }
  }

  return async (): Promise<LoginKeys> => {
    const now = clock.now()
    const stored =
      known !== undefined && now >= known.at && now < known.at + maxAgeMs
        ? known.stored
        : await (pending ??= load().finally(() => (pending = undefined)))
    const keys = live(stored, now)
    const signing = keys.find(({ from }) => from <= now) ?? keys[0]
    const others = keys.filter((each) => each !== signing)
    const { cookieKey } = stored
    const nonceSecret = createHmac('sha256', cookieKey).update('DPoP nonces').digest()
    return { keys: [signing, ...others].flatMap((each) => each?.jwk ?? []), cookieKey, nonceSecret }
  }
}

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: randomUUID() }
}

/** RFC 7517, without what must stay here. */
const publicKeysOf = ({ keys }: LoginKeys): JWK[] => keys.map(({ d: _private, ...rest }) => rest)

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
          if (keys !== undefined) return Response.json({ keys: publicKeysOf(keys) })
        }
      return await fetch(url, init)
    }
  }
