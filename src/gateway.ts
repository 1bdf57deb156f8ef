// The composition root: builds everything, opens nothing until `listen`, closes in reverse. Nothing below it reads the
// environment, and clocks by which protocol state expires are passed down from here.

import { randomInt, randomUUID } from 'node:crypto'
import { readingsOf } from './admin/metrics.ts'
import { createAudit } from './audit/audit.ts'
import { createEgressGuard, type EgressLimits } from './egress/guard.ts'
import { createAuthenticator } from './auth/authenticate.ts'
import { changedFixedSettings, refuseOpenTenants } from './config/rules.ts'
import type { Snapshot } from './config/snapshot.ts'
import { createControl } from './control/control.ts'
import { createLegacyHandler } from './http/legacy/legacy.ts'
import { createModernHandler } from './http/modern/modern.ts'
import { createHttpSseHandler } from './http/legacy/http-sse.ts'
import { createReplicas } from './http/legacy/replicas.ts'
import { createRevalidator } from './http/revalidation.ts'
import { createCallsInFlight, startDrain } from './http/calls-in-flight.ts'
import type { ServerAddress } from './http/headers.ts'
import { createServer, cutMs } from './http/server.ts'
import { descriptorLimit } from './limits/descriptors.ts'
import { memoryAccountOfProcess, type MemoryAccount } from './limits/memory.ts'
import { createLiveEvents } from './observe/live.ts'
import type { Log } from './observe/log.ts'
import { timedStore } from './observe/metrics/timed-store.ts'
import { openTelemetry } from './observe/telemetry.ts'
import { contextsOf, createContextOf, upstreamHashesOf } from './relay/call/call.ts'
import type { EndpointReport } from './relay/methods/report.ts'
import { createModernRelay } from './relay/modern-relay.ts'
import { createLegacyRelay } from './relay/legacy-relay.ts'
import { createLogin } from './login/login.ts'
import { createCallLimits } from './policy/call-limits.ts'
import { createBus } from './session/bus/bus.ts'
import { createLiveSessions } from './session/live-sessions.ts'
import { createRandomBytes } from './session/random-bytes.ts'
import { createSessions } from './session/sessions.ts'
import { copyLimitsFor } from './session/event-copies.ts'
import { createStreamHolders, serveHeldStreams } from './session/stream-holders.ts'
import { createStreams, dropWithSessions } from './session/streams.ts'
import { createStoreHealth } from './store/health.ts'
import { openStore } from './store/open-store.ts'
import type { Store } from './store/port.ts'
import { createSealer } from './store/seal.ts'
import { steadyClock, wallClock } from './time/clock.ts'
import { createVault } from './vault/vault.ts'
import { createServerRequestQuotas } from './upstream/rpc/server-requests.ts'
import { createConnector } from './upstream/connect/connect.ts'
import { createEgress } from './upstream/http/socket-pool.ts'
import { createPool } from './upstream/pool/pool.ts'
import type { UpstreamMeter } from './upstream/pool/pooled-connection.ts'
import { openSupervisor } from './upstream/stdio/supervisor.ts'

type GatewayOverrides = Partial<Record<'keepAliveMs' | 'parkedMs', number>> & OverriddenParts
type OverriddenParts = { store?: Store; memory?: MemoryAccount; nameServers?: readonly string[] }

export interface GatewayOptions {
  readonly log: Log
  readonly version: string
  /** What stdio children may inherit from (a few harmless names only; the rest comes from the configuration). */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Replaced in tests, at the seams only. */
  readonly overrides?: GatewayOverrides
}

export interface Gateway {
  /** Opens the ports. @returns where it and the admin API listen, and the public URL that tokens are for */
  listen(): Promise<{ readonly url: string; readonly publicUrl: string; readonly adminUrl: string | undefined }>
  /** Asks the upstreams of every endpoint for their listings, so that the first client does not wait. */
  warm(): Promise<void>
  /** What each endpoint offers to a caller whom no policy keeps from anything, after `warm`. Never rejects. */
  report(): Promise<EndpointReport[]>
  /**
   * Takes a new configuration without dropping a session. What cannot change while running is named in the answer.
   * @throws Error where it would let callers in without authentication; the configuration before stays in use
   */
  reload(next: Snapshot): { readonly needsRestart: readonly string[] }
  /** Serves for `limits.readyDelayMs`, lets calls finish until `limits.drainMs`, then closes all. Idempotent. */
  close(): Promise<void>
  /** Kills every child process at once, synchronously: for the very end of the process. */
  killNow(): void
}

/** Of durations; the time of day. */
const clocks = { clock: steadyClock, wall: wallClock }

export async function createGateway(
  initial: Snapshot,
  { log, version, env, overrides = {} }: GatewayOptions
): Promise<Gateway> {
  const serving = { address: undefined as ServerAddress | undefined, leaving: false, draining: false }
  const state = { file: initial, snapshot: initial, ...serving }
  const random = (): number => randomInt(2 ** 32) / 2 ** 32
  const randomBytes = createRandomBytes()
  const newId = (): string => randomBytes(16).toString('base64url')
  const node = randomBytes(4).toString('hex')
  const [calls, serverInfo] = [createCallsInFlight(), { name: 'gatehouse', version }]
  const memory = overrides.memory ?? memoryAccountOfProcess(initial.limits.memoryBytes)

  const telemetry = await openTelemetry(initial, { version, node, ...clocks, log })
  const { metrics, traces, shownCaller, nameOf } = telemetry
  const opened = overrides.store ?? (await openStore(initial.store, wallClock, log))
  const store = timedStore(opened, steadyClock, metrics)
  const sealer = await createSealer({ store, randomBytes, timer: steadyClock.timer, log })
  const control = await createControl({ store, sealer, file: () => state.file, env, wall: wallClock, log })
  memory.configure((state.snapshot = control.snapshot()).tenants)
  const bus = await createBus({ store, sealer, node, clock: wallClock, log })
  const [snapshot, events] = [(): Snapshot => state.snapshot, createLiveEvents()]
  const recording = { store, snapshot, run: newId(), live: events, ...clocks, log }
  const audit = initial.audit && createAudit({ config: initial.audit, ...recording })
  await audit?.loaded
  const sessions = await createSessions({ store, clock: wallClock, randomBytes, snapshot, node, log })
  const egress = { ...initial.egress, servers: overrides.nameServers }
  const loginParts = { snapshot, store, epochOf: sessions.epochOf, sealer, ...clocks, audit, log }
  const login = await createLogin(loginParts, egress)
  const { fetchForKeys: fetchFor } = login
  const authenticator = createAuthenticator({ clock: wallClock, fetchFor, store, sealer, nameOf, log })
  const [copyLimits, holders] = [copyLimitsFor(memory.budgetBytes), createStreamHolders(bus)]
  const streams = createStreams({ store, sealer, clock: steadyClock, randomBytes, log, copyLimits, holders })
  serveHeldStreams(bus, streams)
  const live = createLiveSessions(steadyClock, node, () => longestIdleMs(state.snapshot))
  dropWithSessions(sessions, live, streams)
  const [descriptors, serverRequestQuotas] = [descriptorLimit(), createServerRequestQuotas(undefined, memory)]
  const supervisor = openSupervisor(snapshot, descriptors, env, log)
  const vault = await createVault({ state, store, sealer, epochs: sessions, login, ...clocks, log }, egress)
  const pool = openPool({ ...vault, supervisor, random, log, serverRequestQuotas, memory }, egress, metrics)
  const contextOf = createContextOf(snapshot, vault.views)
  const adminRoom = initial.admin && (await loadAdmin())
  const now = metrics && adminRoom?.createNow({ ...recording, metrics, bus, pool, control, release: version })
  const observers = { clock: steadyClock, log, audit, metrics: now?.meter ?? metrics, traces, shownCaller }
  const callLimits = createCallLimits({ store, ...clocks, node, log })
  const runtime = { ...clocks, callLimits, random, newId, clientInfo: serverInfo, log, memory, observers }
  const relay = createLegacyRelay({ runtime, pool, store, sealer, sessions, live, serverRequestQuotas, contextOf })
  const [{ shared }, { parkedMs }] = [relay, overrides]
  const modernRelay = createModernRelay({ runtime, pool, sealer, shared, contextOf, node, bus, parkedMs })

  const revalidator = createRevalidator(wallClock, overrides.keepAliveMs ?? 15_000, log)
  const handling = { revalidator, clock: wallClock, observers, calls, audit }
  const isDraining = (): boolean => state.draining
  const replicas = createReplicas({ bus, store, sessions, live, memory, contextOf, isDraining, log }, relay)
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
    requestId: () => randomUUID(),
    descriptors
  })

  const [{ listings, catalogOf }, { connections }] = [shared, server]
  const held = { live, streams, memory, calls, supervisor, modernRelay, httpSse, connections, authenticator }
  const shown = { ...recording, listings, catalogOf, pool, sessions, control, sealer, audit, metrics, held, ...runtime }
  await telemetry.sendMetrics(() => readingsOf(shown))
  const admin = adminRoom?.createAdminServer({ ...shown, ...now, state, vault, node, fault, descriptors, version })

  async function shutDown(): Promise<void> {
    const { readyDelayMs, drainMs: allMs } = state.snapshot.limits
    state.leaving = true
    await server.leave(readyDelayMs, steadyClock)
    const drainMs = Math.max(0, allMs - readyDelayMs)
    state.draining = true
    const closed = server.close(drainMs, steadyClock)
    streams.leave()
    live.close({ canAnswer: bus.shared })
    modern.endStreams()
    const httpSseClosed = httpSse.close()
    const timing = { drainMs, cutMs, clock: steadyClock, log }
    const finish = startDrain(calls, bus, () => modernRelay.parkedCalls, timing)
    await closed
    await httpSseClosed.then(finish)
    for (const each of [admin, control]) await each?.close()
    for (const each of [revalidator, streams]) each.close()
    await bus.close()
    await modernRelay.close()
    for (const each of [sealer, relay]) each.close()
    await pool.close()
    for (const each of [supervisor, authenticator]) each.close()
    for (const each of [sessions, vault]) await each.close()
    await Promise.all([callLimits.close(), audit?.close(), telemetry.close(), now?.close()])
    await store.close()
  }

  function reload(next: Snapshot): { readonly needsRestart: readonly string[] } {
    const before = state.file
    refuseOpenTenants(before, next)
    state.file = { ...next, listen: before.listen, store: before.store, publicUrl: before.publicUrl }
    control.rereadReferences()
    apply(control.snapshot())
    void audit?.reloaded(before, state.file)
    return { needsRestart: changedFixedSettings(before, next) }
  }

  const retain = (): void => vault.retainIn([relay, modernRelay, pool, supervisor], upstreamHashesOf(snapshot()))
  vault.onChange(retain, [relay.tellPerson, modernRelay.connectWait.tellPerson])

  function apply(next: Snapshot): void {
    const before = state.snapshot
    memory.configure((state.snapshot = next).tenants)
    authenticator.reload(next.tenants.values())
    // What is cancelled goes out before its connection closes.
    retain()
    calls.endStopped(next.tenants)
    if (differentTenants(before, next)) void sessions.endRemovedTenants()
    audit?.releaseRemovedTenants()
    relay.tellChanges(before, next)
    // Callers whose credential is gone are let go at once, in the middle of a call too.
    void revalidator.revalidateAll().then(relay.letGo)
  }

  await control.start(() => apply(control.snapshot()))
  let closing: Promise<void> | undefined
  return {
    async listen() {
      const adminUrl = await admin?.listen()
      const { address, family, port } = await server.listen(state.snapshot.listen)
      const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
      const loopbackPort = address === '::1' || address.startsWith('127.') ? port : undefined
      const publicUrl = state.snapshot.publicUrl ?? url
      state.address = { url, publicUrl, loopbackPort }
      return { url, publicUrl, adminUrl }
    },
    warm: async () => void (await Promise.all(contextsOf(state.snapshot).map((context) => relay.warm(context)))),
    report: () => Promise.all(contextsOf(state.snapshot).map(relay.report)),
    reload,
    close: () => (closing ??= shutDown()),
    killNow: () => supervisor.killAllNow()
  }
}

const longestIdleMs = ({ limits: { sessionIdleMs, sessionMaxMs } }: Snapshot): number =>
  Math.min(sessionIdleMs, sessionMaxMs)

/** The store is asked about each tenant then. */
const differentTenants = (before: Snapshot, next: Snapshot): boolean =>
  before.isWhole !== next.isWhole || new Set(before.tenants.keys()).symmetricDifference(next.tenants).size > 0

/** A tenth of what a gateway without an admin API would load at its start. */
const loadAdmin = async () => ({ ...(await import('./admin/live/now.ts')), ...(await import('./admin/server.ts')) })

type PoolParts = Omit<Parameters<typeof createConnector>[0], 'egress' | 'clock'>
const openPool = (parts: PoolParts, limits: EgressLimits, metrics?: UpstreamMeter) => {
  const connector = createConnector({ ...parts, egress: createEgress(createEgressGuard(limits)), clock: steadyClock })
  return createPool({ ...parts, connector, clock: steadyClock, metrics })
}
