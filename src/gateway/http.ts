// The fourth phase of the composition: the relays, which run calls, and the HTTP server with its handlers.

import { createConnectionMoves } from '../workers/connection-moves.ts'
import { createCallsInFlight } from '../http/calls-in-flight.ts'
import { createHttpSseHandler } from '../http/legacy/http-sse.ts'
import { createLegacyHandler } from '../http/legacy/legacy.ts'
import { createReplicas } from '../http/legacy/replicas.ts'
import { createModernHandler } from '../http/modern/modern.ts'
import { createRevalidator } from '../http/revalidation.ts'
import { createServer } from '../http/server.ts'
import { createCallLimits } from '../policy/call-limits.ts'
import { createLegacyRelay } from '../relay/legacy-relay.ts'
import { createModernRelay } from '../relay/modern-relay.ts'
import { createStoreHealth } from '../store/health.ts'
import { steadyClock, wallClock } from '../time/clock.ts'
import type { LiveStatistics } from '../admin/live/statistics.ts'
import type { GatewayClients } from './clients.ts'
import { createUuids } from './uuids.ts'
import { clocks, type GatewayOptions, type GatewayState } from './state.ts'
import type { GatewayStorage } from './storage.ts'
import type { GatewayUpstreams } from './upstreams.ts'

export type GatewayRelays = ReturnType<typeof createRelays>
export type GatewayHttp = Awaited<ReturnType<typeof openHttp>>

export function createRelays(
  { node, newId, memory, telemetry, store, sealer, bus, audit, sessions }: GatewayStorage,
  { live }: GatewayClients,
  { random, serverRequestQuotas, pool, contextOf }: GatewayUpstreams,
  statistics: LiveStatistics | undefined,
  { log, version, overrides }: GatewayOptions
) {
  const { traces, shownCaller } = telemetry
  const metrics = statistics?.meter ?? telemetry.metrics
  const observers = { clock: steadyClock, log, audit, metrics, traces, shownCaller }
  const callLimits = createCallLimits({ store, ...clocks, node, log })
  const clientInfo = { name: 'gatehouse', version }
  const runtime = { ...clocks, callLimits, random, newId, clientInfo, log, memory, observers }
  const relaying = { runtime, pool, sealer, contextOf, bus }
  const relay = createLegacyRelay({ ...relaying, store, sessions, live, serverRequestQuotas })
  const { shared } = relay
  const parkedMs = overrides?.parkedMs
  const modernRelay = createModernRelay({ ...relaying, shared, node, parkedMs })
  return { runtime, relay, modernRelay }
}

export async function openHttp(
  state: GatewayState,
  { randomBytes, memory, store, sealer, control, bus, audit, sessions }: GatewayStorage,
  { login, authenticator, streams, live }: GatewayClients,
  { descriptors, vault, contextOf }: GatewayUpstreams,
  { runtime: { observers, clientInfo: serverInfo }, relay, modernRelay }: GatewayRelays,
  { log, worker, overrides }: GatewayOptions
) {
  const calls = createCallsInFlight()
  const revalidator = createRevalidator(wallClock, overrides?.keepAliveMs ?? 15_000, log)
  const handling = { revalidator, clock: wallClock, observers, calls, audit }
  const isDraining = (): boolean => state.draining
  const replicas = createReplicas({ bus, store, sessions, live, contextOf, isDraining, log }, relay)
  const legacy = createLegacyHandler({ ...handling, relay, sessions, live, streams, replicas })
  const modern = createModernHandler({ ...handling, serverInfo, relay: modernRelay })
  const httpSse = createHttpSseHandler({ ...handling, relay, sessions, live, randomBytes, replicas })

  const storeHealth = createStoreHealth(store, steadyClock, log)
  const fault = async () => (await storeHealth.fault()) ?? (sealer.ready ? control.fault() : undefined)
  const server = await createServer({
    state,
    authenticator,
    handlers: { legacy, modern, httpSse, login },
    memory,
    storeHealth: { fault },
    vault,
    ...observers,
    requestId: createUuids(),
    descriptors,
    moves: worker && createConnectionMoves(worker.channel, bus.node)
  })
  return { calls, revalidator, modern, httpSse, fault, server }
}
