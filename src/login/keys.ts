// The signing keys and cookie keys of a tenant's login front: made once for all processes, kept sealed in the store,
// and replaced while the old ones are still published.

import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import type { GatewayError } from '../protocol/messages.ts'
import { unavailable } from '../store/port.ts'
import type { Clock } from '../time/clock.ts'
import type { LoginRecords } from './records.ts'

const dayMs = 24 * 60 * 60_000
/** A signing key is replaced after this time. */
const rotateMs = 30 * dayMs
/** A new key is published for so long before it signs: verifiers keep what they know for minutes. */
const publishedFirstMs = 60 * 60_000
/** An old key is published for so long after it was replaced: longer than any token lives. */
const publishedAfterMs = 2 * dayMs
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

/** @param clock the time of day */
export function createLoginKeys(records: LoginRecords, clock: Pick<Clock, 'now'>) {
  let known: { readonly stored: StoredKeys; readonly at: number } | undefined
  let pending: Promise<StoredKeys> | undefined

  async function load(): Promise<StoredKeys> {
    const now = clock.now()
    let stored = (await records.read('Keys', '')) as StoredKeys | undefined
    const newest = stored?.keys[0]
    if (stored === undefined || newest === undefined || now - newest.from > rotateMs) {
      if (await records.isFirst('Keys made', '', 10_000)) {
        const old = stored?.keys ?? []
        const from = old.length === 0 ? now : now + publishedFirstMs
        const live = old.filter((_key, index) => index === 0 || now - (old[index - 1]?.from ?? 0) < publishedAfterMs)
        stored = {
          keys: [{ jwk: await newKey(), from }, ...live],
          cookieKey: stored?.cookieKey ?? randomBytes(32).toString('base64url')
        }
        await records.write('Keys', '', stored)
      } else if (stored === undefined) throw beingMade()
    }
    known = { stored, at: now }
    return stored
  }

  return async (): Promise<LoginKeys> => {
    const now = clock.now()
    const stored =
      known !== undefined && now >= known.at && now < known.at + maxAgeMs
        ? known.stored
        : await (pending ??= load().finally(() => (pending = undefined)))
    const signing = stored.keys.find(({ from }) => from <= now) ?? stored.keys[0]
    const others = stored.keys.filter((each) => each !== signing)
    const { cookieKey } = stored
    const nonceSecret = createHmac('sha256', cookieKey).update('DPoP nonces').digest()
    return { keys: [signing, ...others].flatMap((each) => each?.jwk ?? []), cookieKey, nonceSecret }
  }
}

const beingMade = (): GatewayError =>
  unavailable('The keys of the login front are being made by another process. Retry in a second.')

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: randomUUID() }
}

/** RFC 7517, without what must stay here. */
export const publicKeysOf = ({ keys }: LoginKeys): JWK[] => keys.map(({ d: _private, ...rest }) => rest)
