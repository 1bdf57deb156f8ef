// Past catalogs, rebuilt from the stored versions of the configuration and the stored changes of upstreams' lists; and
// the moments at which they changed.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import { createCatalogCache, type CatalogCache } from '../../relay/catalog/cache/catalog-cache.ts'
import { definitionsOf } from '../../relay/catalog/client-catalogs.ts'
import type { ListingSource } from '../../relay/catalog/listings.ts'
import {
  keptListings,
  listingAt,
  pastOf,
  type KeptListings,
  type ListingChangeKept
} from '../../relay/catalog/past/past-listings.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'
import { runSteps } from '../../time/turns.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { AdminProblem } from '../problem.ts'
import { defineRoute, everyRole, type AdminServices } from '../route.ts'
import { createPlaces, namedEndpoint } from './own-way.ts'

/** The newest, of the configuration and of lists together. */
const maxMoments = 100
/** The most versions of a tenant that are read: as many as are kept of it alone. */
const maxVersionsRead = 20

/** The most concurrent reads in a process, half of them of one tenant: each holds the lists of all its upstreams. */
const maxPastReadings = 4
const places = createPlaces(maxPastReadings, 'Too many catalogs of the past are being read.')

/** @throws AdminProblem rate_limited, and whatever `read` throws */
export async function readingPast<T>({ id }: Pick<Tenant, 'id'>, read: () => Promise<T>): Promise<T> {
  const free = places.take(id)
  try {
    return await read()
  } finally {
    free()
  }
}

/** A past tenant, with the stored lists of its upstreams at an endpoint, which are not read yet. */
export interface KeptMoment {
  /** Epoch ms. */
  readonly at: number
  readonly tenant: Tenant
  readonly listings: ReadonlyMap<string, KeptListings>
  /** The characters of all that has to be read. */
  readonly chars: number
}

/** @throws AdminProblem not_found where that is not kept */
async function tenantThen({ id }: Tenant, at: number, { control, snapshot }: AdminServices) {
  const now = snapshot().tenants.get(id)
  if (now !== undefined && control.isOfFile(id)) return { tenant: now, chars: 0 }
  const versions = await control.history([id], Infinity, maxVersionsRead)
  const version = versions.find((each) => Date.parse(each.at) <= at)
  const then = version && (await control.tenantAt(version.version, id))
  if (then !== undefined) return then
  throw new AdminProblem(
    'not_found',
    'The configuration of then is not kept, or there was none.',
    'Choose a later moment: GET …/catalog/moments has those that are kept.'
  )
}

const charsOf = (kept: Iterable<KeptListings>): number =>
  [...kept].reduce((sum, { now = '', past = '' }) => sum + now.length + past.length, 0)

async function keptOf(definitions: readonly UpstreamDefinition[], { store }: Pick<AdminServices, 'store'>) {
  const found = await Promise.all(definitions.map(async ({ hash }) => [hash, await keptListings(store, hash)] as const))
  return new Map(found)
}

/** @throws AdminProblem not_found where that is not kept */
export async function keptMoment(now: Tenant, name: string, at: number, services: AdminServices): Promise<KeptMoment> {
  const { tenant, chars } = await tenantThen(now, at, services)
  const context = { snapshot: services.snapshot(), tenant, endpoint: namedEndpoint(tenant, name) }
  const listings = await keptOf(definitionsOf(context), services)
  return { at, tenant, listings, chars: chars + charsOf(listings.values()) }
}

/** Catalogs over what upstreams listed then. Where that is not known, they are missing, as those that are away now. */
export async function catalogsThen(
  { at, listings: kept }: KeptMoment,
  { log }: AdminServices,
  owner: WorkOwner
): Promise<{ readonly listings: Pick<ListingSource, 'peek'>; readonly catalogOf: CatalogCache }> {
  const known = new Map<string, Listing | undefined>()
  for (const [hash, each] of kept) known.set(hash, await runSteps(listingAt(each, at), owner))
  const peek = ({ hash }: UpstreamDefinition): Listing | undefined => known.get(hash)
  const counts = { asked: 0, misses: 0 }
  const listings = { catalogs: counts, peek, last: peek, version: () => counts, changeCount: () => 0 }
  return { listings, catalogOf: createCatalogCache(listings, log) }
}

const Moment = closedObject({
  at: Type.String({
    description: 'Time of the change (RFC 3339). A catalog with an earlier `at` shows what was offered before it.'
  }),
  version: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Version of the configuration. null: a list of an upstream changed.'
  }),
  actor: Type.Union([Type.String(), Type.Null()], {
    description: 'Who changed the configuration. null: a list changed.'
  }),
  upstream: Type.Union([Type.String(), Type.Null()], {
    description: 'Upstream whose list changed. null: the configuration changed.'
  }),
  came: Type.Integer({ description: 'Number of entries that were added to its lists.' }),
  gone: Type.Integer({ description: 'Number of entries that were removed.' }),
  altered: Type.Integer({ description: 'Number of entries that were altered.' })
})

const countsOf = ({ lists }: ListingChangeKept) => {
  const all = Object.values(lists)
  const sum = (member: 'came' | 'gone' | 'altered'): number =>
    all.reduce((total, each) => total + each[member].length, 0)
  return { came: sum('came'), gone: sum('gone'), altered: sum('altered') }
}

export const momentsRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}/endpoints/{endpoint}/catalog/moments',
    roles: everyRole,
    summary:
      'Lists the times at which the catalog of an endpoint may have changed, the newest first: versions of the ' +
      'configuration of its tenant, and changes of the lists of its upstreams.',
    response: closedObject({
      items: Type.Array(Moment),
      since: Type.Union([Type.String(), Type.Null()], {
        description: 'Since when the lists of all its upstreams are known (RFC 3339). null: some are not known.'
      })
    })
  },
  async ({ tenant, params, administrator }, { control, store, snapshot }) => {
    const endpoint = namedEndpoint(tenant, params['endpoint'] ?? '')
    const versions = control.isOfFile(tenant.id) ? [] : await control.history([tenant.id], Infinity, maxVersionsRead)
    const definitions = definitionsOf({ snapshot: snapshot(), tenant, endpoint })
    const pasts = await readingPast(tenant, async () => {
      const kept = await keptOf(definitions, { store })
      administrator.charge(charsOf([...kept.values()].map(({ past }) => ({ now: undefined, past }))))
      return definitions.map(({ name, hash }) => [name, pastOf({ past: kept.get(hash)?.past })] as const)
    })
    const none = { came: 0, gone: 0, altered: 0 }
    const items: Array<Static<typeof Moment>> = [
      ...versions.map(({ at, version, author }) => ({ at, version, actor: author.name, upstream: null, ...none })),
      ...pasts.flatMap(([upstream, past]) =>
        (past?.changes ?? []).map((change) => ({
          ...{ at: new Date(change.at).toISOString(), version: null, actor: null, upstream },
          ...countsOf(change)
        }))
      )
    ]
    const isWhole = pasts.every(([, past]) => past !== undefined)
    const since = Math.max(...pasts.map(([, past]) => past?.since ?? 0))
    return {
      items: items.sort((one, other) => Date.parse(other.at) - Date.parse(one.at)).slice(0, maxMoments),
      since: isWhole && pasts.length > 0 ? new Date(since).toISOString() : null
    }
  }
)
