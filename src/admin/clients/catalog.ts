// Routes for the catalog of an endpoint as a caller sees it in a protocol revision, and for the difference of two.

import type { Static } from 'typebox'
import { choice, closedObject, defaulted } from '../../config/schema/parts.ts'
import { CallerSchema } from '../../config/schema/policy.ts'
import { Type } from '../../config/schema/type.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { latestLegacy, legacyRevisions, modernRevisions } from '../../protocol/messages.ts'
import { definitionsOf } from '../../relay/catalog/client-catalogs.ts'
import { describedPrincipal } from '../../relay/methods/explain.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { checkRole } from '../checks.ts'
import { catalogWithoutRules, listOfKind, readersOfRules } from '../configuration/rule-effects.ts'
import { page, pageQuery, pageSchema } from '../paging.ts'
import { AdminProblem } from '../problem.ts'
import { asked, catalogKind } from './questions.ts'
import { defineRoute, everyRole, type AdminRequest, type AdminServices } from '../route.ts'
import { diffOf, tokensOf, tokensOfAll, type SeenEntry } from './compared-catalogs.ts'
import { namedEndpoint } from './own-way.ts'
import { catalogsThen, keptMoment, readingPast, type KeptMoment } from './past-catalogs.ts'

/** The time that a question waits for upstreams whose lists are not known yet, in milliseconds. */
export const maxListingWaitMs = 5_000
const revision = choice(
  [...legacyRevisions, ...modernRevisions],
  latestLegacy,
  'Of its client: what that does not have is converted or left out.'
)

const definition = Type.Object({}, { description: 'The definition that clients get, with schema and annotations.' })

const CatalogEntry = closedObject({
  name: Type.String({ description: 'Name that the caller sees, or the URI of a resource or template.' }),
  upstream: Type.String({ description: 'Name of its upstream.' }),
  upstreamName: Type.String({ description: 'Its name at the upstream.' }),
  tokens: Type.Integer({ description: 'Tokens of its definition, estimated at four characters each.' }),
  definition: Type.Optional(definition)
})

const unknownUpstreams = Type.Array(Type.String(), {
  description:
    'Upstreams of the endpoint whose lists are not known for the time asked for. What they offer is not in this ' +
    'answer.'
})

const CatalogPage = closedObject({
  ...pageSchema(CatalogEntry).properties,
  count: Type.Integer({ description: 'Number of entries on all pages.' }),
  tokens: Type.Integer({ description: 'Estimated tokens of all pages.' }),
  unknown: unknownUpstreams
})

const Seen = closedObject({
  caller: defaulted(CallerSchema),
  revision,
  at: Type.Optional(
    Type.String({
      description:
        'Time for which the catalog is made (RFC 3339), from the kept configuration of the tenant and the kept ' +
        'lists of its upstreams. Not given: now. For a tenant of the configuration file the present configuration ' +
        'is used at any time.'
    })
  )
})

const CatalogDiff = closedObject({
  onlyFrom: Type.Array(Type.String(), { description: 'Names that only `from` sees.' }),
  onlyTo: Type.Array(Type.String(), { description: 'Names that only `to` sees.' }),
  changed: Type.Array(closedObject({ name: Type.String(), from: definition, to: definition }), {
    description: 'Entries that both see with different definitions.'
  }),
  same: Type.Integer({ description: 'Number of entries that both see alike.' }),
  tokens: closedObject({ from: Type.Integer(), to: Type.Integer() }),
  unknown: unknownUpstreams
})

const ownerOf = ({ id }: Tenant): WorkOwner => ({ tenant: id, caller: 'admin' })

/** @throws AdminProblem invalid_request */
function momentOf(at: string): number {
  const ms = /^\d{4}-\d\d-\d\dT/.test(at) ? Date.parse(at) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw new AdminProblem('invalid_request', '"at" is no time.', 'Write it as 2026-11-27T12:00:00Z.')
}

/**
 * Reads past moments; their size is charged before they are parsed.
 * @throws AdminProblem not_found, invalid_request, rate_limited
 */
async function momentsOf(
  { tenant, params, administrator }: AdminRequest,
  seen: ReadonlyArray<Static<typeof Seen>>,
  services: AdminServices
): Promise<Array<KeptMoment | undefined>> {
  const times = seen.map(({ at }) => (at === undefined ? undefined : momentOf(at)))
  const moments: Array<KeptMoment | undefined> = []
  for (const time of times)
    moments.push(time === undefined ? undefined : await keptMoment(tenant, params['endpoint'] ?? '', time, services))
  // Charged once: with two charges, the second one could be refused each time, and the request would never succeed.
  administrator.charge(moments.reduce((sum, moment) => sum + (moment?.chars ?? 0), 0))
  return moments
}

interface Asked {
  readonly endpoint: string
  readonly kind: keyof typeof listOfKind
  /** undefined: now. */
  readonly moment: KeptMoment | undefined
  readonly withoutRules: boolean
}

/** @throws AdminProblem not_found, invalid_request */
async function seenBy(
  now: Tenant,
  { endpoint, kind, moment, withoutRules }: Asked,
  { caller, revision: wanted }: Static<typeof Seen>,
  services: AdminServices
): Promise<{ readonly entries: SeenEntry[]; readonly unknown: string[] }> {
  const tenant = moment?.tenant ?? now
  const context = { snapshot: services.snapshot(), tenant, endpoint: namedEndpoint(tenant, endpoint) }
  const principal = await asked(() => describedPrincipal(tenant, caller))
  const definitions = definitionsOf(context)
  const { listings, catalogOf } =
    moment === undefined ? services : await catalogsThen(moment, services, ownerOf(tenant))
  const waitMs = Math.min(maxListingWaitMs, context.snapshot.limits.coldStartMs)
  if (moment === undefined) await services.listings.awaitListings(definitions, waitMs)
  const catalog = withoutRules
    ? catalogWithoutRules(context, { catalogOf })
    : catalogOf({ ...context, principal }, undefined)
  const [list, member] = listOfKind[kind]
  const routes = catalog.routes(list)
  const entries = catalog.list(list, wanted).map((entry, at) => ({
    name: String(entry[member]),
    upstream: String(routes[at]?.upstream),
    upstreamName: routes[at]?.name ?? '',
    definition: entry
  }))
  const unknown = definitions.filter((each) => listings.peek(each) === undefined).map(({ name }) => String(name))
  return { entries, unknown }
}

/** A step for each entry: it may be as long as a whole list. */
function* shownOf(entries: readonly SeenEntry[], withDefinitions: boolean): Steps<Array<Static<typeof CatalogEntry>>> {
  const shown: Array<Static<typeof CatalogEntry>> = []
  for (const { definition: told, ...entry } of entries) {
    shown.push({ ...entry, tokens: tokensOf(told), ...(withDefinitions && { definition: told }) })
    yield
  }
  return shown
}

export const catalogRoutes = [
  defineRoute(
    {
      method: 'POST',
      path: '/v1/tenants/{tenant}/endpoints/{endpoint}/catalog',
      isSafe: true,
      roles: everyRole,
      summary:
        'Lists what a caller sees at an endpoint with a client without capabilities. Starts the upstreams that it ' +
        'needs.',
      body: closedObject({
        ...Seen.properties,
        kind: catalogKind,
        withoutRules: defaulted(
          Type.Boolean({
            default: false,
            description:
              'Lists all that the endpoint offers before rules apply, whoever `caller` is. Not for viewers, who may ' +
              'not read rules.'
          })
        ),
        definitions: defaulted(Type.Boolean({ default: false, description: 'Adds the definition of each entry.' })),
        ...pageQuery
      }),
      response: CatalogPage
    },
    async (request, services): Promise<Static<typeof CatalogPage>> => {
      const { tenant, params, body, administrator } = request
      const { kind, withoutRules } = body
      if (withoutRules) checkRole({ roles: readersOfRules, method: 'POST' }, administrator)
      const see = async () => {
        const [moment] = await momentsOf(request, [body], services)
        const about = { endpoint: params['endpoint'] ?? '', kind, moment, withoutRules }
        return await seenBy(tenant, about, body, services)
      }
      const { entries, unknown } = await (body.at === undefined ? see() : readingPast(tenant, see))
      const { items, nextCursor } = page(entries, ({ name, upstream }) => `${name}\n${upstream}`, body)
      return {
        items: await runSteps(shownOf(items, body.definitions), ownerOf(tenant)),
        nextCursor,
        count: entries.length,
        tokens: await runSteps(tokensOfAll(entries), ownerOf(tenant)),
        unknown
      }
    }
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/v1/tenants/{tenant}/endpoints/{endpoint}/catalog/diff',
      isSafe: true,
      roles: everyRole,
      summary: 'Compares the catalogs of two callers, two revisions or two times.',
      body: closedObject({ kind: catalogKind, from: Seen, to: Seen }),
      response: CatalogDiff
    },
    async (request, services): Promise<Static<typeof CatalogDiff>> => {
      const { tenant, params, body } = request
      const { from: first, to: second } = body
      const see = async () => {
        const [then, later] = await momentsOf(request, [first, second], services)
        const about = { endpoint: params['endpoint'] ?? '', kind: body.kind, withoutRules: false }
        const seen = (each: Static<typeof Seen>, moment: KeptMoment | undefined) =>
          seenBy(tenant, { ...about, moment }, each, services)
        return [await seen(first, then), await seen(second, later)] as const
      }
      const isOfNow = first.at === undefined && second.at === undefined
      const [from, to] = await (isOfNow ? see() : readingPast(tenant, see))
      const unknown = [...new Set([...from.unknown, ...to.unknown])]
      return { ...(await runSteps(diffOf(from.entries, to.entries), ownerOf(tenant))), unknown }
    }
  )
] as const
