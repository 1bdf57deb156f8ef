// What became different between two listings of an upstream, or two catalogs of an endpoint. Pure.

import type { ListKind } from '../protocol/seams.ts'
import type { Listing } from '../upstream/listing.ts'

/** What an upstream lists, or an endpoint offers. */
export type Lists = Pick<Listing, 'tools' | 'prompts' | 'resources' | 'templates'>

/** Absent counts as empty. Resources and templates are one kind: `notifications/resources/list_changed` speaks for both. */
export function changedKinds (before: Lists | undefined, after: Lists | undefined): Set<ListKind> {
  const kinds = new Set<ListKind>()
  if (before === after) return kinds
  if (differ(before?.tools, after?.tools)) kinds.add('tools')
  if (differ(before?.prompts, after?.prompts)) kinds.add('prompts')
  if (differ(before?.resources, after?.resources) || differ(before?.templates, after?.templates)) kinds.add('resources')
  return kinds
}

/** Does the server behind two listings say the same of itself? */
export function sameServer (before: Listing | undefined, after: Listing | undefined): boolean {
  if (before === after) return true
  const said = (listing: Listing | undefined): string => JSON.stringify(listing === undefined ? null : [listing.capabilities, listing.serverInfo, listing.instructions, listing.revision])
  return said(before) === said(after)
}

const differ = (before: readonly unknown[] = [], after: readonly unknown[] = []): boolean =>
  before !== after && JSON.stringify(before) !== JSON.stringify(after)
