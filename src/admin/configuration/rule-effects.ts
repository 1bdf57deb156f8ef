// The rules that hold at an endpoint, in their order, each with what it is about of what the endpoint has now: a rule
// that covers nothing, or too much, is seen before a caller meets it.

import type { Static } from 'typebox'
import type { Principal } from '../../auth/principal.ts'
import type { Endpoint, Snapshot, Tenant } from '../../config/snapshot.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { PolicySchema } from '../../config/schema/policy.ts'
import { Type } from '../../config/schema/type.ts'
import { createRouteFacts } from '../../policy/route-facts.ts'
import { compilePolicy, factsAt, rulesPlace, type RouteFacts, type Rule } from '../../policy/rules.ts'
import { definitionsOf } from '../../relay/catalog/client-catalogs.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { callersToday } from '../callers/callers.ts'
import { namedEndpoint } from '../clients/own-way.ts'
import { page, pageQuery, pageSchema } from '../paging.ts'
import { defineRoute, type AdminServices } from '../route.ts'
import { RuleInForce } from './policies.ts'

/** The most tools of one rule that are listed. */
const maxCoveredNames = 20

/** The most callers of one rule that are listed. */
const maxCallerNames = 20

/** The roles that may read rules, and what is offered before rules decide. */
export const readersOfRules = ['platform-admin', 'tenant-admin', 'auditor'] as const

export const policyLevels = ['tenant', 'endpoint'] as const

const RuleEffect = closedObject({
  ...RuleInForce.properties,
  of: Type.Enum(policyLevels, { description: 'Whether the policy of the tenant or of the endpoint has the rule.' }),
  place: Type.Integer({ description: 'Position in that policy, from 1.' }),
  tools: closedObject(
    {
      count: Type.Integer(),
      names: Type.Array(Type.String(), { description: `As the endpoint calls them: the first ${maxCoveredNames}.` })
    },
    { description: 'Tools that `what` covers, for any caller and any arguments.' }
  ),
  callers: closedObject(
    {
      count: Type.Integer(),
      names: Type.Array(Type.String(), { description: `Subjects and names of keys: the first ${maxCallerNames}.` })
    },
    { description: 'Callers that `who` covers, of those who called the tenant today at the process that answers.' }
  )
})

const RulesPage = closedObject({
  ...pageSchema(RuleEffect).properties,
  defaults: closedObject(
    {
      tenant: Type.Union([PolicySchema.properties.default, Type.Null()]),
      endpoint: Type.Union([PolicySchema.properties.default, Type.Null()])
    },
    {
      description:
        'What holds where no rule allows or denies, by the policy of the tenant and by that of the endpoint; both ' +
        'must allow. null: there is no such policy, which allows.'
    }
  ),
  tools: Type.Integer({ description: 'Number of tools of the endpoint before rules apply.' }),
  unknown: Type.Array(Type.String(), {
    description: 'Upstreams of the endpoint whose lists are not known now. Their tools are not in this answer.'
  })
})

export interface EndpointPlace {
  readonly snapshot: Snapshot
  readonly tenant: Tenant
  readonly endpoint: Endpoint
}

/** The list of each kind, and the member that names an entry of it. */
export const listOfKind = {
  tool: ['tools', 'name'],
  prompt: ['prompts', 'name'],
  resource: ['resources', 'uri'],
  template: ['templates', 'uriTemplate']
} as const

/** Returns the catalog of the endpoint for a caller whom no rule restricts. */
export const catalogWithoutRules = (place: EndpointPlace, { catalogOf }: Pick<AdminServices, 'catalogOf'>) =>
  catalogOf({ ...place, isBeforeRules: true }, undefined)

interface PlacedRule {
  readonly rule: Rule
  readonly of: (typeof policyLevels)[number]
  readonly place: number
}

function rulesOf({ tenant, endpoint }: EndpointPlace): PlacedRule[] {
  return policyLevels.flatMap((of) => {
    const { policy } = of === 'tenant' ? tenant : endpoint
    return policy === undefined ? [] : compilePolicy(policy).rules.map((rule, at) => ({ rule, of, place: at + 1 }))
  })
}

/** Returns how many rules a question about the endpoint goes through. */
export const rulesAt = (tenant: Tenant, endpoint: Endpoint): number =>
  (tenant.policy?.rules.length ?? 0) + (endpoint.policy?.rules.length ?? 0)

/** A step for each rule: policies and lists may be long. */
function* effectsOf(
  rules: readonly PlacedRule[],
  tools: ReadonlyArray<{ readonly name: string; readonly facts: RouteFacts }>,
  callers: readonly Principal[],
  { tenant, endpoint }: EndpointPlace
): Steps<Array<Static<typeof RuleEffect>>> {
  const effects: Array<Static<typeof RuleEffect>> = []
  for (const { rule, of, place } of rules) {
    yield
    const standsAt = rulesPlace(of, endpoint)
    const covered = tools.filter(
      ({ facts }) => rule.isAboutUpstream(facts.upstream) && rule.covers(factsAt(standsAt, tenant, facts))
    )
    const about = callers.filter((each) => rule.isAbout(each)).map(({ subject }) => subject)
    const { name, effect, who, what, scopes, when } = rule
    effects.push({
      ...({ name, effect, who, what, scopes, ...(when !== undefined && { when }) } as Static<typeof RuleInForce>),
      of,
      place,
      tools: { count: covered.length, names: covered.slice(0, maxCoveredNames).map((each) => each.name) },
      callers: { count: about.length, names: about.slice(0, maxCallerNames) }
    })
  }
  return effects
}

/** Sorts as the rules stand. */
export const placeOrder = ({ of, place }: Pick<PlacedRule, 'of' | 'place'>): string =>
  `${policyLevels.indexOf(of)} ${String(place).padStart(9, '0')}`

export const ruleEffectsRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}/endpoints/{endpoint}/rules',
    roles: readersOfRules,
    summary:
      'Lists the rules in force at an endpoint, those of its tenant first, each with the tools and with the callers ' +
      'of today that it covers. Starts no upstream.',
    query: closedObject(pageQuery),
    response: RulesPage
  },
  async ({ tenant, params, query, administrator }, services): Promise<Static<typeof RulesPage>> => {
    const at = { snapshot: services.snapshot(), tenant, endpoint: namedEndpoint(tenant, params['endpoint'] ?? '') }
    const catalog = catalogWithoutRules(at, services)
    const factsOf = createRouteFacts(tenant.tags)
    const routes = catalog.routes('tools')
    const tools = catalog.lists.tools.flatMap(({ name }, index) => {
      const route = routes[index]
      return route === undefined ? [] : [{ name: String(name), facts: factsOf('tool', route) }]
    })
    const { items, nextCursor } = page(rulesOf(at), placeOrder, query)
    const callers = callersToday(services.callers, tenant.id)
    const unknown = definitionsOf(at).filter((each) => services.listings.peek(each) === undefined)
    return {
      items: await runSteps(effectsOf(items, tools, callers, at), { tenant: tenant.id, caller: administrator.name }),
      nextCursor,
      defaults: { tenant: tenant.policy?.default ?? null, endpoint: at.endpoint.policy?.default ?? null },
      tools: tools.length,
      unknown: unknown.map(({ name }) => String(name))
    }
  }
)
