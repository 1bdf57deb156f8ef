// What is wrong now, for whoever looks.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { defineRoute, everyRole } from '../route.ts'
import { maxProblemsOfKind, problemKinds, problemsNow } from './problems.ts'

const ProblemsAnswer = closedObject({
  process: Type.String({
    description: 'Id of the process that answers. Upstreams, limits and use are as this process knows them.'
  }),
  items: Type.Array(
    closedObject({
      id: Type.String({
        description: 'Id of the problem. It stays the same while the problem lasts, whatever `count` is.'
      }),
      kind: Type.Enum([...problemKinds]),
      severity: Type.Enum(['fault', 'warning', 'notice'], {
        description:
          '`fault`: callers are refused. `warning`: some callers are refused, or will be. `notice`: an ' +
          'administrator wanted it so.'
      }),
      tenant: Type.Optional(
        Type.String({ description: 'Id of the tenant. Not given: the problem is of the process.' })
      ),
      upstream: Type.Optional(Type.String()),
      since: Type.Optional(Type.String({ description: 'Since when (RFC 3339).' })),
      count: Type.Optional(Type.Integer({ description: 'The number in `sentence`.' })),
      sentence: Type.String({ description: 'What is wrong. Texts of servers are for administrators only.' }),
      remedy: Type.String({ description: 'What to do.' })
    }),
    { description: `The worst first, at most ${maxProblemsOfKind} of a kind.` }
  ),
  leftOut: Type.Integer({ description: 'Number of further problems.' })
})

export const problemRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/problems',
    roles: everyRole,
    summary:
      'Lists the present problems of the tenants that the key is for: upstreams that are away, limits that refuse, ' +
      'configuration that is not in use, kill switches. For keys without `tenants` also those of the store, and ' +
      'resources that are nearly used up.',
    response: ProblemsAnswer
  },
  async ({ administrator }, services): Promise<Static<typeof ProblemsAnswer>> => ({
    process: services.node,
    ...(await problemsNow(administrator, services))
  })
)
