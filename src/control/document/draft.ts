// What a change would make of the document of a tenant, and whether its author may make that of it.

import { canonicalJsonOf } from '../../protocol/json-text.ts'
import type { Tree } from '../../config/shape.ts'
import { checkTenantAdmin } from './permissions.ts'
import { placesOfHints, tenantHintsIn } from './tenant-hints.ts'
import { documentOf, hasReference, storedDocument, type TenantDocument, textOfDocument } from './tenant-document.ts'

export interface DraftWork {
  readonly role: string
  /** Hosts that tenant-admins may name. */
  readonly allowedHosts: readonly string[]
  /** The document of now, as the store keeps it; undefined: there is none. */
  readonly before: string | undefined
  /** The tree that is wanted, as JSON, without the secrets that it keeps. */
  readonly wanted: string
  /** What of a restored version was a tenant-admin's. */
  readonly restored?: Pick<TenantDocument, 'tenantHosts' | 'tenantHints'> | undefined
}

/**
 * @returns the document as the store keeps it; undefined: it is so already
 * @throws ControlError not_usable, forbidden
 */
export function draftOf({ role, allowedHosts, before, wanted, restored }: DraftWork): string | undefined {
  const old = before === undefined ? undefined : documentOf(before, 0)
  const tree = storedDocument(JSON.parse(wanted) as Tree, old?.tree)
  const isPlatform = role === 'platform-admin'
  if (!isPlatform) checkTenantAdmin(old?.tree, tree, { allowedHosts })
  const [tenantHosts, tenantHints] = [
    restored === undefined ? tenantHostsIn(tree, old, isPlatform) : those(hostsIn(tree), restored.tenantHosts),
    restored === undefined ? tenantHintsIn(tree, old, isPlatform) : those(placesOfHints(tree), restored.tenantHints)
  ]
  const isSame =
    canonicalJsonOf(tree) === canonicalJsonOf(old?.tree ?? null) &&
    areSame(tenantHosts, old?.tenantHosts) &&
    areSame(tenantHints, old?.tenantHints)
  if (isSame) return undefined
  // A tenant-admin leaves references as they are, or takes them out.
  const mayRefer = isPlatform || (old?.byPlatform === true && keepsReferences(old.tree, tree))
  return textOfDocument({ tree, byPlatform: mayRefer && hasReference(tree), tenantHosts, tenantHints })
}

/**
 * The list of hosts that a tenant-admin may name can become shorter, and what was written stays: it has to be known
 * then whose they are.
 */
function tenantHostsIn(tree: Tree, before: TenantDocument | undefined, isPlatform: boolean): readonly string[] {
  const known = hostsIn(before?.tree)
  const kept = new Set(before?.tenantHosts)
  return [...hostsIn(tree)].filter((host) => kept.has(host) || (!isPlatform && !known.has(host)))
}

/** Whoever takes a version up again has read none of it anew: it is whose it was then. */
const those = (found: Iterable<string>, then: readonly string[]): readonly string[] => [
  ...new Set(found).intersection(new Set(then))
]

const areSame = (some: readonly string[], others: readonly string[] = []): boolean =>
  new Set(some).symmetricDifference(new Set(others)).size === 0

/** Returns the hosts of URLs that the gateway connects to. */
const hostsIn = (tree: Tree = {}): ReadonlySet<string> =>
  new Set(
    [tree['upstreams'], tree['auth']]
      .flatMap((part) => textsIn(part))
      .flatMap((text) => (/^https?:/i.test(text) && URL.canParse(text) ? new URL(text).hostname : []))
  )

/** Was each text of it that refers to something in the tree before? */
export function keepsReferences(before: Tree, after: Tree): boolean {
  const old = new Set(textsIn(before).filter(hasReference))
  return textsIn(after)
    .filter(hasReference)
    .every((text) => old.has(text))
}

const textsIn = (value: unknown): readonly string[] =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(textsIn)
      : []
