// The metrics of the process that answers, for Prometheus.

import { pipeline } from 'node:stream'
import { createGzip } from 'node:zlib'
import { Type } from '../config/schema/type.ts'
import type { Readings } from '../observe/metrics/metrics.ts'
import { metricsFormOf, metricsForms } from '../observe/metrics/metrics-text.ts'
import { AdminProblem } from './problem.ts'
import { AdminReply, type AdminServices, defineRoute } from './route.ts'

export const metricsRoute = defineRoute(
  {
    method: 'GET',
    path: '/metrics',
    roles: ['platform-admin', 'auditor', 'viewer', 'metrics'],
    summary:
      'Returns the metrics of the process that answers, and of the workers beside it ([metrics.md](metrics.md)), ' +
      'in the text format of ' +
      'Prometheus; or, if `Accept` names it, as OpenMetrics with exemplars, which name traces of calls. Only for ' +
      'keys without `tenants`, since the metrics are of all tenants.',
    response: Type.String({ description: 'Text format 0.0.4, or OpenMetrics 1.0.' })
  },
  async ({ administrator: { tenants }, accept, takesGzip }, services) => {
    if (tenants !== undefined)
      throw new AdminProblem(
        'forbidden',
        'Metrics tell of all tenants, and this key is for some.',
        'Use a key without `tenants`.'
      )
    const form = metricsFormOf(accept)
    const text = await services.metrics.text(readingsOf(services), form)
    const headers = { 'Content-Type': metricsForms[form], Vary: 'Accept-Encoding' }
    if (text !== undefined && !takesGzip) return new AdminReply(text, headers)
    // The text holds no secret, so its compressed length reveals nothing. A failed compression fails the response.
    if (text !== undefined)
      return new AdminReply(
        pipeline(text, createGzip(), () => {}),
        { ...headers, 'Content-Encoding': 'gzip' }
      )
    throw new AdminProblem(
      'rate_limited',
      'Too many have asked for metrics and are still reading them.',
      'Ask again in a second.',
      { headers: { 'Retry-After': '1' } }
    )
  }
)

/** Reads what the parts of the gateway hold now. */
export function readingsOf({
  snapshot,
  pool,
  held,
  listings,
  control
}: Pick<AdminServices, 'snapshot' | 'pool' | 'held' | 'listings' | 'control'>): Readings {
  const { asked, misses } = listings.catalogs
  const tenants = [...snapshot().tenants.values()]
  const running = new Map<string, number>(tenants.map(({ id }) => [id, 0]))
  for (const tenant of held.calls.tenants()) running.set(tenant, (running.get(tenant) ?? 0) + 1)
  return {
    counts: {
      'gatehouse.calls.parked': held.modernRelay.parkedCalls,
      'gatehouse.sessions': held.live.size,
      'gatehouse.streams': held.streams.size + held.modernRelay.listenStreams + held.httpSse.streams.size,
      'gatehouse.connections': held.connections.openCount,
      'gatehouse.connections.limit': held.connections.max,
      'gatehouse.memory.held': held.memory.held,
      'gatehouse.memory.budget': held.memory.budgetBytes,
      'gatehouse.tenants': tenants.length,
      'gatehouse.processes': held.supervisor.count(),
      'gatehouse.snapshot.version': control.version
    },
    processMemory: held.supervisor.memoryByTenant(),
    caches: { credentials: held.authenticator.uses, catalogs: { hits: asked - misses, misses } },
    running,
    upstreams: pool.statesOf(tenants.flatMap(({ upstreams }) => [...upstreams.values()]))
  }
}
