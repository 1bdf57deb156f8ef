// Which lists of its endpoint a session sees differently after a reload, or after a listing has changed.

import { isReserved } from '../../config/policy/policy-config.ts'
import type { Endpoint, Snapshot, Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import { rulesPlace } from '../../policy/rules.ts'
import { isModernRevision } from '../../protocol/messages.ts'
import type { ListKind } from '../../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { Bus } from '../../session/bus/bus.ts'
import type { Catalog } from './catalog.ts'
import { type ClientCatalogs, definitionsOf, type SessionViewer } from './client-catalogs.ts'
import { changedKinds } from './freshness.ts'
import type { ListChange, Listings } from './listings.ts'
import type { OwnLists } from './own-lists.ts'
import type { ViewKey } from './view.ts'
import type { Viewer } from './visible.ts'

const all: readonly ListKind[] = ['tools', 'prompts', 'resources']

type Places = { readonly tenant: Tenant; readonly endpoint: Endpoint }

/** Ends sessions whose endpoint is gone, and tells the others which of their lists differ from before. */
export function tellViewChanges(
  before: Snapshot,
  live: Pick<LiveSessions, 'all' | 'drop'>,
  contextOf: (session: LiveSession) => Viewer | undefined,
  catalogs: Pick<ClientCatalogs<SessionViewer>, 'of'>
): void {
  const changes = createViewChanges(catalogs)
  for (const session of [...live.all()]) {
    const context = contextOf(session)
    if (context === undefined) live.drop(session.key)
    else session.listsChanged(changes(before, { ...context, session }))
  }
}

/** Lists of an upstream that a process shows from now on, as it tells the others. */
export interface ListsOfNode {
  readonly hash: string
  readonly kinds: readonly ListKind[]
  /** `key` of the view; without: the shared listing. */
  readonly view?: string | undefined
}

/** The sessions of this process, and what its clients see. */
interface Viewers {
  readonly live: Pick<LiveSessions, 'all'>
  readonly contextOf: (session: LiveSession) => Viewer | undefined
  readonly catalogs: Pick<ClientCatalogs<SessionViewer>, 'viewKeyOf'>
  readonly ownLists: Pick<OwnLists, 'has'>
  readonly bus: Pick<Bus, 'shared' | 'node' | 'hear'>
}

/** Tells each session of this process whose lists are others after a listing has changed, here or elsewhere. */
export function tellListChanges(listings: Pick<Listings, 'onChange' | 'peek' | 'sessionless'>, viewers: Viewers): void {
  const { live, contextOf, catalogs, ownLists, bus } = viewers
  const isAway = ({ session }: LiveSession): boolean => bus.shared && session.record.home !== bus.node

  function tell(
    { hash, kinds, isAffected }: Pick<ListChange, 'hash' | 'kinds' | 'isAffected'>,
    isTold: (session: LiveSession, definition: UpstreamDefinition) => boolean
  ): void {
    for (const session of live.all()) {
      const context = contextOf(session)
      const changed = new Set([...kinds].filter((kind) => !ownLists.has(session.key, hash, kind)))
      if (context === undefined || changed.size === 0) continue
      if (!isAffected(catalogs.viewKeyOf({ ...context, session }))) continue
      const definition = definitionsOf(context).find((each) => each.hash === hash)
      if (definition !== undefined && isTold(session, definition)) session.listsChanged(changed)
    }
  }

  listings.onChange((change) =>
    // Its home has shown these lists to its client before: here they are read for calls that come here.
    tell(change, (session, definition) => !(change.isFirst && isAway(session) && mayBeBound(definition)))
  )
  // A client that its home told may have asked another process for its lists before that one had read them.
  bus.hear('lists', ({ hash, kinds, view }: ListsOfNode, from) => {
    if (from === bus.node) return
    const isAffected = (viewKey: ViewKey | undefined): boolean => view === undefined || viewKey?.key === view
    const change = { hash, kinds: new Set(kinds), isAffected }
    tell(change, (session, definition) => !isAway(session) && !isBoundUpstream(definition, listings))
  })
}

/**
 * Returns whether the upstream may keep state for a session of a client. A shared one does not, nor does one over HTTP
 * that speaks 2026-07-28 or gives no `Mcp-Session-Id`. A child process may keep state in any revision.
 */
export function isBoundUpstream(
  definition: UpstreamDefinition,
  listings: Pick<Listings, 'peek' | 'sessionless'>
): boolean {
  if (!mayBeBound(definition)) return false
  if (definition.type === 'stdio') return true
  if (listings.sessionless.has(definition)) return false
  const revision = listings.peek(definition)?.revision
  return revision === undefined || !isModernRevision(revision)
}

/** Returns the same for an upstream whose lists this process has not read yet. */
const mayBeBound = ({ isolation, type, era }: UpstreamDefinition): boolean =>
  isolation !== 'shared' && (type === 'stdio' || era !== 'modern')

/** Compares views for one reload: sessions share views, and each pair of them is compared once. */
function createViewChanges(catalogs: Pick<ClientCatalogs<SessionViewer>, 'of'>) {
  const compared = new Map<Catalog, { readonly now: Catalog; readonly kinds: Iterable<ListKind> }>()
  const differences = new Map<Endpoint, 'none' | 'policy' | 'endpoint'>()

  return (before: Snapshot, viewer: SessionViewer): Iterable<ListKind> => {
    const tenant = before.tenants.get(viewer.tenant.id)
    const endpoint = tenant?.endpoints.get(viewer.endpoint.name)
    if (tenant === undefined || endpoint === undefined) return all
    const { ofEverybody: endpointNow = viewer.endpoint } = viewer.endpoint
    // Most changes are of one tenant only.
    if (tenant === viewer.snapshot.tenants.get(tenant.id) && endpoint === endpointNow) return []
    const difference =
      differences.get(endpoint) ?? differenceOf({ tenant, endpoint }, { tenant: viewer.tenant, endpoint: endpointNow })
    differences.set(endpoint, difference)
    // Without a principal it is not known what the session sees.
    if (difference === 'endpoint' || (difference === 'policy' && viewer.principal === undefined)) return all
    if (difference === 'none') return []
    const [old, now] = [catalogs.of({ ...viewer, snapshot: before, tenant, endpoint }), catalogs.of(viewer)]
    const known = compared.get(old)
    const change = known?.now === now ? known : { now, kinds: changedKinds(old.lists, now.lists) }
    compared.set(old, change)
    return change.kinds
  }
}

/** Returns all by which rules decide at an endpoint, to be compared: of equal texts equal decisions follow. */
export function rulesText({ tenant, endpoint }: Places): string {
  const { policy, tools = {} } = endpoint
  const policies = [tenant.policy, policy]
  if (policies.every((each) => each === undefined)) return ''
  const tags = [...tenant.tags].filter(([, of]) => of.trustAnnotations || Object.keys(of.tags).length > 0)
  const hasTenantHints = Object.values(tools).some(({ tenantHints }) => tenantHints !== undefined)
  const reserved = (['tenant', 'endpoint'] as const).map((of) => isReserved(tenant.reserved, rulesPlace(of, endpoint)))
  return JSON.stringify([policies, tags, hasTenantHints && reserved])
}

/** Whether a reload compares the lists of a session (`policy`), or tells it of all of them (`endpoint`). */
export function differenceOf(old: Places, now: Places): 'none' | 'policy' | 'endpoint' {
  const [before, after] = [old, now].map(({ tenant, endpoint }) => {
    const { policy: _policy, ...rest } = endpoint
    return { rest: JSON.stringify(rest), policies: rulesText({ tenant, endpoint }) }
  })
  if (before?.rest !== after?.rest) return 'endpoint'
  return before?.policies === after?.policies ? 'none' : 'policy'
}
