// Explains why a caller may use a tool, prompt or resource of an endpoint or not; reads the caller of such questions.

import { closedObject, choice, defaulted } from '../../config/schema/parts.ts'
import { CallerSchema, routeKinds, routeOutcomes } from '../../config/schema/policy.ts'
import { Type } from '../../config/schema/type.ts'
import { upstreamName } from '../../protocol/messages.ts'
import { cutAnswer, explainRoute, listedRoute, QuestionError } from '../../relay/methods/explain.ts'
import { runSteps } from '../../time/turns.ts'
import { catalogWithoutRules, rulesAt } from '../configuration/rule-effects.ts'
import { namedEndpoint } from './own-way.ts'
import { AdminProblem } from '../problem.ts'
import { defineRoute, everyRole } from '../route.ts'

export const catalogKind = choice(routeKinds, 'tool', 'Which of its lists.')

const ExplanationSchema = closedObject({
  outcome: Type.Enum(routeOutcomes, {
    description: 'The decision, as of `gatehouse explain` ([policy.md](policy.md)).'
  }),
  sentence: Type.String({ description: 'The reason, in a sentence.' }),
  missingScopes: Type.Array(Type.String(), { description: 'Scopes that the call needs and the caller lacks.' }),
  rules: Type.Array(
    closedObject({
      name: Type.String(),
      of: Type.Enum(['tenant', 'endpoint']),
      effect: Type.Enum(['allow', 'deny', 'requires']),
      applies: Type.Union([Type.Boolean(), Type.Null()]),
      because: Type.String()
    }),
    { description: 'Every rule, and whether it applies. `applies` is null if that depends on the arguments.' }
  )
})

/** @throws AdminProblem invalid_request where the question cannot be asked so */
export async function asked<T>(answer: () => T | Promise<T>): Promise<T> {
  try {
    return await answer()
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

export const questionRoutes = [
  defineRoute(
    {
      method: 'POST',
      path: '/v1/tenants/{tenant}/endpoints/{endpoint}/explain',
      isSafe: true,
      roles: everyRole,
      summary: 'Explains rule by rule why a caller can or cannot see and use something. Starts no upstream.',
      body: closedObject({
        caller: defaulted(CallerSchema),
        kind: catalogKind,
        name: Type.String({ description: 'UPSTREAM/NAME, where NAME is the name or URI at the upstream.' }),
        arguments: Type.Optional(Type.Unknown({ description: 'Arguments of the call, an object, for conditions.' })),
        address: Type.Optional(
          Type.String({ maxLength: 64, description: 'Address of the client, for conditions that use it.' })
        ),
        at: Type.Optional(Type.String({ description: 'When the call is made (RFC 3339). Default: now.' }))
      }),
      response: ExplanationSchema
    },
    async ({ tenant, params, body, administrator }, services) => {
      const { caller, kind: wanted, name: route, arguments: args, address, at } = body
      const now = timeOf(at, services.wall.now())
      const endpoint = namedEndpoint(tenant, params['endpoint'] ?? '')
      const turn = { tenant: tenant.id, caller: administrator.name }
      administrator.charge(rulesAt(tenant, endpoint))
      const catalog = catalogWithoutRules({ snapshot: services.snapshot(), tenant, endpoint }, services)
      const listed = listedRoute(catalog, wanted, route)
      const question = { caller, kind: wanted, route, args, address, now, annotations: listed?.annotations }
      const answer = await asked(() => runSteps(explainRoute(tenant, endpoint, question), turn))
      const definition = tenant.upstreams.get(upstreamName(route.slice(0, route.indexOf('/'))))
      const isKnown = definition !== undefined && services.listings.peek(definition) !== undefined
      // A resource that no list has may be one of a template.
      const isCut = isKnown && listed === undefined && (wanted === 'tool' || wanted === 'prompt')
      return isCut && answer.outcome !== 'denied' ? cutAnswer(endpoint, wanted, definition.name) : answer
    }
  )
] as const
