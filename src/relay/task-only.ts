// Tools of older upstreams that work only as tasks of 2025-11-25 (`execution.taskSupport: required`): whoever knows no tasks needs somebody
// who follows them.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import { has } from '../protocol/merge.ts'
import { isObject } from '../protocol/messages.ts'
import { isModernRevision } from '../protocol/revisions.ts'
import type { Listing } from '../upstream/listing.ts'
import type { Listings } from './listings.ts'

/** Does the tool work only as a task? @param tool as the upstream knows it */
export type TaskOnly = (definition: UpstreamDefinition, tool: unknown) => boolean

export function createTaskOnly (listings: Pick<Listings, 'all'>): TaskOnly {
  const tools = new WeakMap<Listing, ReadonlySet<unknown>>()

  /** Of a server that has no tasks, what it says of its tools means nothing ("Tool-Level Negotiation"). */
  function requiredIn (listing: Listing): ReadonlySet<unknown> {
    const known = tools.get(listing)
    if (known !== undefined) return known
    const able = !isModernRevision(listing.revision) && has(listing.capabilities, ['tasks', 'requests', 'tools', 'call'])
    const names = new Set(able ? listing.tools.filter(({ execution }) => isObject(execution) && execution['taskSupport'] === 'required').map(({ name }) => name) : [])
    tools.set(listing, names)
    return names
  }

  // Some see more tools than others, but nobody sees another tool of the same name.
  return (definition, tool) => listings.all(definition).some((listing) => requiredIn(listing).has(tool))
}
