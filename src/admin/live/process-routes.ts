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
      'Lists the gateway processes on the store that have an admin listener and have reported within half a minute, ' +
      'the one that answers first. Data of the others is up to ten seconds old.',
    response: closedObject({
      items: Type.Array(
        closedObject({
          process: Type.String({ description: 'Id of the process, new with each start.' }),
          version: Type.String({ description: 'Version of the gateway.' }),
          configuration: Type.Integer({
            description: 'Configuration version of the admin API that it serves, as in `/v1/versions`.'
          }),
          snapshot: Type.String({
            description:
              'Digest of its configuration, from the file and the admin API. Processes with the same configuration ' +
              'have the same digest.'
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
