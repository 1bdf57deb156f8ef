// Which lists of its endpoint a session sees differently after a reload.

import { isReserved } from '../../config/policy/policy-config.ts'
import type { Endpoint, Snapshot, Tenant } from '../../config/snapshot.ts'
import { rulesPlace } from '../../policy/rules.ts'
import type { ListKind } from '../../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { Catalog } from './catalog.ts'
import type { ClientCatalogs, SessionViewer } from './client-catalogs.ts'
import { changedKinds } from './freshness.ts'
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
    const change = known?.now === now ? known : { now, kinds: changedKinds(old, now) }
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
