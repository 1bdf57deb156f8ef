// What became different between two listings of an upstream. Pure.

import type { ListKind } from '../protocol/seams.ts'
import type { Listing } from '../upstream/listing.ts'

/** Absent counts as empty. Resources and templates are one kind: `notifications/resources/list_changed` speaks for both. */
export function changedKinds (before: Listing | undefined, after: Listing | undefined): Set<ListKind> {
  const kinds = new Set<ListKind>()
  if (before === after) return kinds
  if (differ(before?.tools, after?.tools)) kinds.add('tools')
  if (differ(before?.prompts, after?.prompts)) kinds.add('prompts')
  if (differ(before?.resources, after?.resources) || differ(before?.templates, after?.templates)) kinds.add('resources')
  return kinds
}

const differ = (before: readonly unknown[] = [], after: readonly unknown[] = []): boolean =>
  before !== after && JSON.stringify(before) !== JSON.stringify(after)
