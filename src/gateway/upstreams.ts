// The third phase of the composition: processes of servers, connections to them, and what they are shown of callers.

import { randomInt } from 'node:crypto'
import { createEgressGuard } from '../egress/guard.ts'
import { descriptorLimit, tenantSocketsWithin } from '../limits/descriptors.ts'
import { createContextOf } from '../relay/call/call.ts'
import { steadyClock } from '../time/clock.ts'
import { createConnector } from '../upstream/connect/connect.ts'
import { createEgress } from '../upstream/http/socket-pool.ts'
import { createPool } from '../upstream/pool/pool.ts'
import { createServerRequestQuotas } from '../upstream/rpc/server-requests.ts'
import { openSupervisor } from '../upstream/stdio/supervisor.ts'
import { createVault } from '../vault/vault.ts'
import type { GatewayClients } from './clients.ts'
import { clocks, type GatewayOptions, type GatewayState } from './state.ts'
import type { GatewayStorage } from './storage.ts'

export type GatewayUpstreams = Awaited<ReturnType<typeof openUpstreams>>

export async function openUpstreams(
  state: GatewayState,
  { snapshot, memory, telemetry: { metrics }, store, sealer, sessions }: GatewayStorage,
  { egress, login }: GatewayClients,
  { log, env, worker }: GatewayOptions
) {
  const random = (): number => randomInt(2 ** 32) / 2 ** 32
  const descriptors = descriptorLimit()
  const serverRequestQuotas = createServerRequestQuotas(undefined, memory)
  const supervisor = openSupervisor(snapshot, { descriptors, workers: worker?.count ?? 1 }, env, log)
  const vault = await createVault({ state, store, sealer, epochs: sessions, login, ...clocks, log }, egress)

  const connecting = { ...vault, supervisor, random, log, serverRequestQuotas, memory, clock: steadyClock }
  const connector = createConnector({
    ...connecting,
    egress: createEgress(createEgressGuard(egress), { ofTenant: tenantSocketsWithin(descriptors) })
  })
  const pool = createPool({ ...connecting, connector, metrics })
  const contextOf = createContextOf(snapshot, vault.views)
  return { random, descriptors, serverRequestQuotas, supervisor, vault, pool, contextOf }
}
