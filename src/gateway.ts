// The composition root: builds everything, opens nothing until `listen`, closes in reverse. Nothing below it reads the
// environment, and clocks by which protocol state expires are passed down from here.

import { changedFixedSettings, refuseOpenTenants } from './config/reload/fixed-settings.ts'
import type { Snapshot } from './config/snapshot.ts'
import { openAdmin, openStatistics } from './gateway/admin.ts'
import { openClients } from './gateway/clients.ts'
import { createRelays, openHttp } from './gateway/http.ts'
import { newState, type GatewayOptions } from './gateway/state.ts'
import { openStorage } from './gateway/storage.ts'
import { openUpstreams } from './gateway/upstreams.ts'
import { startDrain } from './http/calls-in-flight.ts'
import { cutMs } from './http/server.ts'
import { contextsOf, upstreamHashesOf } from './relay/call/call.ts'
import type { EndpointReport } from './relay/methods/report.ts'
import { steadyClock } from './time/clock.ts'

export interface Gateway {
  /** Opens the ports. @returns where it and the admin API listen, and the public URL that tokens are for */
  listen(): Promise<{ readonly url: string; readonly publicUrl: string; readonly adminUrl: string | undefined }>
  /** Asks the upstreams of every endpoint for their listings, so that the first client does not wait. */
  warm(): Promise<void>
  /** What each endpoint offers to a caller whom no policy keeps from anything, after `warm`. Never rejects. */
  report(): Promise<EndpointReport[]>
  /** Opens the port of the admin API alone. @returns its URL */
  listenAdmin(): Promise<string | undefined>
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

export async function createGateway(initial: Snapshot, options: GatewayOptions): Promise<Gateway> {
  const { log } = options
  const state = newState(initial)
  const storage = await openStorage(state, options)
  const clients = await openClients(storage, options)
  const upstreams = await openUpstreams(state, storage, clients, options)
  const statistics = await openStatistics(state, storage, upstreams, options)
  const relays = createRelays(storage, clients, upstreams, statistics, options)
  const http = await openHttp(state, storage, clients, upstreams, relays, options)
  const admin = await openAdmin(state, storage, clients, upstreams, relays, http, statistics, options)

  const { snapshot, memory, telemetry, store, sealer, control, bus, audit, sessions } = storage
  const { authenticator, streams, live } = clients
  const { supervisor, vault, pool } = upstreams
  const { runtime, relay, modernRelay } = relays
  const { calls, revalidator, modern, httpSse, server } = http

  async function shutDown(): Promise<void> {
    const { readyDelayMs, drainMs: allMs } = state.snapshot.limits
    state.leaving = true
    const borrowers = relay.recall()
    await server.leave(readyDelayMs, steadyClock)
    const drainMs = Math.max(0, allMs - readyDelayMs)
    state.draining = true
    const closed = server.close(drainMs, steadyClock)
    streams.leave()
    live.close({ canAnswer: bus.shared })
    modern.endStreams()
    const httpSseClosed = httpSse.close()
    const timing = { drainMs, cutMs, clock: steadyClock, log }
    const finish = startDrain(calls, bus, () => modernRelay.parkedCalls + borrowers(), timing)
    await closed
    await httpSseClosed.then(finish)
    for (const each of [admin, control]) await each?.close()
    revalidator.close()
    await bus.close()
    // What others say on them comes until then, and is stored for whoever resumes them.
    streams.close()
    await modernRelay.close()
    for (const each of [sealer, relay]) each.close()
    await pool.close()
    for (const each of [supervisor, authenticator]) each.close()
    for (const each of [sessions, vault]) await each.close()
    await Promise.all([runtime.callLimits.close(), audit?.close(), telemetry.close(), statistics?.close()])
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
    state.snapshot = next
    memory.configure(next.tenants)
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
  let opening: Promise<unknown> = Promise.resolve()
  let closing: Promise<void> | undefined

  async function openPorts() {
    const adminUrl = await admin?.listen()
    const { address, family, port } = await server.listen(state.snapshot.listen)
    const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
    const loopbackPort = address === '::1' || address.startsWith('127.') ? port : undefined
    const publicUrl = state.snapshot.publicUrl ?? url
    state.address = { url, publicUrl, loopbackPort }
    return { url, publicUrl, adminUrl }
  }

  async function closeAll(): Promise<void> {
    // Node never answers whoever waits for a port that is closed before it is open.
    await opening.catch(() => {})
    await shutDown()
  }

  return {
    async listen() {
      const ports = openPorts()
      opening = ports
      return await ports
    },
    warm: async () => void (await Promise.all(contextsOf(state.snapshot).map((context) => relay.warm(context)))),
    listenAdmin: async () => await admin?.listen(),
    report: () => Promise.all(contextsOf(state.snapshot).map(relay.report)),
    reload,
    close: () => (closing ??= closeAll()),
    killNow: () => supervisor.killAllNow()
  }
}

/** The store is asked about each tenant then. */
const differentTenants = (before: Snapshot, next: Snapshot): boolean =>
  before.isWhole !== next.isWhole || new Set(before.tenants.keys()).symmetricDifference(next.tenants).size > 0
