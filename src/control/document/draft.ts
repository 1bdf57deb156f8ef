// What a change would make of the document of a tenant, and whether its author may make that of it.

import { canonicalJsonOf } from '../../protocol/json-text.ts'
import { isAllowedHost } from '../../config/formats.ts'
import { pathText, type Problem } from '../../config/problems.ts'
import { stringOrNone, treeOf, type Tree } from '../../config/shape.ts'
import type { AdminConfig, Snapshot } from '../../config/snapshot.ts'
import { checkTenantAdmin } from './permissions.ts'
import { placesOfHints, tenantHintsIn } from './tenant-hints.ts'
import {
  documentOf,
  hasReference,
  notUsable,
  storedDocument,
  type TenantDocument,
  textOfDocument
} from './tenant-document.ts'

/** Where the gateway may go for what tenant-admins name. */
export type Reach = Pick<AdminConfig, 'allowedHosts'> & Pick<Snapshot, 'egress'>

export interface DraftWork {
  readonly role: string
  readonly reach: Reach
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
export function draftOf({ role, reach, before, wanted, restored }: DraftWork): string | undefined {
  const old = before === undefined ? undefined : documentOf(before, 0)
  const tree = storedDocument(JSON.parse(wanted) as Tree, old?.tree)
  const isPlatform = role === 'platform-admin'
  if (!isPlatform) checkTenantAdmin(old?.tree, tree, reach)
  const faults = portFaults(treeOf(old?.tree['upstreams']), treeOf(tree['upstreams']), reach)
  // What was there once may be taken up again.
  if (restored === undefined && faults.length > 0) throw notUsable(faults)
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

/** A host below `*.` is held to the ports of `egress`, whoever wrote it; in ranges of `egress` any port is open. */
function portFaults(before: Tree, next: Tree, { allowedHosts, egress: { allow, ports } }: Reach): Problem[] {
  if (allow.length > 0) return []
  return Object.entries(next).flatMap(([name, upstream]): Problem[] => {
    const url = stringOrNone(treeOf(upstream)['url'])
    if (url === undefined || !URL.canParse(url) || hasReference(url) || treeOf(before[name])['url'] === url) return []
    const { hostname, port, protocol } = new URL(url)
    const own = Number(port) || (protocol === 'https:' ? 443 : 80)
    if (!isAllowedHost(new URL(url), allowedHosts) || allowedHosts.includes(hostname)) return []
    if ([443, ...ports].includes(own)) return []
    const message = `leads to port ${own}, and hosts below a wildcard are reached at ${[443, ...ports].join(', ')} only`
    const suggestion =
      'Use https at such a port. Or the configuration file lists the port under egress.ports, or this very host ' +
      'under admin.allowedHosts.'
    return [{ path: pathText(['upstreams', name, 'url']), message, suggestion }]
  })
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
