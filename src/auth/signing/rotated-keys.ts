// Rotation of the gateway's signing keys: one set for all processes, in the store. The first process that finds a key
// due replaces it by compare-and-set; old keys stay published for a while.

import { randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'

/** A signing key is replaced after this time. */
const rotateMs = 30 * 24 * 60 * 60_000
/** A new key is published for so long before it signs, because verifiers cache key sets for minutes. */
const publishedFirstMs = 60 * 60_000

export interface RotatedKey {
  /** Private, ES256. */
  readonly jwk: JWK
  /** The time from which the key signs: epoch ms. */
  readonly from: number
}

/** Newest first. */
export type SigningKeySet = readonly RotatedKey[]

/** A stored value, and a function that replaces it: false where another process has replaced it before. */
export interface ReplaceableValue {
  readonly value: unknown
  readonly replace: (value: unknown) => Promise<boolean>
}

/**
 * Replaces a stored value by compare-and-set.
 * @param next returns the new value; the same object: no change. Called again if another process has written meanwhile
 * @returns the stored value
 */
export async function replaced<Value>(
  read: () => Promise<ReplaceableValue>,
  next: (value: Value | undefined) => Promise<Value>
): Promise<Value> {
  const { value, replace } = await read()
  const wanted = await next(value as Value | undefined)
  return wanted === value || (await replace(wanted)) ? wanted : await replaced(read, next)
}

/** Returns the keys that sign, that will sign, and that were replaced less than `publishedAfterMs` ago. */
export const liveKeys = (keys: SigningKeySet, now: number, publishedAfterMs: number): SigningKeySet =>
  keys.filter((_key, index) => index === 0 || (keys[index - 1]?.from ?? 0) > now - publishedAfterMs)

/** Adds a new key and drops old ones. @returns the same set if none is due and none is to be dropped */
export async function rotated(keys: SigningKeySet, now: number, publishedAfterMs: number): Promise<SigningKeySet> {
  const [newest] = keys
  if (newest === undefined) return [{ jwk: await newKey(), from: now }]
  const live = liveKeys(keys, now, publishedAfterMs)
  if (now - newest.from > rotateMs) return [{ jwk: await newKey(), from: now + publishedFirstMs }, ...live]
  return live.length === keys.length ? keys : live
}

export const signingKey = (keys: SigningKeySet, now: number): RotatedKey | undefined =>
  keys.find(({ from }) => from <= now) ?? keys[0]

/** Returns the public part of a key (RFC 7517). */
export const publicKey = ({ d: _private, ...rest }: JWK): JWK => rest

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: randomUUID() }
}
