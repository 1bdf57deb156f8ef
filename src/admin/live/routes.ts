// What goes on: calls as they end, and audit records as they are made and as they are kept.

import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { readAuditBackwards } from '../../audit/read.ts'
import type { LiveKind } from '../../observe/live.ts'
import { foreignCursor, pageQuery, pageSchema } from '../paging.ts'
import { AdminProblem } from '../problem.ts'
import { AdminStream, defineRoute, everyRole, type AdminServices } from '../route.ts'

const perEvent =
  '`event: dropped` says how many another process could not send, `event: end` why the stream ends (`slow`: it was ' +
  'not read; `access`: the key was taken away).'

const streamOf = (
  services: Pick<AdminServices, 'watch'>,
  kind: LiveKind,
  tenants: ReadonlySet<string> | undefined
): AdminStream =>
  new AdminStream(
    (send) =>
      services.watch?.listen({
        kind,
        tenants,
        take: (_tenant, text) => send(kind, text),
        missed: (count) => send('dropped', JSON.stringify({ count }))
      }) ?? (() => {})
  )

const onlyEvents = (): AdminProblem =>
  new AdminProblem('not_acceptable', 'This is a stream of events.', 'Send Accept: text/event-stream.')

const callsSummary =
  'with Accept: text/event-stream, at every process: an `event: call` for each, whose `data` is the line of the log ' +
  '([logging.md](logging.md)). What ends while nobody listens is not kept.'

export const liveRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/calls',
      roles: everyRole,
      summary: `Calls of the tenants that the key is for, as they end: ${callsSummary}`,
      events: perEvent
    },
    ({ administrator: { tenants }, wantsEvents }, services) => {
      if (!wantsEvents) throw onlyEvents()
      return streamOf(services, 'call', tenants)
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/calls',
      roles: everyRole,
      summary: `Calls of a tenant, as they end: ${callsSummary}`,
      events: perEvent
    },
    ({ tenant, wantsEvents }, services) => {
      if (!wantsEvents) throw onlyEvents()
      return streamOf(services, 'call', new Set([tenant.id]))
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/audit',
      roles: ['platform-admin', 'tenant-admin', 'auditor'],
      summary:
        'Audit records of a tenant ([audit.md](audit.md)), the newest first as far as one process wrote them; with ' +
        'Accept: text/event-stream those that are made from now on, at every process: an `event: audit` for each.',
      query: closedObject({
        kind: Type.Optional(Type.String({ maxLength: 32, description: 'Only of this kind, such as `change`.' })),
        ...pageQuery
      }),
      response: pageSchema(Type.Object({}, { description: 'A record.' })),
      events: perEvent
    },
    async ({ tenant, query: { limit, cursor, kind }, wantsEvents }, services) => {
      const { snapshot, store } = services
      const { audit } = snapshot()
      if (audit === undefined)
        throw new AdminProblem('conflict', 'Nothing is recorded.', 'Add audit: {} to the configuration file.')
      if (wantsEvents) return streamOf(services, 'audit', new Set([tenant.id]))
      if (!audit.store)
        throw new AdminProblem('conflict', 'Records are not kept in the store.', 'Read audit.file, or set audit.store.')
      const found = await readAuditBackwards(store, tenant.id, { limit, cursor, kind })
      if (found === undefined) throw foreignCursor()
      return { items: found.lines.map((line) => JSON.parse(line) as object), nextCursor: found.nextCursor }
    }
  )
] as const
