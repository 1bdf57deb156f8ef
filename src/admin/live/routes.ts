// What goes on: calls as they end, and those that run.

import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { LiveKind } from '../../observe/live.ts'
import { AdminProblem } from '../problem.ts'
import { AdminStream, defineRoute, everyRole, type AdminServices } from '../route.ts'

export const perEvent =
  '`event: dropped` says how many events (`count`) of a kind (`kind`) another process could not send. `event: end` ' +
  'says why the stream ends: `slow` (it was not read) or `access` (the key was removed).'

export const streamOf = (
  services: Pick<AdminServices, 'watch'>,
  kinds: readonly LiveKind[],
  tenants: ReadonlySet<string> | undefined
): AdminStream =>
  new AdminStream((send) => {
    const stops = kinds.map((kind) =>
      services.watch.listen({
        kind,
        tenants,
        take: (_tenant, text) => send(kind, text),
        missed: (count) => send('dropped', JSON.stringify({ count, kind }))
      })
    )
    return () => stops.forEach((stop) => stop())
  })

const callsQuery = closedObject({
  running: Type.Optional(
    Type.Enum(['true'], {
      description:
        'Also reports running calls: once a second, an `event: running` for each process and tenant that has or had ' +
        'some, with `process`, `tenant`, `calls` and `leftOut`. `calls` are the hundred that have run longest, for ' +
        'at least a quarter of a second: the known members of the log line, `time` (start), `ms` so far, and ' +
        '`waitsFor` (`gateway`, `upstream` or `client`). `leftOut` is the number of the others.'
    })
  )
})

const kindsOf = ({ running }: { readonly running?: 'true' | undefined }): LiveKind[] =>
  running === undefined ? ['call'] : ['call', 'running']

const onlyEvents = (): AdminProblem =>
  new AdminProblem('not_acceptable', 'This is a stream of events.', 'Send Accept: text/event-stream.')

const callsSummary =
  'at every process, when they end. Needs Accept: text/event-stream. Each call is an `event: call` whose `data` is ' +
  'the line of the log ([logging.md](logging.md)), with the rules that allow it (`allowedBy`, the first of each ' +
  'policy). Calls that end while nobody listens are not kept.'

export const liveRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/calls',
      roles: everyRole,
      summary: `Streams the calls of the tenants that the key is for, ${callsSummary}`,
      query: callsQuery,
      events: perEvent
    },
    ({ administrator: { tenants }, query, wantsEvents }, services) => {
      if (!wantsEvents) throw onlyEvents()
      return streamOf(services, kindsOf(query), tenants)
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/calls',
      roles: everyRole,
      summary: `Streams the calls of a tenant, ${callsSummary}`,
      query: callsQuery,
      events: perEvent
    },
    ({ tenant, query, wantsEvents }, services) => {
      if (!wantsEvents) throw onlyEvents()
      return streamOf(services, kindsOf(query), new Set([tenant.id]))
    }
  )
] as const
