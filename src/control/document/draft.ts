// What a change would make of the document of a tenant, and whether its author may make that of it.

import { canonicalJsonOf } from '../../protocol/json-text.ts'
import type { Tree } from '../../config/shape.ts'
import { checkTenantAdmin } from './permissions.ts'
import { documentOf, hasReference, keepsReferences, storedDocument, textOfDocument } from './tenant-document.ts'

export interface DraftWork {
  readonly role: string
  /** Hosts that tenant-admins may name. */
  readonly allowedHosts: readonly string[]
  /** The document of now, as the store keeps it; undefined: there is none. */
  readonly before: string | undefined
  /** The tree that is wanted, as JSON, without the secrets that it keeps. */
  readonly wanted: string
}

/**
 * @returns the document as the store keeps it; undefined: it is so already
 * @throws ControlError not_usable, forbidden
 */
export function draftOf({ role, allowedHosts, before, wanted }: DraftWork): string | undefined {
  const old = before === undefined ? undefined : documentOf(before, 0)
  const tree = storedDocument(JSON.parse(wanted) as Tree, old?.tree)
  const isPlatform = role === 'platform-admin'
  if (!isPlatform) checkTenantAdmin(old?.tree, tree, { allowedHosts })
  if (old !== undefined && canonicalJsonOf(tree) === canonicalJsonOf(old.tree)) return undefined
  // A tenant-admin leaves references as they are, or takes them out.
  const mayRefer = isPlatform || (old?.byPlatform === true && keepsReferences(old.tree, tree))
  return textOfDocument({ tree, byPlatform: mayRefer && hasReference(tree) })
}
