// Keys with which the gateway signs: one set for all processes, replaced while the old ones are still published, by
// whichever process is first. What a process has not seen it does not overwrite.

import { randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'

/** A signing key is replaced after this time. */
const rotateMs = 30 * 24 * 60 * 60_000
/** A new key is published for so long before it signs: verifiers keep what they know for minutes. */
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
 * @param next of what is stored; the same where it is to stay. Called again where another process was first
 * @returns what is stored now
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

/** @returns the same where none is due, nor over */
export async function rotated(keys: SigningKeySet, now: number, publishedAfterMs: number): Promise<SigningKeySet> {
  const [newest] = keys
  if (newest === undefined) return [{ jwk: await newKey(), from: now }]
  const live = liveKeys(keys, now, publishedAfterMs)
  if (now - newest.from > rotateMs) return [{ jwk: await newKey(), from: now + publishedFirstMs }, ...live]
  return live.length === keys.length ? keys : live
}

export const signingKey = (keys: SigningKeySet, now: number): RotatedKey | undefined =>
  keys.find(({ from }) => from <= now) ?? keys[0]

/** RFC 7517, without what must stay here. */
export const publicKey = ({ d: _private, ...rest }: JWK): JWK => rest

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: randomUUID() }
}
