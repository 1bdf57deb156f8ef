// What clients declare with each request of 2026-07-28, as one object for all that declare the same: what follows from
// it is found out once, and not for each call.

import { parseOwnJson } from '../../protocol/json.ts'
import type { ClientCapabilities } from '../../protocol/messages.ts'

/** Declarations that are kept, and how long the text of each may be, in characters: those of a host are shorter. */
const maxKnown = 500
const maxKnownChars = 1_024

/** @returns an equal object, which nobody may change: the same one for equal declarations, while it is kept */
export function createKnownCapabilities(): (declared: ClientCapabilities) => ClientCapabilities {
  const known = new Map<string, ClientCapabilities>()
  return (declared) => {
    const text = JSON.stringify(declared)
    if (text.length > maxKnownChars) return declared
    const found = known.get(text)
    if (found !== undefined) return found
    // Not the given one, which holds on to the body that it was read from.
    const own = parseOwnJson(text) as ClientCapabilities
    // More than all hosts together have: somebody makes them up.
    if (known.size >= maxKnown) known.clear()
    known.set(text, own)
    return own
  }
}
