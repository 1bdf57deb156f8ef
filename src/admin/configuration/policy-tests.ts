// The tests that stand beside the rules of a policy: what somebody must be able to do, and what not, asked of what
// decides about lists and calls.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { PolicyTestSchema, type PolicyTest } from '../../config/schema/policy.ts'
import { Type } from '../../config/schema/type.ts'
import type { Endpoint, Tenant } from '../../config/snapshot.ts'
import { createAccess } from '../../policy/access.ts'
import type { JsonObject } from '../../protocol/messages.ts'
import { explainRoute, QuestionError, type RouteAnswer } from '../../relay/methods/explain.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { namedEndpoint } from '../clients/own-way.ts'
import { page, pageQuery, pageSchema } from '../paging.ts'
import { defineRoute, type AdminServices } from '../route.ts'
import { catalogWithoutRules, placeOrder, policyLevels, rulesAt, type EndpointPlace } from './rule-effects.ts'

const TestResult = closedObject({
  ...PolicyTestSchema.properties,
  of: Type.Enum(policyLevels, { description: 'Whether the policy of the tenant or of the endpoint has the test.' }),
  place: Type.Integer({ description: 'Position in that policy, from 1.' }),
  holds: Type.Boolean(),
  outcome: Type.Union([PolicyTestSchema.properties.expect, Type.Null()], {
    description: 'What the policy decides. null: the test cannot be run, and `sentence` says why.'
  }),
  sentence: Type.String({ description: 'The reason, in a sentence.' })
})

type Result = Static<typeof TestResult>

/** Rules that the tests of one endpoint go through together, of which there may be thousands for each test. */
const maxRulesTried = 200_000

interface Asked {
  readonly access: ReturnType<typeof createAccess>
  /** The annotations of tools, by UPSTREAM/NAME; none of one that its server has not listed yet. */
  readonly annotations: ReadonlyMap<string, JsonObject | undefined>
}

/** @param now for tests that name no time */
function* resultOf(
  tenant: Tenant,
  endpoint: Endpoint,
  test: PolicyTest,
  now: number,
  { access, annotations }: Asked
): Steps<Pick<RouteAnswer, 'sentence'> & Pick<Result, 'outcome'>> {
  const { caller, kind, name: route, arguments: args, at } = test
  const question = {
    caller,
    kind,
    route,
    args,
    now: new Date(at ?? now),
    annotations: kind === 'tool' ? annotations.get(route) : undefined
  }
  if (Number.isNaN(question.now.getTime())) return { outcome: null, sentence: '"at" is no time.' }
  try {
    return yield* explainRoute(tenant, endpoint, question, access)
  } catch (error) {
    if (!(error instanceof QuestionError)) throw error
    return { outcome: null, sentence: error.message }
  }
}

/**
 * Those of an endpoint, and those of its tenant that are about it. A step for each rule of each. What a kill switch has
 * stopped is asked as if it were not: a policy is what holds again once the switch is taken back.
 */
export function* testResults(
  stopped: Tenant,
  { name }: Endpoint,
  now: number,
  { snapshot, catalogOf }: Pick<EndpointPlace, 'snapshot'> & Pick<AdminServices, 'catalogOf'>
): Steps<Result[]> {
  const { unstopped: tenant = stopped } = stopped
  const endpoint = tenant.endpoints.get(name)
  const tests = endpoint === undefined ? [] : testsAt(tenant, endpoint)
  // Without a test the lists of the endpoint are not looked at.
  if (endpoint === undefined || tests.length === 0) return []
  yield
  const tools = catalogWithoutRules({ snapshot, tenant, endpoint }, { catalogOf }).routes('tools')
  const asked = {
    access: createAccess(),
    annotations: new Map(tools.map((tool) => [`${tool.upstream}/${tool.name}`, tool.annotations]))
  }
  const results: Result[] = []
  const rules = rulesAt(tenant, endpoint)
  for (const { test, of, place } of tests) {
    yield
    const { outcome, sentence } =
      results.length > 0 && (results.length + 1) * rules > maxRulesTried
        ? { outcome: null, sentence: `Not run: the tests before it go through ${maxRulesTried} rules together.` }
        : yield* resultOf(tenant, endpoint, test, now, asked)
    results.push({ ...test, of, place, holds: outcome === test.expect, outcome, sentence })
  }
  return results
}

const testsAt = (tenant: Tenant, endpoint: Endpoint) =>
  policyLevels.flatMap((of) => {
    const { tests = [] } = (of === 'tenant' ? tenant : endpoint).policy ?? {}
    const placed = tests.map((test, at) => ({ test, of, place: at + 1 }))
    return placed.filter(({ test }) => of === 'endpoint' || test.endpoint === endpoint.name)
  })

/** Returns the highest cost of the results. */
export function rulesTried(tenant: Tenant, endpoint: Endpoint): number {
  return Math.min(testsAt(tenant, endpoint).length * rulesAt(tenant, endpoint), maxRulesTried)
}

export const policyTestsRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}/endpoints/{endpoint}/policy-tests',
    roles: ['platform-admin', 'tenant-admin', 'auditor'],
    summary:
      'Runs the tests of the policies in force at an endpoint (`policy.tests` of [config.md](config.md)). Starts no ' +
      'upstream.',
    query: closedObject(pageQuery),
    response: closedObject({
      ...pageSchema(TestResult).properties,
      failed: Type.Integer({ description: 'Number of tests that fail, on all pages.' })
    })
  },
  async ({ tenant, params, query, administrator }, { wall, snapshot, catalogOf }) => {
    const endpoint = namedEndpoint(tenant, params['endpoint'] ?? '')
    administrator.charge(rulesTried(tenant, endpoint))
    const steps = testResults(tenant, endpoint, wall.now(), { snapshot: snapshot(), catalogOf })
    const results = await runSteps(steps, { tenant: tenant.id, caller: administrator.name })
    return { ...page(results, placeOrder, query), failed: results.filter(({ holds }) => !holds).length }
  }
)
