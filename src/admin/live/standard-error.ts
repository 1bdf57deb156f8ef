// The last lines of standard error of an upstream, for whoever asks why it fails.

import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { upstreamName } from '../../protocol/messages.ts'
import { pageQuery, pageSchema } from '../paging.ts'
import { noSuch } from '../problem.ts'
import { administrators, defineRoute } from '../route.ts'

const StderrEntry = closedObject({
  at: Type.String({ description: 'When the line was read (RFC 3339).' }),
  text: Type.String({ description: 'The line as in the log: secrets of the configuration and tokens are masked.' }),
  leftOut: Type.Integer({
    description: 'Number of lines before this one that were not kept, since too many came at once.'
  })
})

export const stderrRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}/upstreams/{upstream}/stderr',
    roles: administrators,
    summary:
      'Lists the last lines that the child processes of an upstream wrote to standard error, the oldest first, at ' +
      'the process that answers, also of ended ones. Empty for a URL.',
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
