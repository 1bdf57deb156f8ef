// The record of a version in the store. What no gateway would have written counts as absent.

import { isObject } from '../protocol/messages.ts'

export interface ChangeAuthor {
  /** Of the admin key. */
  readonly name: string
  readonly role: string
}

export interface VersionHead {
  readonly version: number
  /** Random: two records of one number are told apart by it. */
  readonly id: string
  /** RFC 3339. */
  readonly at: string
  readonly author: ChangeAuthor
  /** Such as `tenant.put`. */
  readonly action: string
  /** The texts that it changed or removed. */
  readonly names: readonly string[]
}

export interface VersionRecord extends VersionHead {
  /** Of every text that there is: the version whose record holds it. */
  readonly places: Readonly<Record<string, number>>
  /** The texts that this version changed, by name. */
  readonly sealed: Readonly<Record<string, string>>
}

/** In place of a record that is no longer needed. */
export const tombstone = '-'

/** @returns undefined for a tombstone, and for what is no record of this version */
export function decodeVersion(text: string, version: number): VersionRecord | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined // A tombstone, or nothing that a gateway wrote.
  }
  if (!isObject(value) || value['version'] !== version) return undefined
  const { id, at, author, action, names, places, sealed } = value
  const isWhole =
    typeof id === 'string' &&
    typeof at === 'string' &&
    typeof action === 'string' &&
    isObject(author) &&
    typeof author['name'] === 'string' &&
    typeof author['role'] === 'string' &&
    Array.isArray(names) &&
    names.every((name) => typeof name === 'string') &&
    isObject(places) &&
    Object.values(places).every(Number.isSafeInteger) &&
    isObject(sealed) &&
    Object.values(sealed).every((each) => typeof each === 'string')
  return isWhole ? (value as unknown as VersionRecord) : undefined
}
