// Why something of an endpoint may be used or not; and how such questions say who calls.

import { closedObject, choice, defaulted } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { explainRoute, QuestionError } from '../../relay/methods/explain.ts'
import { namedEndpoint } from './own-way.ts'
import { AdminProblem } from '../problem.ts'
import { defineRoute, everyRole } from '../route.ts'

const texts = (description: string) => Type.Optional(Type.Array(Type.String(), { description }))

export const CallerSchema = closedObject(
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
export const catalogKind = choice(kinds, 'tool', 'Which of its lists.')

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

/** @throws AdminProblem invalid_request where the question cannot be asked so */
export function asked<T>(answer: () => T): T {
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

export const questionRoutes = [
  defineRoute(
    {
      method: 'POST',
      path: '/v1/tenants/{tenant}/endpoints/{endpoint}/explain',
      roles: everyRole,
      summary: 'Why a caller can or cannot see and use something, rule by rule. Starts nothing.',
      body: closedObject({
        caller: defaulted(CallerSchema),
        kind: catalogKind,
        name: Type.String({ description: 'UPSTREAM/NAME, with the name or URI that the upstream itself gives it.' }),
        arguments: Type.Optional(Type.Unknown({ description: 'Those of the call, an object, for conditions.' })),
        at: Type.Optional(Type.String({ description: 'When the call is made (RFC 3339). Default: now.' }))
      }),
      response: ExplanationSchema
    },
    ({ tenant, params, body }, { wall }) => {
      const { caller, kind: wanted, name: route, arguments: args, at } = body
      const now = timeOf(at, wall.now())
      const endpoint = namedEndpoint(tenant, params['endpoint'] ?? '')
      return asked(() => explainRoute(tenant, endpoint, { caller, kind: wanted, route, args, now }))
    }
  )
] as const
