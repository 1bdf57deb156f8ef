// What is different between two listings of an upstream, or two catalogs of an endpoint. Pure.

import type { ListKind } from '../../protocol/seams.ts'
import type { Listing } from '../../upstream/listing/listing.ts'

type EntryLists = Pick<Listing, 'tools' | 'prompts' | 'resources' | 'templates'>

/** Resources and templates are one kind, as in `notifications/resources/list_changed`. */
export function changedKinds(before: EntryLists | undefined, after: EntryLists | undefined): Set<ListKind> {
  const kinds = new Set<ListKind>()
  if (before === after) return kinds
  if (differ(before?.tools, after?.tools)) kinds.add('tools')
  if (differ(before?.prompts, after?.prompts)) kinds.add('prompts')
  if (differ(before?.resources, after?.resources) || differ(before?.templates, after?.templates)) kinds.add('resources')
  return kinds
}

/** @returns undefined where all is the same; no kinds where only the server says something else of itself */
export function changesBetween(before: Listing | undefined, after: Listing | undefined): Set<ListKind> | undefined {
  if (before === after) return undefined
  const kinds = changedKinds(before, after)
  const info = (listing: Listing | undefined): unknown[] =>
    listing === undefined ? [] : [listing.capabilities, listing.serverInfo, listing.instructions, listing.revision]
  return kinds.size > 0 || differ(info(before), info(after)) ? kinds : undefined
}

const differ = (before: readonly unknown[] = [], after: readonly unknown[] = []): boolean =>
  before !== after && JSON.stringify(before) !== JSON.stringify(after)
