// What a listing has in common with one before it. Compared in steps when it is read: whoever compares the two later
// finds the same objects, and need not look into them, be they 20,000 entries.

import { isObject, isRawJson, type JsonObject } from '../../../protocol/messages.ts'
import type { Steps } from '../../../time/turns.ts'
import { type EntryLists, type Member, members } from './listing-text.ts'

/** Is the text of both JSON values the same? Members in another order are another text. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one))
    return Array.isArray(other) && one.length === other.length && one.every((each, at) => isSameJson(each, other[at]))
  if (!isObject(one) || !isObject(other))
    return isRawJson(one) && isRawJson(other) && JSON.stringify(one) === JSON.stringify(other)
  const [names, otherNames] = [Object.keys(one), Object.keys(other)]
  return (
    names.length === otherNames.length &&
    names.every((name, at) => name === otherNames[at] && isSameJson(one[name], other[name]))
  )
}

/**
 * Returns the lists with the entries of those that were known where these say the same at the same place, and with
 * whole lists of them where all entries are. A step for each entry.
 */
export function* keepSame<Lists extends Partial<EntryLists>>(
  lists: Lists,
  known: ReadonlyArray<Partial<EntryLists> | undefined>
): Steps<Lists> {
  const kept: Partial<Record<Member, readonly JsonObject[]>> = {}
  for (const member of members) {
    const list = lists[member]
    if (list === undefined) continue
    const before = known.flatMap((each) => (each?.[member] === undefined ? [] : [each[member]]))
    const entries: JsonObject[] = []
    for (const [at, entry] of list.entries()) {
      entries.push(before.find((old) => isSameJson(old[at], entry))?.[at] ?? entry)
      yield
    }
    const isWhole = (old: readonly JsonObject[]): boolean =>
      old.length === entries.length && entries.every((entry, at) => entry === old[at])
    kept[member] = before.find(isWhole) ?? entries
  }
  return { ...lists, ...kept }
}
