// What an upstream listed before, for whoever asks what has changed: with each change of its listing what it took away
// and altered is kept, so that from what it lists now any moment follows back to the oldest change that is kept.

import { stringOf } from '../../../protocol/json-text.ts'
import { longTextSteps } from '../../../protocol/json-writer.ts'
import { parseOwnJson } from '../../../protocol/json.ts'
import { isObject, type JsonObject } from '../../../protocol/messages.ts'
import { listingKey, listingTtlMs, pastListingKey } from '../../../store/keys.ts'
import type { Store } from '../../../store/port.ts'
import type { WorkOwner } from '../../../time/fair-queue.ts'
import { runSteps, type Steps } from '../../../time/turns.ts'
import type { Listing } from '../../../upstream/listing/listing.ts'
import { entryKeys, type EntryLists, type Member, members, parseListing } from './listing-text.ts'
import { isSameJson } from './same-entries.ts'

const maxChangesKept = 32
/** The longest JSON of the changes of one upstream, in characters. */
const maxPastChars = 262_144
/** Entries of a listing whose members are put in order to be compared: those that come after them count as altered. */
const maxOrdered = 1_000

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

/** The text with all members in order. */
function* orderedText(entry: JsonObject): Steps<string> {
  return stringOf(yield* longTextSteps(entry, undefined, true))
}

/** What comparing two listings took so far: characters to keep, and entries whose members were put in order. */
interface Spent {
  chars: number
  ordered: number
}

/** Members in another order are no change: only texts of one length are put in order, as that takes long. */
function* isSame(one: JsonObject, other: JsonObject, spent: Spent): Steps<boolean> {
  if (isSameJson(one, other)) return true
  if (JSON.stringify(one).length !== JSON.stringify(other).length || ++spent.ordered > maxOrdered) return false
  return (yield* orderedText(one)) === (yield* orderedText(other))
}

/** Ends early where the change is too large to be kept. */
function* changeOf(member: Member, before: EntryLists, after: EntryLists, spent: Spent): Steps<ListChange> {
  const [old, now] = [byName(member, before[member]), byName(member, after[member])]
  const came = [...now.keys()].filter((name) => !old.has(name))
  const [gone, altered]: [JsonObject[], JsonObject[]] = [[], []]
  for (const name of came) spent.chars += name.length
  for (const [name, entry] of old) {
    if (spent.chars > maxPastChars) break
    const next = now.get(name)
    if (next === undefined || !(yield* isSame(next, entry, spent))) {
      const list = next === undefined ? gone : altered
      list.push(entry)
      spent.chars += JSON.stringify(entry).length
    }
    yield
  }
  return { came, gone, altered }
}

/** A step for each entry. @returns undefined where the changes are too large to be kept */
function* changesOf(before: EntryLists, after: EntryLists): Steps<ListingChangeKept['lists'] | undefined> {
  const spent = { chars: 0, ordered: 0 }
  const lists: Partial<Record<Member, ListChange>> = {}
  for (const member of members) {
    const change = yield* changeOf(member, before, after, spent)
    if (spent.chars > maxPastChars) return undefined
    if (change.came.length + change.gone.length + change.altered.length > 0) lists[member] = change
  }
  return lists
}

/** The change before it was made. */
function withoutChange(
  member: Member,
  list: readonly JsonObject[],
  change: ListChange | undefined
): readonly JsonObject[] {
  if (change === undefined) return list
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

/** The place of an upstream's past. */
interface Place {
  readonly store: Store
  /** Of the upstream's definition. */
  readonly hash: string
  /** Of the work. */
  readonly owner: WorkOwner
}

/**
 * Notes in what `next` differs from what the store has, before it is written there.
 * @param next with its `listingText`
 * @throws where the store is away
 */
export async function notePast(
  { store, hash, owner }: Place,
  next: { readonly listing: Listing; readonly text: string },
  now: number
): Promise<void> {
  const [known, text] = await Promise.all([store.get(listingKey(hash)), store.get(pastListingKey(hash))])
  const past = pastIn(text)
  if (known === next.text && past !== undefined) return
  const before = known === undefined ? undefined : await runSteps(parseListing(known), owner)
  const lists = before === undefined ? {} : await runSteps(changesOf(before, next.listing), owner)
  const isUnchanged = lists !== undefined && Object.keys(lists).length === 0
  if (past !== undefined && before !== undefined && isUnchanged) return
  const isForgotten = before === undefined || lists === undefined
  const changes = isForgotten ? [] : [...(past?.changes ?? []), ...(isUnchanged ? [] : [{ at: now, lists }])]
  const since = isForgotten ? now : (past?.since ?? now)
  await store.set(pastListingKey(hash), bounded({ since, changes }), { ttlMs: listingTtlMs })
}

/**
 * What an upstream listed last, at whichever process.
 * @param charge counts its characters before it is parsed
 * @throws where the store is away, and whatever `charge` throws
 */
export async function storedListing(
  { store, hash, owner }: Place,
  charge: (chars: number) => void
): Promise<Listing | undefined> {
  const text = await store.get(listingKey(hash))
  if (text === undefined) return undefined
  charge(text.length)
  return await runSteps(parseListing(text), owner)
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
 * What an upstream listed then, a step for each change of a list; undefined where that is not known any more, or never
 * was.
 * @param at epoch ms
 */
export function* listingAt({ now: text, past: changes }: KeptListings, at: number): Steps<Listing | undefined> {
  const now = text === undefined ? undefined : yield* parseListing(text)
  const past = pastIn(changes)
  if (now === undefined || past === undefined || at < past.since) return undefined
  const later = past.changes.filter((change) => change.at > at).toReversed()
  const then: Partial<Record<Member, readonly JsonObject[]>> = {}
  for (const member of members) {
    let list = now[member]
    for (const { lists } of later) {
      list = withoutChange(member, list, lists[member])
      yield
    }
    then[member] = list
  }
  return { ...now, ...then }
}

/** The changes that are kept, the oldest first, and since when. */
export const pastOf = ({ past }: Pick<KeptListings, 'past'>): Past | undefined => pastIn(past)
