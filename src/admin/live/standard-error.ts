// The last lines of standard error of an upstream, for whoever asks why it fails.

import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { upstreamName } from '../../protocol/messages.ts'
import { pageQuery, pageSchema } from '../paging.ts'
import { noSuch } from '../problem.ts'
import { administrators, defineRoute } from '../route.ts'

const StderrEntry = closedObject({
  at: Type.String({ description: 'When it was read (RFC 3339).' }),
  text: Type.String({ description: 'As in the log: secrets of its configuration and tokens are masked.' }),
  leftOut: Type.Integer({ description: 'Lines before it that were too many at once to be kept.' })
})

export const stderrRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}/upstreams/{upstream}/stderr',
    roles: administrators,
    summary:
      'The last lines that the processes of an upstream wrote to standard error, the oldest first, at the process ' +
      'that answers; also once they have ended. None of a URL.',
    query: closedObject(pageQuery),
    response: pageSchema(StderrEntry)
  },
  ({ tenant, params, query: { limit } }, { pool, clock, wall }) => {
    const definition = tenant.upstreams.get(upstreamName(params['upstream'] ?? ''))
    if (definition === undefined) throw noSuch('upstream')
    const now = clock.now()
    const time = wall.now()
    const items = pool.stderrOf(definition).slice(-limit)
    return {
      items: items.map(({ at, ...line }) => ({ at: new Date(time - (now - at)).toISOString(), ...line })),
      nextCursor: null
    }
  }
)
