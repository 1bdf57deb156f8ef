// The catalog as one principal may see it. Lists and calls look at the same decision, so that what is listed can be
// called and nothing else can; what is denied is as unknown as what no upstream has.

import { LRUCache } from 'lru-cache'
import type { Principal } from '../../auth/principal.ts'
import { createAccess, type Access, type Verdict } from '../../policy/access.ts'
import { factsOf, type RouteKind } from '../../policy/rules.ts'
import type { JsonObject, Revision, UpstreamName } from '../../protocol/messages.ts'
import { isPlainUri } from '../../protocol/plain-uri.ts'
import type { Steps } from '../../time/turns.ts'
import type { Call, EndpointContext } from '../call/call.ts'
import type { Catalog, ListName, NamedKind, Route } from './catalog.ts'
import { entriesOfStep, lazily, listNames } from './offered.ts'
import type { MayUse } from './public-names.ts'

/** The viewer of an endpoint. Without a principal: nobody in particular, who sees only what no policy guards. */
export type Viewer = EndpointContext & {
  readonly principal?: Principal | undefined
  /** Whoever asks is shown what the endpoint offers before rules decide: one who runs the gateway. */
  readonly isBeforeRules?: true
}

const kindOf: Readonly<Record<ListName, RouteKind>> = {
  tools: 'tool',
  prompts: 'prompt',
  resources: 'resource',
  templates: 'template'
}

/** Sets of scopes whose lists are kept, of one catalog. */
const maxScopeSets = 100

/** @returns the catalog that a viewer sees of the given one: the same object for all who may use the same */
export function createVisibleCatalogs(): (viewer: Viewer, catalog: Catalog) => Catalog {
  const accessTo = createAccess()
  const views = new WeakMap<Catalog, WeakMap<Access, Catalog>>()
  const listed = new WeakMap<Catalog, ReturnType<typeof listedByScopes>>()
  return ({ tenant, endpoint, principal, isBeforeRules }, catalog) => {
    if (isBeforeRules === true) return catalog
    const access = accessTo(tenant, endpoint, principal)
    if (access === undefined) return catalog
    const own = views.get(catalog) ?? new WeakMap<Access, Catalog>()
    views.set(catalog, own)
    const view = own.get(access) ?? visibleCatalog(catalog, access)
    own.set(access, view)
    if (endpoint.listsByScopes !== true) return view
    const listedFor = listed.get(view) ?? listedByScopes(view, access)
    listed.set(view, listedFor)
    return listedFor(principal?.scopes)
  }
}

/** What every call needs scopes for that the caller lacks is in no list; a call of it is still told which they are. */
function listedByScopes(view: Catalog, access: Access) {
  const needed = new Set(
    listNames.flatMap((name) => view.routes(name).flatMap((route) => access(kindOf[name], route).scopes))
  )
  const known = new LRUCache<string, Catalog>({ max: maxScopeSets })
  return (scopes: ReadonlySet<string> | undefined): Catalog => {
    const has = new Set([...needed].filter((scope) => scopes?.has(scope)))
    if (has.size === needed.size) return view
    const key = [...has].join(' ')
    const isShown = (kind: RouteKind, route: Route): boolean =>
      access(kind, route).scopes.every((scope) => has.has(scope))
    const lists = known.get(key) ?? withLists(view, view, isShown)
    known.set(key, lists)
    return lists
  }
}

/** @param base everything but its lists: those of `catalog`, of what is shown */
function withLists(
  base: Omit<Catalog, 'lists' | 'list' | 'listSteps' | 'routes'>,
  catalog: Catalog,
  isShown: (kind: RouteKind, route: Route) => boolean
): Catalog {
  const masks = new Map<ListName, readonly boolean[]>()
  function maskOf(name: ListName): readonly boolean[] {
    const mask = masks.get(name) ?? catalog.routes(name).map((route) => isShown(kindOf[name], route))
    masks.set(name, mask)
    return mask
  }
  const filtered = new WeakMap<readonly unknown[], readonly JsonObject[]>()
  /**
   * Returns the visible entries: the same list where nothing of it is hidden, since its text is kept for all who see
   * it.
   */
  function visible(name: ListName, list: readonly JsonObject[]): readonly JsonObject[] {
    const mask = maskOf(name)
    const entries = filtered.get(list) ?? (mask.every(Boolean) ? list : list.filter((_, at) => mask[at]))
    filtered.set(list, entries)
    return entries
  }
  function* listSteps(name: ListName, revision: Revision): Steps<readonly JsonObject[]> {
    const list = yield* catalog.listSteps(name, revision)
    // What is decided of a route is remembered.
    if (!masks.has(name))
      for (const [at, route] of catalog.routes(name).entries()) {
        isShown(kindOf[name], route)
        if (at % entriesOfStep === entriesOfStep - 1) yield
      }
    return visible(name, list)
  }
  const routes = (name: ListName): readonly Route[] => catalog.routes(name).filter((_, at) => maskOf(name)[at])

  /** Is the upstream one of which the principal may use something, or which has nothing? */
  function isKnown(upstream: UpstreamName): boolean {
    const has = (route: Route): boolean => route.upstream === upstream
    return (
      listNames.some((name) => catalog.routes(name).some((route, at) => has(route) && maskOf(name)[at])) ||
      !listNames.some((name) => catalog.routes(name).some(has))
    )
  }

  return {
    ...base,
    lists: lazily((name) => visible(name, catalog.lists[name])),
    get instructions() {
      return catalog.instructionsOf(isKnown)
    },
    listSteps,
    list: (name: ListName, revision: Revision) => visible(name, catalog.list(name, revision)),
    routes
  }
}

function visibleCatalog(catalog: Catalog, access: Access): Catalog {
  const permitted = (kind: RouteKind, route: Route | undefined): Route | undefined =>
    route !== undefined && access(kind, route).isListed ? route : undefined

  const mayUse =
    (kind: RouteKind): MayUse =>
    (upstream, name) =>
      access(kind, { upstream, name }).isListed

  const base = {
    ...catalog,
    decide: access,
    tool: (name: string) => permitted('tool', catalog.tool(name)),
    prompt: (name: string) => permitted('prompt', catalog.prompt(name)),
    resource: (uri: string) => permitted('resource', catalog.resource(uri)),
    hidden(kind: NamedKind, name: string) {
      const route = catalog[kind](name)
      if (route === undefined) return undefined
      const judged = kind !== 'reference' ? kind : catalog.isTemplate(route) ? 'template' : 'resource'
      const { deniedBy } = access(judged, route)
      return deniedBy === undefined ? undefined : { route, rule: deniedBy }
    },
    reference(uri: string) {
      const route = catalog.reference(uri)
      return route && permitted(catalog.isTemplate(route) ? 'template' : 'resource', route)
    },
    unlistedOwnerOfName: (kind: 'tool' | 'prompt', name: string) =>
      catalog.unlistedOwnerOfName(kind, name, mayUse(kind)),
    unlistedOwnerOfUri: (uri: string) => catalog.unlistedOwnerOfUri(uri, mayUse('resource'))
  }
  return withLists(base, catalog, (kind, route) => access(kind, route).isListed)
}

export type Judged = Viewer & Pick<Partial<Call>, 'record'>

/**
 * Conditions of rules at the time of a call, on the very object that its upstream gets.
 * @param now epoch ms
 * @returns undefined where nothing depends on the call
 */
export function judgedCall(
  { principal, record }: Judged,
  catalog: Catalog,
  kind: 'tool' | 'prompt' | 'resource',
  route: Route,
  args: Readonly<Record<string, unknown>>,
  now: number
): Verdict | undefined {
  const { decideCall } = catalog.decide(kind, route)
  if (decideCall === undefined) return undefined
  if (principal === undefined) return { refusedBy: 'default', scopes: [] }
  // A URI that is not plainly written may be another spelling of anything: a condition that looks at it cannot tell.
  const name = kind === 'resource' && !isPlainUri(route.name) ? undefined : route.name
  return decideCall({
    args,
    ...(name !== undefined && { name }),
    ...(record?.address !== undefined && { address: record.address }),
    principal: factsOf(principal),
    now: new Date(now)
  })
}

/** The route of a URI that the viewer could read now: what lasts, such as a subscription, asks each time. */
export function readableRoute(viewer: Judged, catalog: Catalog, uri: string, now: number): Route | undefined {
  const route = catalog.resource(uri)
  if (route === undefined) return undefined
  const verdict = judgedCall(viewer, catalog, 'resource', route, {}, now)
  const { scopes } = verdict ?? catalog.decide('resource', route)
  const mayRead =
    verdict?.refusedBy === undefined && scopes.every((scope) => viewer.principal?.scopes.has(scope) === true)
  return mayRead ? route : undefined
}
