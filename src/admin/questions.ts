// What a caller gets: the catalog of an endpoint as the caller sees it, and why something may be used or not.

import type { Static } from 'typebox'
import { closedObject, choice, defaulted } from '../config/schema/parts.ts'
import { Type } from '../config/schema/type.ts'
import type { Endpoint, Tenant } from '../config/snapshot.ts'
import { endpointName } from '../protocol/messages.ts'
import { definitionsOf } from '../relay/catalog/client-catalogs.ts'
import { describedPrincipal, explainRoute, QuestionError } from '../relay/methods/explain.ts'
import { page, pageSchema, pageQuery } from './paging.ts'
import { AdminProblem, noSuch } from './problem.ts'
import { defineRoute, everyRole } from './route.ts'

/** How long a question waits for upstreams whose lists are not known yet, in milliseconds. */
const maxListingWaitMs = 5_000

const texts = (description: string) => Type.Optional(Type.Array(Type.String(), { description }))

const CallerSchema = closedObject(
  {
    subject: Type.Optional(Type.String({ description: '`sub` of a token.' })),
    issuer: Type.Optional(Type.String({ description: '`iss` of the token. Default: the first issuer of the tenant.' })),
    client: Type.Optional(Type.String({ description: '`client_id` of the token.' })),
    key: Type.Optional(Type.String({ description: 'The name of an API key, in place of a token.' })),
    scopes: texts('Default: those that the tenant requires, or those of the key.'),
    groups: texts('`groups` of the token.'),
    roles: texts('`roles` of the token.')
  },
  { description: 'Who calls. Not given: anybody whom the tenant lets in.' }
)

const kinds = ['tool', 'prompt', 'resource', 'template'] as const
const kind = choice(kinds, 'tool', 'Which of its lists.')

const CatalogEntry = closedObject({
  name: Type.String({ description: 'What the caller sees: a name, or the URI of a resource or template.' }),
  upstream: Type.String({ description: 'Whose it is.' }),
  upstreamName: Type.String({ description: 'What its upstream calls it.' })
})

const CatalogPage = closedObject({
  ...pageSchema(CatalogEntry).properties,
  unknown: Type.Array(Type.String(), {
    description: 'Upstreams of the endpoint whose lists are not known now: what they have is missing here.'
  })
})

const ExplanationSchema = closedObject({
  outcome: Type.Enum(['allowed', 'denied', 'refused', 'needs-scopes', 'depends', 'not-offered'], {
    description: 'As `gatehouse explain` says it ([policy.md](policy.md)).'
  }),
  sentence: Type.String({ description: 'Why, in a sentence.' }),
  missingScopes: Type.Array(Type.String(), { description: 'What the call needs and the caller lacks.' }),
  rules: Type.Array(
    closedObject({
      name: Type.String(),
      of: Type.Enum(['tenant', 'endpoint']),
      effect: Type.Enum(['allow', 'deny', 'requires']),
      applies: Type.Union([Type.Boolean(), Type.Null()]),
      because: Type.String()
    }),
    { description: 'Every rule, and what it has to do with it. `applies` null: that depends on the arguments.' }
  )
})

function endpointOf({ endpoints }: Tenant, name: string): Endpoint {
  const endpoint = endpoints.get(endpointName(name))
  if (endpoint === undefined) throw noSuch('endpoint')
  return endpoint
}

/** @throws AdminProblem invalid_request where the question cannot be asked so */
function asked<T>(answer: () => T): T {
  try {
    return answer()
  } catch (error) {
    if (!(error instanceof QuestionError)) throw error
    throw new AdminProblem('invalid_request', error.message, 'Correct the question.')
  }
}

function timeOf(text: string | undefined, now: number): Date {
  const time = new Date(text ?? now)
  if (!Number.isNaN(time.getTime())) return time
  throw new AdminProblem('invalid_request', '"at" is no time.', 'Write it like 2026-07-28T09:00:00Z.')
}

/** Of each kind: its list, and what an entry of it is known by. */
const lists = {
  tool: ['tools', 'name'],
  prompt: ['prompts', 'name'],
  resource: ['resources', 'uri'],
  template: ['templates', 'uriTemplate']
} as const

export const questionRoutes = [
  defineRoute(
    {
      method: 'POST',
      path: '/v1/tenants/{tenant}/endpoints/{endpoint}/catalog',
      roles: everyRole,
      summary:
        'What a caller sees at an endpoint, with a client that declares nothing. Starts upstreams that are needed.',
      body: closedObject({ caller: defaulted(CallerSchema), kind, ...pageQuery }),
      response: CatalogPage
    },
    async ({ tenant, params, body }, { snapshot, listings, catalogOf }): Promise<Static<typeof CatalogPage>> => {
      const endpoint = endpointOf(tenant, params['endpoint'] ?? '')
      const context = { snapshot: snapshot(), tenant, endpoint }
      const principal = asked(() => describedPrincipal(tenant, body.caller))
      const definitions = definitionsOf(context)
      await listings.awaitListings(definitions, Math.min(maxListingWaitMs, context.snapshot.limits.coldStartMs))
      const catalog = catalogOf({ ...context, principal }, undefined)
      const [list, member] = lists[body.kind]
      const routes = catalog.routes(list)
      const entries = catalog[list].map((entry, at) => ({
        name: String(entry[member]),
        upstream: String(routes[at]?.upstream),
        upstreamName: routes[at]?.name ?? ''
      }))
      const nameOf = ({ name, upstream }: (typeof entries)[number]): string => `${name}\n${upstream}`
      const unknown = definitions.filter((each) => listings.peek(each) === undefined).map(({ name }) => String(name))
      return { ...page(entries, nameOf, body), unknown }
    }
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/v1/tenants/{tenant}/endpoints/{endpoint}/explain',
      roles: everyRole,
      summary: 'Why a caller can or cannot see and use something, rule by rule. Starts nothing.',
      body: closedObject({
        caller: defaulted(CallerSchema),
        kind,
        name: Type.String({ description: 'UPSTREAM/NAME, with the name or URI that the upstream itself gives it.' }),
        arguments: Type.Optional(Type.Unknown({ description: 'Those of the call, an object, for conditions.' })),
        at: Type.Optional(Type.String({ description: 'When the call is made (RFC 3339). Default: now.' }))
      }),
      response: ExplanationSchema
    },
    ({ tenant, params, body }, { wall }) => {
      const { caller, kind: wanted, name: route, arguments: args, at } = body
      const now = timeOf(at, wall.now())
      const endpoint = endpointOf(tenant, params['endpoint'] ?? '')
      return asked(() => explainRoute(tenant, endpoint, { caller, kind: wanted, route, args, now }))
    }
  )
] as const
