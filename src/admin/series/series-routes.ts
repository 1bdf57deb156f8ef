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
  calls: counts('Number of requests that ended in each step.'),
  errors: counts(
    'Of these, the requests that ended with an error of the gateway or of an upstream. Decisions of a person, and ' +
      'what a person has to do first (`cancelled`, `connect_required`, `declined`), are no errors.'
  ),
  toolErrors: counts('Of these, the calls whose tool reported a failure.'),
  p50: durations('Median of their durations in milliseconds, exact to a fifth. null for a step without requests.'),
  p95: durations('95th percentile, as `p50`.'),
  p99: durations('99th percentile, as `p50`.')
}

const SeriesAnswer = closedObject({
  process: Type.String({ description: 'Id of the process that answers. It counts its own calls only.' }),
  from: Type.String({ description: 'When the first step begins (RFC 3339). The last step is not over yet.' }),
  stepMs: Type.Integer(),
  steps: Type.Integer({ description: 'Number of steps.' }),
  total: closedObject(steps),
  items: Type.Array(
    closedObject({
      tenant: Type.String({ description: 'Id of the tenant; empty for `other`.' }),
      name: Type.String({
        description:
          'Name of the tenant, endpoint or upstream, or UPSTREAM/TOOL, as `by` asks. `other`: all that are not ' +
          'listed, or not counted, by name.'
      }),
      ...steps
    }),
    { description: 'The series with the most calls first.' }
  )
})

const queryOf = (kinds: readonly [SeriesKind, ...SeriesKind[]]) =>
  closedObject({
    by: choice(kinds, kinds[0], 'What has a series of its own.'),
    minutes: integer(1, minutesKept, minutesKept, 'Number of minutes, up to now.'),
    top: integer(0, maxNamesTold, 8, 'Number of series by name; the rest is `other`.')
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
    by: choice(kinds, kinds[0], 'What has a series of its own.'),
    hours: integer(1, longestHours, 24, 'Number of hours, up to now.'),
    top: integer(1, maxNamesTold, 5, 'Number of series by name; the rest is in `total` only.')
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
  'Returns the same series of all processes and of a longer time, in about 240 steps of a minute or more, from the ' +
  'Prometheus of `admin.prometheus`'
const what = 'Returns the number of ended calls, of errors, and the durations of calls, in steps of ten seconds'

export const seriesRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/series',
      roles: everyRole,
      summary: `${what}, of the tenants that the key is for, in the last hour at the process that answers.`,
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
      summary: `${what}, of one tenant, in the last hour at the process that answers.`,
      query: closedObject({
        ...queryOf(kindsOfTenant).properties,
        name: Type.Optional(
          Type.String({
            maxLength: 2_048,
            description: 'Only the series of this name, and `other`, which may contain calls of it, too.'
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
      summary: `${long}. Of the tenants that the key is for.`,
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
      summary: `${long}. Of one tenant.`,
      query: longQueryOf(kindsOfTenant),
      response: LongSeriesAnswer
    },
    ({ tenant, administrator, query }, services) =>
      longAnswer(services, tenant.id, administrator, query, new Set([tenant.id]))
  )
] as const
