// Which processes serve, and with what.

import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { defineRoute, everyRole } from '../route.ts'

export const processesRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/processes',
    roles: everyRole,
    summary:
      'The processes of the gateway on the store that have an admin listener, the one that answers first: those that ' +
      'said within half a minute that they serve. What is told of the others is up to ten ' +
      'seconds old.',
    response: closedObject({
      items: Type.Array(
        closedObject({
          process: Type.String({ description: 'Its name, which is new with each start.' }),
          version: Type.String({ description: 'Of the gateway.' }),
          configuration: Type.Integer({ description: 'Version of what the admin API has made, as of `/v1/versions`.' }),
          snapshot: Type.String({
            description: 'Digest of what it serves with, of file and admin API: equal at processes that serve alike.'
          }),
          startedAt: Type.String({ description: 'RFC 3339.' })
        })
      )
    })
  },
  async (_request, { processes }) => ({
    items: (await processes.list()).map(({ startedAt, ...each }) => ({
      ...each,
      startedAt: new Date(startedAt).toISOString()
    }))
  })
)
