// What goes on: calls as they end.

import type { LiveKind } from '../../observe/live.ts'
import { AdminProblem } from '../problem.ts'
import { AdminStream, defineRoute, everyRole, type AdminServices } from '../route.ts'

export const perEvent =
  '`event: dropped` says how many another process could not send, `event: end` why the stream ends (`slow`: it was ' +
  'not read; `access`: the key was taken away).'

export const streamOf = (
  services: Pick<AdminServices, 'watch'>,
  kind: LiveKind,
  tenants: ReadonlySet<string> | undefined
): AdminStream =>
  new AdminStream((send) =>
    services.watch.listen({
      kind,
      tenants,
      take: (_tenant, text) => send(kind, text),
      missed: (count) => send('dropped', JSON.stringify({ count }))
    })
  )

const onlyEvents = (): AdminProblem =>
  new AdminProblem('not_acceptable', 'This is a stream of events.', 'Send Accept: text/event-stream.')

const callsSummary =
  'with Accept: text/event-stream, at every process: an `event: call` for each, whose `data` is the line of the log ' +
  '([logging.md](logging.md)), with the rules that allow it (`allowedBy`, the first of each policy). ' +
  'What ends while nobody listens is not kept.'

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
  )
] as const
