// The tools that an upstream lists, before an endpoint selects from them: for administrators who make an endpoint.

import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { upstreamName } from '../../protocol/messages.ts'
import { readersOfRules } from '../configuration/rule-effects.ts'
import { page, pageQuery, pageSchema } from '../paging.ts'
import { noSuch } from '../problem.ts'
import { defineRoute } from '../route.ts'
import { maxListingWaitMs } from './catalog.ts'

export const upstreamToolsRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}/upstreams/{upstream}/tools',
    roles: readersOfRules,
    summary: 'Lists the tools of an upstream by their names there. Starts the upstream if they are not known yet.',
    query: closedObject(pageQuery),
    response: closedObject({
      ...pageSchema(closedObject({ name: Type.String() })).properties,
      isKnown: Type.Boolean({
        description:
          'Whether the tools are known. false: the upstream could not be asked, or lists tools for each person ' +
          'only.'
      })
    })
  },
  async ({ tenant, params, query }, { listings, snapshot }) => {
    const definition = tenant.upstreams.get(upstreamName(params['upstream'] ?? ''))
    if (definition === undefined) throw noSuch('upstream')
    await listings.awaitListings([definition], Math.min(maxListingWaitMs, snapshot().limits.coldStartMs))
    const tools = listings.peek(definition)?.tools
    const names = new Set((tools ?? []).map(({ name }) => String(name)))
    const { items, nextCursor } = page(names, (name) => name, query)
    return { items: items.map((name) => ({ name })), nextCursor, isKnown: tools !== undefined }
  }
)
