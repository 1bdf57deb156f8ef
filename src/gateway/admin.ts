// The admin API, as a phase of the composition. A gateway without it loads none of its files, a tenth of all that it
// would load at its start.

import type { LiveStatistics } from '../admin/live/statistics.ts'
import { readingsOf } from '../admin/metrics.ts'
import type { GatewayClients } from './clients.ts'
import type { GatewayHttp, GatewayRelays } from './http.ts'
import type { GatewayOptions, GatewayState } from './state.ts'
import type { GatewayStorage } from './storage.ts'
import type { GatewayUpstreams } from './upstreams.ts'
import { metricsOfWorkers } from './worker-metrics.ts'

/** @returns undefined where the configuration has no admin API */
export async function openStatistics(
  { file }: GatewayState,
  { telemetry: { metrics }, bus, control, recording }: GatewayStorage,
  { pool }: GatewayUpstreams,
  { version }: GatewayOptions
): Promise<LiveStatistics | undefined> {
  if (file.admin === undefined || metrics === undefined) return undefined
  const { createLiveStatistics } = await import('../admin/live/statistics.ts')
  return createLiveStatistics({ ...recording, metrics, bus, pool, control, release: version })
}

/** @returns the admin server, or undefined where the configuration has no admin API */
export async function openAdmin(
  state: GatewayState,
  storage: GatewayStorage,
  { streams, live, authenticator }: GatewayClients,
  { descriptors, supervisor, vault, pool }: GatewayUpstreams,
  { runtime, relay, modernRelay }: GatewayRelays,
  { calls, httpSse, fault, server: { connections } }: GatewayHttp,
  statistics: LiveStatistics | undefined,
  { version, worker }: GatewayOptions
) {
  const { node, memory, telemetry, sealer, control, recording, audit, sessions } = storage
  const { listings, catalogOf } = relay.shared
  const held = { live, streams, memory, calls, supervisor, modernRelay, httpSse, connections, authenticator }
  const shown = { ...recording, listings, catalogOf, pool, sessions, control, sealer, audit, held, ...runtime }
  await telemetry.sendMetrics(() => readingsOf(shown))

  const { metrics } = telemetry
  const { admin } = state.file
  if (admin === undefined || statistics === undefined || metrics === undefined) return undefined
  const { createAdminServer } = await import('../admin/server.ts')
  const told = worker === undefined ? metrics : metricsOfWorkers(worker, metrics, () => readingsOf(shown))
  const parts = { ...shown, ...statistics, metrics: told, state, vault, node, fault, descriptors, version }
  const { tellRunningCalls } = await import('../admin/live/running.ts')
  const tellNoMore = tellRunningCalls({ ...recording, running: calls.running, node })
  const { listen, close } = createAdminServer(parts)
  return {
    listen: () => listen(admin.listen),
    close: () => {
      tellNoMore()
      return close()
    }
  }
}
