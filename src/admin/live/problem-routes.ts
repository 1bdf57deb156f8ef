// What is wrong now, for whoever looks.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { defineRoute, everyRole } from '../route.ts'
import { maxProblemsOfKind, problemKinds, problemsNow } from './problems.ts'

const ProblemsAnswer = closedObject({
  process: Type.String({ description: 'Which process answers: upstreams, limits and use are as it knows them.' }),
  items: Type.Array(
    closedObject({
      id: Type.String({ description: 'Of the problem: equal as long as it is the same one, whatever it counts.' }),
      kind: Type.Enum([...problemKinds]),
      severity: Type.Enum(['fault', 'warning', 'notice'], {
        description:
          '`fault`: callers are refused by it. `warning`: some are, or will be. `notice`: somebody wanted it so.'
      }),
      tenant: Type.Optional(Type.String({ description: 'Not there: it is of the process.' })),
      upstream: Type.Optional(Type.String()),
      since: Type.Optional(Type.String({ description: 'Since when (RFC 3339).' })),
      count: Type.Optional(Type.Integer({ description: 'Of what the sentence counts.' })),
      sentence: Type.String({ description: 'What is wrong. What servers said is told to administrators only.' }),
      remedy: Type.String({ description: 'What to do.' })
    }),
    { description: `The worst first, at most ${maxProblemsOfKind} of a kind.` }
  ),
  leftOut: Type.Integer({ description: 'How many more there are.' })
})

export const problemRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/problems',
    roles: everyRole,
    summary:
      'What is wrong now with the tenants that the key is for: upstreams that are away, limits that refuse, ' +
      'configuration that is not in use, kill switches. For keys without `tenants` also the store, and what is ' +
      'nearly used up.',
    response: ProblemsAnswer
  },
  async ({ administrator }, services): Promise<Static<typeof ProblemsAnswer>> => ({
    process: services.node,
    ...(await problemsNow(administrator, services))
  })
)
