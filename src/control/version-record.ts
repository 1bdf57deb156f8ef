// The record of a version in the store. What no gateway would have written counts as absent.

import { isObject } from '../protocol/messages.ts'

export interface ChangeAuthor {
  /** The name of the admin key. */
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

type VersionsByName = Readonly<Record<string, readonly number[]>>

export interface VersionRecord extends VersionHead {
  /**
   * Of every text that there is: the version whose record holds it. Undefined once the version is none of the last:
   * then the record is kept for the texts that it changed, and no longer tells of others.
   */
  readonly places?: Readonly<Record<string, number>>
  /** The texts that this version changed, by name. */
  readonly sealed: Readonly<Record<string, string>>
  /** The earlier versions that changed each text of this one, the oldest first. Empty: there was none. */
  readonly past?: VersionsByName
  /** Names of texts that there are no more, and the version that removed each: the last of them. */
  readonly gone?: Readonly<Record<string, number>>
}

/** A record of one of the last versions, which names all texts. */
export type WholeRecord = VersionRecord & Required<Pick<VersionRecord, 'places'>>

export const isWhole = (record: VersionRecord | undefined): record is WholeRecord => record?.places !== undefined

/** The text in place of a record that is no longer needed. */
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
  const { id, at, author, action, names, places, sealed, past, gone } = value
  const isSound =
    typeof id === 'string' &&
    typeof at === 'string' &&
    typeof action === 'string' &&
    isObject(author) &&
    typeof author['name'] === 'string' &&
    typeof author['role'] === 'string' &&
    Array.isArray(names) &&
    names.every((name) => typeof name === 'string') &&
    (places === undefined || isNumbers(places)) &&
    isObject(sealed) &&
    Object.values(sealed).every((each) => typeof each === 'string') &&
    (past === undefined || (isObject(past) && Object.values(past).every(Array.isArray))) &&
    Object.values(past ?? {}).every((each) => (each as unknown[]).every(Number.isSafeInteger)) &&
    (gone === undefined || isNumbers(gone))
  return isSound ? (value as unknown as VersionRecord) : undefined
}

const isNumbers = (value: unknown): boolean => isObject(value) && Object.values(value).every(Number.isSafeInteger)
