// How much a tenant uses: now, and by day.

import type { Static } from 'typebox'
import { closedObject, integer } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Snapshot, Tenant } from '../../config/snapshot.ts'
import { sessionsLookedAt } from '../../store/keys.ts'
import { defineRoute, everyRole, type AdminServices } from '../route.ts'
import { usageCounts, type UsageOfDay } from './usage.ts'

/** The most upstreams, and the most tools, of all the days together. */
const maxPartsListed = 100
const maxDays = 62

const count = (description: string) => Type.Integer({ description })

const counts = {
  requests: count('Number of admitted requests of every kind.'),
  toolCalls: count('Of these, calls of tools.'),
  toolErrors: count('Of the calls of tools, those whose tool reported a failure.'),
  errors: count(
    'Requests that ended with an error of the gateway or of an upstream. Decisions of a person, and what a person ' +
      'has to do first (`cancelled`, `connect_required`, `declined`), are no errors.'
  ),
  bytesIn: count('Bytes of request bodies.'),
  bytesOut: count('Bytes of answers.')
}

const used = (description: string) =>
  closedObject(
    {
      used: Type.Integer(),
      limit: Type.Union([Type.Integer(), Type.Null()], { description: 'null: only the limits of the process apply.' })
    },
    { description }
  )

const UsageSchema = closedObject({
  resources: closedObject(
    {
      sessions: used(`Open sessions at all processes; counted up to ${sessionsLookedAt}.`),
      streams: used('Streams that clients listen on, at the process that answers.'),
      calls: used('Running calls at the process that answers.'),
      processes: used('Child processes of stdio servers at the process that answers.'),
      processBytes: used('Memory of these child processes in bytes, when it was last read.'),
      memoryBytes: used('Bytes that requests, answers, streams and subscriptions hold, at the process that answers.')
    },
    { description: 'What the tenant uses now, and how much it may use (`resources` of [config.md](config.md)).' }
  ),
  limits: Type.Array(
    closedObject({
      limit: Type.String({ description: 'Name of the limit.' }),
      unit: Type.String({ description: '`second`, `minute`, `hour`, `day` or `month`.' }),
      used: Type.Integer({
        description: 'How much is used; where callers are counted apart, by the one who used most.'
      }),
      max: Type.Integer({ description: 'How much may be used; for a rate, its burst.' }),
      atLimit: Type.Integer({ description: 'Number of those counted apart that have nothing left.' })
    }),
    {
      description:
        'Use of its limits of calls ([call-limits.md](call-limits.md)), as far as the process that answers knows.'
    }
  ),
  sessions: count(
    `Open now, at all processes, ${sessionsLookedAt} at most. Of more than 50, some may have idled out a while ago.`
  ),
  running: count('Calls that run now at the process that answers.'),
  days: Type.Array(closedObject({ day: Type.String({ description: 'Day in UTC, such as 2026-07-28.' }), ...counts }), {
    description: 'Use of each day, the newest first, with today.'
  }),
  upstreams: Type.Array(closedObject({ upstream: Type.String(), calls: Type.Integer(), errors: Type.Integer() }), {
    description: `Of these days, the ${maxPartsListed} that were used most.`
  }),
  tools: Type.Array(
    closedObject({ upstream: Type.String(), tool: Type.String(), calls: Type.Integer(), errors: Type.Integer() }),
    {
      description:
        `Of these days, the ${maxPartsListed} that were called most, of the 200 that a process tells apart in a day. ` +
        '`errors`: those that failed, with errors that the tool says.'
    }
  )
})

function resourcesOf(
  { id, resources = {} }: Tenant,
  limits: Snapshot['limits'],
  { calls, supervisor, memory }: AdminServices['held'],
  sessions: number
): Static<typeof UsageSchema>['resources'] {
  const running = calls.countsOf(id)
  const { processes, bytes } = supervisor.countsOf(id)
  const lesser = (own = Infinity, ofProcess = Infinity): number | null => {
    const limit = Math.min(own, ofProcess)
    return limit === Infinity ? null : limit
  }
  const { used, limit } = memory.ofTenant(id)
  return {
    sessions: { used: sessions, limit: lesser(resources.sessions) },
    streams: { used: running.streams, limit: lesser(resources.streams) },
    calls: { used: running.calls, limit: lesser(resources.calls, limits.callsPerTenant) },
    processes: { used: processes, limit: lesser(resources.processes, limits.processes) },
    processBytes: { used: bytes, limit: lesser(resources.processBytes, limits.processBytesPerTenant) },
    memoryBytes: { used, limit: Math.floor(limit) }
  }
}

function mostUsed(days: readonly UsageOfDay[], list: 'upstreams' | 'tools') {
  const sums = new Map<string, { calls: number; errors: number }>()
  for (const each of days)
    for (const [name, { calls, errors }] of each[list]) {
      const known = sums.get(name)
      sums.set(name, { calls: calls + (known?.calls ?? 0), errors: errors + (known?.errors ?? 0) })
    }
  return [...sums].sort(([, a], [, b]) => b.calls - a.calls).slice(0, maxPartsListed)
}

export const usageRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}/usage',
    roles: everyRole,
    summary: 'Returns how much a tenant uses, now and by day, at all processes. The last five seconds may be missing.',
    query: closedObject({ days: integer(1, maxDays, 7, 'Number of days, with today.') }),
    response: UsageSchema
  },
  async ({ tenant, query }, { snapshot, usage, sessions, callLimits, held }): Promise<Static<typeof UsageSchema>> => {
    const days = await usage.read(tenant.id, query.days)
    const open = await sessions.index.count(tenant.id, sessionsLookedAt)
    return {
      resources: resourcesOf(tenant, snapshot().limits, held, open),
      limits: callLimits.usesOf(tenant),
      sessions: open,
      running: [...held.calls.tenants()].filter((each) => each === tenant.id).length,
      days: days.map((each) => ({
        day: each.day,
        ...(Object.fromEntries(usageCounts.map((name) => [name, each[name]])) as Record<
          (typeof usageCounts)[number],
          number
        >)
      })),
      upstreams: mostUsed(days, 'upstreams').map(([upstream, part]) => ({ upstream, ...part })),
      tools: mostUsed(days, 'tools').map(([name, part]) => {
        const slash = name.indexOf('/')
        return { upstream: name.slice(0, slash), tool: name.slice(slash + 1), ...part }
      })
    }
  }
)
