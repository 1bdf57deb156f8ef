// How calls go: the last hour of the process that answers, for plots.

import type { Static } from 'typebox'
import { choice, closedObject, integer } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Administrator } from '../access.ts'
import { AdminProblem } from '../problem.ts'
import { PrometheusAway } from './prometheus.ts'
import { defineRoute, everyRole, type AdminServices } from '../route.ts'
import { minutesKept } from './call-steps.ts'
import { seriesKinds, type SeriesKind } from './series.ts'

/** The most names of an answer: the others are summed. */
const maxNamesTold = 20

const counts = (description: string) => Type.Array(Type.Integer(), { description })
const durations = (description: string) => Type.Array(Type.Union([Type.Number(), Type.Null()]), { description })

const steps = {
  calls: counts('Requests that ended in each step.'),
  errors: counts(
    'Of them, those that ended with an error, of the gateway or of an upstream. What a person decides, or has to do ' +
      'first (`cancelled`, `connect_required`, `declined`), is none.'
  ),
  toolErrors: counts('Of them, those whose tool says that it has failed.'),
  p50: durations('Milliseconds that half of them took at most, within a fifth; null where there were none.'),
  p95: durations('The same of 95 %.'),
  p99: durations('The same of 99 %.')
}

const SeriesAnswer = closedObject({
  process: Type.String({ description: 'Which process answers, and counted them: each has its own.' }),
  from: Type.String({ description: 'When the first step begins (RFC 3339). The last one goes on.' }),
  stepMs: Type.Integer(),
  steps: Type.Integer({ description: 'How many there are.' }),
  total: closedObject(steps),
  items: Type.Array(
    closedObject({
      tenant: Type.String({ description: 'Empty for `other`.' }),
      name: Type.String({
        description: 'Of a tool UPSTREAM/TOOL. `other`: those that are not told, or not counted, by themselves.'
      }),
      ...steps
    }),
    { description: 'Those with the most calls first.' }
  )
})

const queryOf = (kinds: readonly [SeriesKind, ...SeriesKind[]]) =>
  closedObject({
    by: choice(kinds, kinds[0], 'What is told apart.'),
    minutes: integer(1, minutesKept, minutesKept, 'How many, up to now.'),
    top: integer(0, maxNamesTold, 8, 'How many are told by name.')
  })

function answer(
  { series, node }: AdminServices,
  tenants: ReadonlySet<string> | undefined,
  { by, minutes, top, name }: Static<ReturnType<typeof queryOf>> & { readonly name?: string | undefined }
): Static<typeof SeriesAnswer> {
  return { process: node, ...series.read(by, tenants, minutes, top, name) }
}

const longestHours = 31 * 24

const LongSeriesAnswer = closedObject({ ...SeriesAnswer.properties, process: Type.Null() })

const longQueryOf = (kinds: readonly [SeriesKind, ...SeriesKind[]]) =>
  closedObject({
    by: choice(kinds, kinds[0], 'What is told apart.'),
    hours: integer(1, longestHours, 24, 'How many, up to now.'),
    top: integer(1, maxNamesTold, 5, 'How many are told by name. Others are in `total` only.')
  })

/** @throws AdminProblem conflict where no Prometheus is configured; unavailable */
async function longAnswer(
  { prometheus, snapshot, log }: AdminServices,
  who: string,
  { role }: Administrator,
  query: { readonly by: SeriesKind; readonly hours: number; readonly top: number },
  tenants: ReadonlySet<string> | undefined
): Promise<Static<typeof LongSeriesAnswer>> {
  const config = snapshot().admin?.prometheus
  if (config === undefined)
    throw new AdminProblem(
      'conflict',
      'No Prometheus is configured.',
      'Give admin.prometheus.url, or ask for the last hour.'
    )
  try {
    return { process: null, ...(await prometheus.read(config, who, query, tenants)) }
  } catch (error) {
    if (!(error instanceof PrometheusAway)) throw error
    log.warn({ err: error }, 'Prometheus cannot be asked')
    // It says where in the operator's network it is, which is nothing for the people of a tenant.
    throw new AdminProblem(
      'unavailable',
      role === 'platform-admin' ? `Prometheus cannot be asked: ${error.message}` : 'Prometheus cannot be asked.',
      'See whether it runs, and what admin.prometheus says. The last hour is told without it.'
    )
  }
}

const [, ...kindsOfTenant] = seriesKinds
const long =
  'The same at all processes and for longer, about 240 steps of a minute or more, as the Prometheus of ' +
  '`admin.prometheus` tells it'
const what = 'How many calls ended, how many of them with an error, and how long they took, in steps of ten seconds'

export const seriesRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/series',
      roles: everyRole,
      summary: `${what}, in the last hour at the process that answers: of the tenants that the key is for.`,
      query: queryOf(seriesKinds),
      response: SeriesAnswer
    },
    ({ administrator: { tenants }, query }, services) => answer(services, tenants, query)
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/series',
      roles: everyRole,
      summary: `${what}, of one tenant.`,
      query: closedObject({
        ...queryOf(kindsOfTenant).properties,
        name: Type.Optional(
          Type.String({
            maxLength: 2_048,
            description: 'Only the one of this name, and `other`: what is counted together, which may be of it, too.'
          })
        )
      }),
      response: SeriesAnswer
    },
    ({ tenant, query }, services) => answer(services, new Set([tenant.id]), query)
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/series/long',
      roles: everyRole,
      summary: `${long}: of the tenants that the key is for.`,
      query: longQueryOf(seriesKinds),
      response: LongSeriesAnswer
    },
    ({ administrator, query }, services) =>
      longAnswer(services, administrator.name, administrator, query, administrator.tenants)
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/series/long',
      roles: everyRole,
      summary: `${long}, of one tenant.`,
      query: longQueryOf(kindsOfTenant),
      response: LongSeriesAnswer
    },
    ({ tenant, administrator, query }, services) =>
      longAnswer(services, tenant.id, administrator, query, new Set([tenant.id]))
  )
] as const
