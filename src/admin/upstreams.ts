// The upstreams of a tenant as this process knows them: what they are, without anything secret, and how they do.

import type { Static } from 'typebox'
import { closedObject } from '../config/schema/tenant.ts'
import { Type } from '../config/schema/type.ts'
import type { UpstreamDefinition } from '../config/snapshot.ts'
import { upstreamName } from '../protocol/messages.ts'
import type { Administrator } from './access.ts'
import { page, pageSchema, pageQuery } from './paging.ts'
import { noSuch } from './problem.ts'
import { administrators, defineRoute, everyRole, type AdminServices } from './route.ts'

const orNull = <Schema extends ReturnType<typeof Type.String> | ReturnType<typeof Type.Integer>>(
  schema: Schema,
  description: string
) => Type.Union([schema, Type.Null()], { description })

const UpstreamEntry = closedObject({
  name: Type.String({ description: 'Its name in this tenant.' }),
  type: Type.Enum(['stdio', 'http'], { description: 'A process, or a URL.' }),
  target: Type.String({
    description: 'The program, or the origin of the URL: paths, queries and arguments may hold secrets.'
  }),
  secrets: Type.Array(Type.String(), {
    description: 'Names of its headers, or of its environment variables. Values are never shown.'
  }),
  isolation: Type.Enum(['shared', 'principal', 'session'], { description: 'Who shares a connection.' }),
  state: Type.Enum(['connected', 'idle', 'away'], {
    description:
      '`idle`: this process has no connection, and none has failed since one was open. `away`: it cannot be reached.'
  }),
  connections: Type.Integer({ description: 'Open connections of this process.' }),
  calls: Type.Integer({ description: 'Calls that run on them.' }),
  awaySince: orNull(Type.String(), 'Since when it cannot be reached (RFC 3339).'),
  nextTryAt: orNull(Type.String(), 'When it is tried again; a call may try it sooner.'),
  lastError: orNull(
    Type.String(),
    'Why it could not be reached, the last time that it could not; for administrators only: it may hold what the ' +
      'server said.'
  ),
  lastStderr: orNull(
    Type.String(),
    'The last line of standard error of a process, for administrators only: it may say what callers sent.'
  ),
  listing: Type.Union(
    [
      closedObject({
        tools: Type.Integer(),
        prompts: Type.Integer(),
        resources: Type.Integer(),
        templates: Type.Integer()
      }),
      Type.Null()
    ],
    { description: 'How much it listed for clients that declare nothing. null: that is not known now.' }
  )
})

function upstreamEntry(
  definition: UpstreamDefinition,
  { role }: Administrator,
  { pool, listings, wall }: AdminServices
): Static<typeof UpstreamEntry> {
  const { connections, calls, awayMs, retriedInMs, lastError, lastLine } = pool.stateOf(definition)
  const listing = listings.peek(definition)
  const now = wall.now()
  const timeAt = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(now + ms).toISOString())
  const isStdio = definition.type === 'stdio'
  const forAdministrators = (text: string | undefined): string | null =>
    administrators.some((each) => each === role) ? (text ?? null) : null
  return {
    name: definition.name,
    type: definition.type,
    target: isStdio ? definition.command : new URL(definition.url).origin,
    secrets: Object.keys(isStdio ? definition.env : definition.headers),
    isolation: definition.isolation,
    state: awayMs !== undefined ? 'away' : connections > 0 ? 'connected' : 'idle',
    connections,
    calls,
    awaySince: timeAt(awayMs === undefined ? undefined : -awayMs),
    nextTryAt: timeAt(retriedInMs),
    lastError: forAdministrators(lastError),
    lastStderr: forAdministrators(lastLine),
    listing:
      listing === undefined
        ? null
        : {
            tools: listing.tools.length,
            prompts: listing.prompts.length,
            resources: listing.resources.length,
            templates: listing.templates.length
          }
  }
}

export const upstreamRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/upstreams',
      roles: everyRole,
      summary: 'The upstreams of a tenant, and how they do at the process that answers.',
      query: closedObject(pageQuery),
      response: pageSchema(UpstreamEntry)
    },
    ({ tenant, administrator, query }, services) => {
      const { items, nextCursor } = page(tenant.upstreams.values(), ({ name }) => name, query)
      return { items: items.map((each) => upstreamEntry(each, administrator, services)), nextCursor }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/upstreams/{upstream}',
      roles: everyRole,
      summary: 'One upstream.',
      response: UpstreamEntry
    },
    ({ tenant, administrator, params }, services) => {
      const definition = tenant.upstreams.get(upstreamName(params['upstream'] ?? ''))
      if (definition === undefined) throw noSuch('upstream')
      return upstreamEntry(definition, administrator, services)
    }
  )
] as const
