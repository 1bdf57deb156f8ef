// A listing as the store keeps it.

import { parseOwnJsonSteps } from '../../../protocol/json.ts'
import { stringOf } from '../../../protocol/json-text.ts'
import { longTextSteps } from '../../../protocol/json-writer.ts'
import { isObject } from '../../../protocol/messages.ts'
import type { Steps } from '../../../time/turns.ts'
import type { Listing } from '../../../upstream/listing/listing.ts'

/** The member that identifies an entry of each list. */
export const entryKeys = { tools: 'name', prompts: 'name', resources: 'uri', templates: 'uriTemplate' } as const

/** A list of a listing. */
export type Member = keyof typeof entryKeys
export const members = Object.keys(entryKeys) as Member[]
export type EntryLists = Pick<Listing, Member>

/** The text of a listing: the same for each that says the same. In steps, because it may be of 4 Mi characters. */
export function* listingText(listing: Listing): Steps<string> {
  return stringOf(yield* longTextSteps(listing))
}

/**
 * Another version of the gateway may have written it: what does not look like a listing is none.
 * @throws SyntaxError for what is no JSON
 */
export function* parseListing(text: string): Steps<Listing | undefined> {
  const value: unknown = yield* parseOwnJsonSteps(text)
  if (!isObject(value) || !isObject(value['capabilities'])) return undefined
  const isListing = Object.entries(entryKeys).every(([member, key]) => {
    const list = value[member]
    return Array.isArray(list) && list.every((entry) => isObject(entry) && typeof entry[key] === 'string')
  })
  return isListing ? (value as unknown as Listing) : undefined
}
