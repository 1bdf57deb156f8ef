// The composition root: builds everything, opens nothing until `listen`, closes in reverse. Nothing below reads the clock or the environment.

import { randomBytes } from 'node:crypto'
import type { AddressInfo, Socket } from 'node:net'
import { createAuthenticator } from './auth/authenticate.ts'
import { createFetch } from './auth/fetch.ts'
import { isLoopback } from './config/loopback.ts'
import type { Snapshot } from './config/snapshot.ts'
import { createMcpDoor } from './http/eras.ts'
import { createLegacyDoor } from './http/legacy.ts'
import { createModernDoor } from './http/modern.ts'
import { createOldSseDoor } from './http/oldsse.ts'
import { createServer } from './http/server.ts'
import { createKeepAlive } from './http/stream.ts'
import type { Log } from './observe/log.ts'
import { GatewayError } from './protocol/errors.ts'
import type { EndpointName, TenantId } from './protocol/ids.ts'
import type { Place } from './relay/call.ts'
import { createModernRelay } from './relay/modern/create.ts'
import { createRelay } from './relay/relay.ts'
import { createAsks } from './session/asks.ts'
import { createBus } from './session/bus.ts'
import { createLiveSessions } from './session/live.ts'
import { createSessions } from './session/sessions.ts'
import { createStreams } from './session/streams.ts'
import { openStore } from './store/open.ts'
import type { Store } from './store/port.ts'
import { createSealer } from './store/seal.ts'
import { createAskRooms } from './upstream/ask-room.ts'
import { createConnector } from './upstream/connect.ts'
import { createEgress } from './upstream/egress.ts'
import { createPool } from './upstream/pool.ts'
import { createSupervisor } from './upstream/process.ts'

export interface GatewayOptions {
  readonly log: Log
  readonly version: string
  /** What stdio children may inherit from (a few harmless names only; the rest comes from the configuration). */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Replaced in tests, at the seams only. */
  readonly overrides?: { readonly store?: Store, readonly keepAliveMs?: number, readonly parkedMs?: number }
}

export interface Gateway {
  /** Opens the store and the port. @returns where it listens, and the public URL that tokens are for */
  listen (): Promise<{ readonly url: string, readonly publicUrl: string }>
  /** Asks the upstreams of every endpoint for their listings, so that the first client does not wait. */
  warm (): Promise<void>
  /**
   * Takes a new configuration without dropping a session. What cannot change while running is named in the answer.
   * @throws Error where it would let callers in without authentication; the configuration before stays in use
   */
  reload (next: Snapshot): { readonly needsRestart: readonly string[] }
  /** Stops accepting, lets calls finish for `limits.drainMs`, aborts the rest, closes upstreams and store. Idempotent. */
  close (): Promise<void>
  /** Kills every child process at once, synchronously: for the very end of the process. */
  killNow (): void
}

export async function createGateway (initial: Snapshot, { log, version, env, overrides = {} }: GatewayOptions): Promise<Gateway> {
  let snapshot = initial
  let draining = false
  let address: { publicUrl: string, loopbackPort: number | undefined } | undefined
  const timer = (ms: number, run: () => void): NodeJS.Timeout => setTimeout(run, ms)
  // For how long something lasts: goes on while the time of day is corrected.
  const clock = { now: () => performance.timeOrigin + performance.now(), timer }
  // For when something expires, which other machines have said or must agree on.
  const wall = { now: Date.now, timer }
  const random = (): number => randomBytes(4).readUInt32BE() / 2 ** 32
  const node = randomBytes(4).toString('hex')
  let requests = 0
  const calls = new Set<AbortController>()

  const serverInfo = { name: 'gatehouse', version }
  const store = overrides.store ?? await openStore(snapshot.store, { clock: wall, log })
  const authenticator = createAuthenticator({ clock: wall, fetch: createFetch(), log })
  const sessions = await createSessions({ store, clock: wall, randomBytes, limits: () => snapshot.limits })
  const sealer = await createSealer({ store, randomBytes, timer: clock.timer, log })
  const newId = (): string => randomBytes(16).toString('base64url')
  const bus = await createBus({ store, sealer, node, timer, wall, newId, log })
  const streams = createStreams({ store, sealer, clock, randomBytes, log })
  const live = createLiveSessions({ clock, asks: () => createAsks({ timer: clock.timer, prefix: node }), idleMs: () => Math.min(snapshot.limits.sessionIdleMs, snapshot.limits.sessionMaxMs) })
  const supervisor = createSupervisor({ baseEnv: env, maxProcesses: snapshot.limits.processes, maxPerTenant: snapshot.limits.processesPerTenant, clock, log })
  const askRooms = createAskRooms()
  const connector = createConnector({ supervisor, egress: createEgress(), clock, random, log, askRooms })
  const pool = createPool({ connector, clock, random, log })
  const keepAlive = createKeepAlive(overrides.keepAliveMs ?? 15_000)

  function placeOf (id: TenantId, name: EndpointName): Place | undefined {
    const tenant = snapshot.tenants.get(id)
    const endpoint = tenant?.endpoints.get(name)
    return tenant === undefined || endpoint === undefined ? undefined : { snapshot, tenant, endpoint }
  }
  const relay = createRelay({
    pool,
    store,
    sessions,
    live,
    clock,
    sealer,
    randomBytes,
    askRooms,
    log,
    handshake: { clientInfo: serverInfo, capabilities: {} },
    placeOf: ({ tenant, endpoint }) => placeOf(tenant, endpoint)
  })
  const modernRelay = createModernRelay({ pool, sealer, shared: relay.shared, clock, wall, random, log, clientInfo: serverInfo, placeOf, node, bus, newId, parkedMs: overrides.parkedMs })
  sessions.onEnded((key) => {
    // First, while they are still its own: then what is kept of them goes too.
    streams.drop(key)
    live.drop(key)
  })
  live.onDrop((key) => streams.drop(key))

  const legacy = createLegacyDoor({ relay, sessions, live, streams, keepAlive, clock: wall, log, serverInfo, calls })
  const modern = createModernDoor({ relay: modernRelay, keepAlive, clock: wall, log, serverInfo, calls })
  const oldSse = createOldSseDoor({ relay, sessions, live, keepAlive, clock: wall, randomBytes, log, serverInfo, calls })
  const server = createServer({
    snapshot: () => snapshot,
    address () {
      if (address === undefined) throw new GatewayError('unavailable', 'The gateway is starting.')
      return address
    },
    authenticator,
    door: createMcpDoor(legacy, modern),
    oldSse,
    store,
    log,
    requestId: () => `${node}-${(++requests).toString(36)}`,
    draining: () => draining,
    ready: () => sealer.ready
  })

  const sockets = new Set<Socket>()
  server.server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  let closing: Promise<void> | undefined
  async function shutDown (): Promise<void> {
    draining = true
    const { drainMs } = snapshot.limits
    const closed = server.close()
    // Connections that become idle while others still work would otherwise sit out their keep-alive time.
    const idle = setInterval(() => server.server.closeIdleConnections(), 50)
    streams.leave()
    live.close()
    modern.leave()
    const oldSseClosed = oldSse.close()
    const stopping = new GatewayError('shutting_down', 'The gateway stopped before the upstream had answered. Whether the call took effect is unknown.', { data: { outcome: 'unknown' } })
    const hurry = setTimeout(() => {
      log.warn({ calls: calls.size }, 'drain time is over; aborting calls in flight')
      for (const call of calls) call.abort(stopping)
    }, drainMs)
    // To Node a connection that never sent a byte is a busy one; clients and browsers open such in advance.
    const silent = setTimeout(() => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    }, 1_000)
    const force = setTimeout(() => server.server.closeAllConnections(), drainMs + 2_000)
    await closed
    await oldSseClosed
    clearInterval(idle)
    clearTimeout(hurry)
    clearTimeout(silent)
    clearTimeout(force)
    keepAlive.close()
    streams.close()
    await bus.close()
    await modernRelay.close()
    sealer.close()
    relay.close()
    await pool.close()
    authenticator.close()
    await sessions.close()
    await store.close()
  }

  /** The configuration was judged for the address that it names; what counts is where we listen, and what we are called, since the start. */
  function refuseOpenTenants (next: Snapshot): void {
    const open = [...next.tenants.values()].find(({ auth }) => auth.mode === 'none')
    if (open === undefined || (isLoopback(snapshot.listen.host) && (snapshot.publicUrl === undefined || isLoopback(new URL(snapshot.publicUrl).hostname)))) return
    throw new Error(`Tenant ${open.id} has auth: none, but this gateway can be reached from beyond this machine. Restart it with listen.host and publicUrl of this machine only, or give the tenant issuers or keys.`)
  }

  const configuredHashes = (): Set<string> => {
    const hashes = new Set<string>()
    for (const tenant of snapshot.tenants.values()) for (const upstream of tenant.upstreams.values()) hashes.add(upstream.hash)
    return hashes
  }

  return {
    async listen () {
      const { host, port } = snapshot.listen
      await server.listen({ host, port })
      const bound = server.server.address() as AddressInfo
      const shownHost = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address
      const url = `http://${shownHost}:${bound.port}`
      const loopback = bound.address === '::1' || bound.address.startsWith('127.')
      address = { publicUrl: snapshot.publicUrl ?? url, loopbackPort: loopback ? bound.port : undefined }
      return { url, publicUrl: address.publicUrl }
    },
    async warm () {
      await Promise.all([...snapshot.tenants.values()].flatMap((tenant) =>
        [...tenant.endpoints.values()].map((endpoint) => relay.warm({ snapshot, tenant, endpoint }))))
    },
    reload (next) {
      const before = snapshot
      refuseOpenTenants(next)
      const needsRestart = [
        JSON.stringify(next.listen) === JSON.stringify(before.listen) ? undefined : 'listen',
        JSON.stringify(next.store) === JSON.stringify(before.store) ? undefined : 'store',
        next.publicUrl === before.publicUrl ? undefined : 'publicUrl',
        next.limits.bodyBytes === before.limits.bodyBytes ? undefined : 'limits.bodyBytes',
        next.limits.processes === before.limits.processes ? undefined : 'limits.processes',
        next.limits.processesPerTenant === before.limits.processesPerTenant ? undefined : 'limits.processesPerTenant'
      ].filter((name) => name !== undefined)
      const changed = (session: { tenant: TenantId, endpoint: EndpointName }): 'gone' | 'changed' | 'same' => {
        const [old, now] = [before, next].map((config) => config.tenants.get(session.tenant)?.endpoints.get(session.endpoint))
        return now === undefined ? 'gone' : JSON.stringify(old) === JSON.stringify(now) ? 'same' : 'changed'
      }
      snapshot = { ...next, listen: before.listen, store: before.store, publicUrl: before.publicUrl }
      authenticator.reload(snapshot.tenants.values())
      const hashes = configuredHashes()
      relay.retain(hashes)
      modernRelay.retain(hashes)
      for (const session of live.all()) {
        const verdict = changed(session)
        if (verdict === 'gone') live.drop(session.key)
        else if (verdict === 'changed') session.changed(['tools', 'prompts', 'resources'])
      }
      // Whoever was let in by what is gone now is let go at once, in the middle of a call too.
      legacy.recheckAll()
      modern.recheckAll()
      oldSse.recheckAll()
      return { needsRestart }
    },
    close: () => closing ??= shutDown(),
    killNow: () => supervisor.killAllNow()
  }
}
