// The listing that the store kept. Another version may have written it, or somebody else: what does not look like one is none.

import { isObject } from '../protocol/messages.ts'
import type { Listing } from '../upstream/listing.ts'

const keys = { tools: 'name', prompts: 'name', resources: 'uri', templates: 'uriTemplate' } as const

/**
 * @returns undefined for what is no listing
 * @throws SyntaxError for what is no JSON
 */
export function parseListing (text: string): Listing | undefined {
  const value: unknown = JSON.parse(text)
  if (!isObject(value) || !isObject(value['capabilities'])) return undefined
  const whole = Object.entries(keys).every(([member, key]) => {
    const list = value[member]
    return Array.isArray(list) && list.every((entry) => isObject(entry) && typeof entry[key] === 'string')
  })
  return whole ? value as unknown as Listing : undefined
}

/** One broken list of a server that answers must not wipe out what it held before. */
export function withKnown (listing: Listing, before: Listing | undefined): Listing {
  if (before === undefined || listing.failed.length === 0) return listing
  return { ...listing, ...Object.fromEntries(listing.failed.map((member) => [member, before[member]])) }
}
