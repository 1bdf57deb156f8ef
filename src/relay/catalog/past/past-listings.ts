// What an upstream listed before, for whoever asks what has changed: with each change of its listing what it took away
// and altered is kept, so that from what it lists now any moment follows back to the oldest change that is kept.

import { canonicalJsonOf } from '../../../protocol/json-text.ts'
import { parseOwnJson } from '../../../protocol/json.ts'
import { isObject, type JsonObject } from '../../../protocol/messages.ts'
import { listingKey, listingTtlMs, pastListingKey } from '../../../store/keys.ts'
import type { Store } from '../../../store/port.ts'
import type { Listing } from '../../../upstream/listing/listing.ts'
import { entryKeys, parseListing } from './listing-text.ts'

const maxChangesKept = 32
/** The longest JSON of the changes of one upstream, in characters. */
const maxPastChars = 262_144

type Member = keyof typeof entryKeys
const members = Object.keys(entryKeys) as Member[]

/** A change of one list: names that came, entries that went, and those that were altered as they were before. */
interface ListChange {
  readonly came: readonly string[]
  readonly gone: readonly JsonObject[]
  readonly altered: readonly JsonObject[]
}

export interface ListingChangeKept {
  /** Epoch ms. */
  readonly at: number
  readonly lists: Readonly<Partial<Record<Member, ListChange>>>
}

interface Past {
  /** Epoch ms: before it nothing is known. */
  readonly since: number
  /** The oldest first. */
  readonly changes: readonly ListingChangeKept[]
}

const nameIn = (member: Member, entry: JsonObject): string => String(entry[entryKeys[member]])
const byName = (member: Member, list: readonly JsonObject[]): Map<string, JsonObject> =>
  new Map(list.map((entry) => [nameIn(member, entry), entry]))

/** Members in another order are no change: only texts of one length are put in order, as that takes long. */
function isSame(one: JsonObject, other: JsonObject): boolean {
  const [text, otherText] = [JSON.stringify(one), JSON.stringify(other)]
  return text === otherText || (text.length === otherText.length && canonicalJsonOf(one) === canonicalJsonOf(other))
}

function changeOf(member: Member, before: Listing, after: Listing): ListChange | undefined {
  const [old, now] = [byName(member, before[member]), byName(member, after[member])]
  const came = [...now.keys()].filter((name) => !old.has(name))
  const gone = [...old].flatMap(([name, entry]) => (now.has(name) ? [] : [entry]))
  const altered = [...old].flatMap(([name, entry]) => {
    const next = now.get(name)
    return next === undefined || isSame(next, entry) ? [] : [entry]
  })
  return came.length + gone.length + altered.length === 0 ? undefined : { came, gone, altered }
}

/** The change before it was made. */
function withoutChange(member: Member, list: readonly JsonObject[], change: ListChange | undefined): JsonObject[] {
  if (change === undefined) return [...list]
  const came = new Set(change.came)
  const altered = byName(member, change.altered)
  const kept = list.filter((entry) => !came.has(nameIn(member, entry)))
  return [...kept.map((entry) => altered.get(nameIn(member, entry)) ?? entry), ...change.gone]
}

/** Another version of the gateway may have written it: what does not look like the past of a listing is none. */
function pastIn(text: string | undefined): Past | undefined {
  const value: unknown = text === undefined ? undefined : parseOwnJson(text)
  if (!isObject(value) || typeof value['since'] !== 'number' || !Array.isArray(value['changes'])) return undefined
  return value['changes'].every((each) => isObject(each) && isObject(each['lists']))
    ? (value as unknown as Past)
    : undefined
}

/** Within the limits: where a change is too large, what was before it is not known. */
function bounded({ since, changes }: Past): string {
  const texts = changes.map((change) => JSON.stringify(change))
  let first = 0
  let chars = texts.reduce((sum, { length }) => sum + length, 0)
  while (changes.length - first > maxChangesKept || chars > maxPastChars) chars -= texts[first++]?.length ?? 0
  const from = first === 0 ? since : (changes[first - 1]?.at ?? since)
  return `{"since":${from},"changes":[${texts.slice(first).join(',')}]}`
}

/** Notes in what `next` differs from what the store has, before it is written there. @throws where the store is away */
export async function notePast(store: Store, hash: string, next: Listing, now: number): Promise<void> {
  const [before, text] = await Promise.all([storedListing(store, hash), store.get(pastListingKey(hash))])
  const past = pastIn(text)
  const lists = Object.fromEntries(
    members.flatMap((member) => {
      const change = before && changeOf(member, before, next)
      return change === undefined ? [] : [[member, change]]
    })
  )
  const hasChanged = Object.keys(lists).length > 0
  if (past !== undefined && !hasChanged && before !== undefined) return
  const changes = before === undefined ? [] : [...(past?.changes ?? []), ...(hasChanged ? [{ at: now, lists }] : [])]
  const since = before === undefined ? now : (past?.since ?? now)
  await store.set(pastListingKey(hash), bounded({ since, changes }), { ttlMs: listingTtlMs })
}

/**
 * What an upstream listed last, at whichever process.
 * @param charge counts its characters before it is parsed
 * @throws where the store is away, and whatever `charge` throws
 */
export async function storedListing(
  store: Store,
  hash: string,
  charge?: (chars: number) => void
): Promise<Listing | undefined> {
  const text = await store.get(listingKey(hash))
  if (text === undefined) return undefined
  charge?.(text.length)
  return parseListing(text)
}

/** The listings of an upstream in the store: what it listed last, and the changes before. */
export interface KeptListings {
  readonly now: string | undefined
  readonly past: string | undefined
}

/** @throws where the store is away */
export async function keptListings(store: Store, hash: string): Promise<KeptListings> {
  const [now, past] = await Promise.all([store.get(listingKey(hash)), store.get(pastListingKey(hash))])
  return { now, past }
}

/**
 * What an upstream listed then; undefined where that is not known any more, or never was.
 * @param at epoch ms
 */
export function listingAt({ now: text, past: changes }: KeptListings, at: number): Listing | undefined {
  const now = text === undefined ? undefined : parseListing(text)
  const past = pastIn(changes)
  if (now === undefined || past === undefined || at < past.since) return undefined
  const later = past.changes.filter((change) => change.at > at).toReversed()
  const listOf = (member: Member): JsonObject[] =>
    later.reduce((list, { lists }) => withoutChange(member, list, lists[member]), [...now[member]])
  return { ...now, ...Object.fromEntries(members.map((member) => [member, listOf(member)])) }
}

/** The changes that are kept, the oldest first, and since when. */
export const pastOf = ({ past }: Pick<KeptListings, 'past'>): Past | undefined => pastIn(past)
