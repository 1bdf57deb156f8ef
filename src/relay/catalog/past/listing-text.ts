// A listing as the store keeps it.

import { parseOwnJson } from '../../../protocol/json.ts'
import { isObject } from '../../../protocol/messages.ts'
import type { Listing } from '../../../upstream/listing/listing.ts'

/** The member that identifies an entry of each list. */
export const entryKeys = { tools: 'name', prompts: 'name', resources: 'uri', templates: 'uriTemplate' } as const

/**
 * Another version of the gateway may have written it: what does not look like a listing is none.
 * @throws SyntaxError for what is no JSON
 */
export function parseListing(text: string): Listing | undefined {
  const value: unknown = parseOwnJson(text)
  if (!isObject(value) || !isObject(value['capabilities'])) return undefined
  const isListing = Object.entries(entryKeys).every(([member, key]) => {
    const list = value[member]
    return Array.isArray(list) && list.every((entry) => isObject(entry) && typeof entry[key] === 'string')
  })
  return isListing ? (value as unknown as Listing) : undefined
}
