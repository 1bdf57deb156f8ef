// Which tools of legacy upstreams work only as tasks of 2025-11-25 (`execution.taskSupport: required`).

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { hasCapability } from '../../protocol/translate/merge.ts'
import { isModernRevision, isObject } from '../../protocol/messages.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import type { Listings } from '../catalog/listings.ts'

/** Does the tool work only as a task? @param tool as the upstream knows it */
export type RequiresTask = (definition: UpstreamDefinition, tool: unknown) => boolean

export function createRequiresTask(listings: Pick<Listings, 'all'>): RequiresTask {
  const tools = new WeakMap<Listing, ReadonlySet<unknown>>()

  /** In a server without the capability, `taskSupport` means nothing ("Tool-Level Negotiation"). */
  function requiredIn(listing: Listing): ReadonlySet<unknown> {
    const known = tools.get(listing)
    if (known !== undefined) return known
    const able =
      !isModernRevision(listing.revision) && hasCapability(listing.capabilities, ['tasks', 'requests', 'tools', 'call'])
    const names = new Set(
      able
        ? listing.tools
            .filter(({ execution }) => isObject(execution) && execution['taskSupport'] === 'required')
            .map(({ name }) => name)
        : []
    )
    tools.set(listing, names)
    return names
  }

  // Views differ in which tools they hold, not in what a tool of one name is.
  return (definition, tool) => listings.all(definition).some((listing) => requiredIn(listing).has(tool))
}
