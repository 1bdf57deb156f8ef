// The relay with everything real but the upstreams: doubles of the Upstream seam behind a real pool, real sessions in a
// real store.

import type { Test } from 'tap'
import { authOf } from '../kit/acme-gateway.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { gateway, type TestGateway, type TestGatewayOptions } from '../kit/gateway.ts'
import { type Teardown } from '../kit/until.ts'
import pino from 'pino'
import { randomBytes, randomUUID } from 'node:crypto'
import {
  type ClientCapabilities,
  endpointName,
  GatewayError,
  type JsonObject,
  type Notification,
  type Request,
  type Result,
  type ServerCapabilities,
  tenantId
} from '../../src/protocol/messages.ts'
import { compileConfig } from '../../src/config/load.ts'
import { createContextOf } from '../../src/relay/call/call.ts'
import type { Snapshot, UpstreamDefinition } from '../../src/config/snapshot.ts'
import { keyPrincipal } from '../../src/auth/principal.ts'
import type { Client, ListKind, Upstream, UpstreamEvents } from '../../src/protocol/seams.ts'
import { createCallLimits } from '../../src/policy/call-limits.ts'
import { createLegacyRelay, type LegacyRelay } from '../../src/relay/legacy-relay.ts'
import { createBus } from '../../src/session/bus/bus.ts'
import { createLiveSessions, type LiveSession } from '../../src/session/live-sessions.ts'
import { createSessions } from '../../src/session/sessions.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import type { Store } from '../../src/store/port.ts'
import { createServerRequestQuotas } from '../../src/upstream/rpc/server-requests.ts'
import { createPool } from '../../src/upstream/pool/pool.ts'

/** The bus of a process that has no others beside it. */
export const aloneOnTheBus = {
  node: 'here',
  shared: false,
  request: () => Promise.reject(new GatewayError('invalid_state', 'nobody there')),
  serve() {},
  hear() {},
  tell: async () => false
}

/** What a double offers and does. May be changed while it is connected. */
export interface Double {
  /** A function of what the connection was declared, where the server looks at that. */
  tools?: JsonObject[] | ((declared: ClientCapabilities) => JsonObject[])
  prompts?: JsonObject[]
  resources?: JsonObject[]
  templates?: JsonObject[]
  capabilities?: ServerCapabilities
  instructions?: string
  /** Connecting fails while it is set; `too_many`: by a limit of the gateway. */
  down?: boolean | 'too_many'
  /** Runs before a list is answered. */
  listing?(request: Request, connection: Connection): void | Promise<void>
  answer?(request: Request, client: Client, signal: AbortSignal, connection: Connection): Result | Promise<Result>
}

export interface Connection {
  readonly upstream: string
  readonly scope: number
  readonly declared: ClientCapabilities
  readonly requests: Request[]
  readonly notifications: Notification[]
  closed: boolean
  listChanged(kind: ListKind): void
  notify(notification: Notification): void
  die(): void
}

export interface Person {
  readonly live: LiveSession
  readonly heard: Notification[]
  call(method: string, params?: JsonObject, client?: Partial<Client>, signal?: AbortSignal): Promise<Result>
  end(): Promise<void>
}

export interface RelaySetup {
  readonly relay: LegacyRelay
  readonly store: Store
  readonly log: Array<Record<string, unknown>>
  readonly connections: Connection[]
  /** All requests of one method that reached a double. */
  requests(method: string): Request[]
  person(name?: string, endpoint?: string, capabilities?: ClientCapabilities): Promise<Person>
  snapshot: Snapshot
}

export interface SetupOptions {
  readonly doubles: Record<string, Double>
  readonly endpoints?: Record<string, unknown>
  readonly isolation?: string
  readonly limits?: Record<string, number>
  readonly store?: Store
  readonly clock?: Pick<StillClock, 'now' | 'timer'>
}

export interface StillClock {
  now(): number
  timer(ms: number, run: () => void): { refresh(): void; close(): void; unref(): void }
  /** How many milliseconds each timer that is set was set for. */
  readonly waits: number[]
  move(ms: number): void
}

/** Time that passes only when it is moved. */
export function stillClock(): StillClock {
  let now = 1_000_000
  const timers = new Map<object, { at: number; ms: number; run: () => void }>()
  return {
    now: () => now,
    timer(ms, run) {
      const timer = {
        refresh() {
          timers.set(timer, { at: now + ms, ms, run })
        },
        close() {
          timers.delete(timer)
        },
        unref() {}
      }
      timer.refresh()
      return timer
    },
    get waits() {
      return [...timers.values()].map((timer) => timer.ms)
    },
    move(ms) {
      now += ms
      for (const [timer, { at, run }] of [...timers]) {
        if (at > now || !timers.delete(timer)) continue
        run()
      }
    }
  }
}

export const tool = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  inputSchema: { type: 'object' },
  ...more
})

export async function relaySetup(
  t: Teardown,
  { doubles, endpoints, isolation = 'session', limits = {}, store: given, clock: time }: SetupOptions
): Promise<RelaySetup> {
  const lines: Array<Record<string, unknown>> = []
  const log = pino(
    { level: 'debug', base: null },
    {
      write: (line: string) => {
        lines.push(JSON.parse(line) as Record<string, unknown>)
      }
    }
  )
  const clock = time ?? {
    now: () => performance.timeOrigin + performance.now(),
    timer: (ms: number, run: () => void) => setTimeout(run, ms)
  }
  const snapshot = compileConfig(
    JSON.stringify({
      listen: { host: '127.0.0.1', port: 0 },
      store: 'memory:',
      // As long as a busy machine needs: what a test does not set is no part of its behaviour.
      limits: { coldStartMs: 30_000, ...limits },
      tenants: {
        acme: {
          auth: { keys: [{ name: 'a', key: 'gh_key_of_the_relay_0123' }] },
          upstreams: Object.fromEntries(
            Object.keys(doubles).map((name) => [name, { type: 'http', url: `http://127.0.0.1:9/${name}`, isolation }])
          ),
          ...(endpoints === undefined ? {} : { endpoints })
        }
      }
    }),
    { path: 'test.json', env: {} }
  )
  const store = given ?? (await createSqliteStore({ path: ':memory:', clock, log }))
  const connections: Connection[] = []
  const pool = createPool({
    connector: {
      connect: (definition, { capabilities }, events) => connect(definition, capabilities, events),
      endSession: () => Promise.resolve()
    },
    clock,
    random: () => 0,
    log
  })
  const sessions = await createSessions({ store, clock, randomBytes, snapshot: () => snapshot, node: 'test', log })
  const live = createLiveSessions(clock, 'test')
  sessions.onEnded((key) => live.drop(key))
  const tenant = snapshot.tenants.get(tenantId('acme'))
  if (tenant === undefined) throw new Error('no tenant')
  const sealer = await createSealer({ store, randomBytes, timer: clock.timer, log })
  const setup: RelaySetup = {
    store,
    log: lines,
    connections,
    snapshot,
    requests: (method) =>
      connections.flatMap(({ requests }) => requests).filter((request) => request.method === method),
    relay: createLegacyRelay({
      runtime: {
        clock,
        wall: clock,
        random: () => 0,
        newId: () => randomBytes(16).toString('base64url'),
        clientInfo: { name: 'test', version: '1' },
        log,
        observers: { clock, log },
        callLimits: createCallLimits({ store, clock, wall: clock, node: 'here', log })
      },
      pool,
      store,
      sealer,
      bus: await createBus({ store, sealer, node: 'here', clock, log }),
      serverRequestQuotas: createServerRequestQuotas(),
      sessions,
      live,
      contextOf: createContextOf(() => snapshot, { load: () => undefined, of: (context) => context })
    }),
    async person(name = 'ada', at = 'default', capabilities = {}) {
      const endpoint = tenant.endpoints.get(endpointName(at))
      if (endpoint === undefined) throw new Error(`no endpoint ${at}`)
      const principal = keyPrincipal(tenant.id, { name, sha256: '', scopes: [] })
      const owner = {
        tenant: tenant.id,
        issuer: principal.issuer,
        subject: principal.subject,
        clientId: principal.clientId
      }
      const { session } = await sessions.open(owner, endpoint.name, {
        revision: '2025-11-25',
        clientInfo: undefined,
        capabilities
      })
      const own = live.use(session)
      const heard: Notification[] = []
      own.setStream({
        isAttached: () => true,
        send(message) {
          const { jsonrpc: _envelope, ...notification } = message as Notification & { jsonrpc: string }
          heard.push(notification)
        },
        finish() {}
      })
      return {
        live: own,
        heard,
        call: async (method, params, client = {}, signal = new AbortController().signal) =>
          await setup.relay.call({
            snapshot,
            tenant,
            endpoint,
            principal,
            record: {},
            session: own,
            signal,
            request: params === undefined ? { method } : { method, params },
            client: {
              era: 'legacy',
              capabilities: {},
              notify() {},
              ask: () => Promise.reject(new Error('not asked')),
              ...client
            }
          }),
        end: () => sessions.end(own.session)
      }
    }
  }

  function connect(
    definition: UpstreamDefinition,
    declared: ClientCapabilities,
    events: UpstreamEvents
  ): Promise<Upstream> {
    const double = doubles[definition.name]
    const { down = false } = double ?? { down: true }
    if (double === undefined || down !== false)
      return Promise.reject(
        new GatewayError(
          down === 'too_many' ? down : 'upstream_unavailable',
          `Upstream ${definition.name} is down at http://127.0.0.1:9/${definition.name}.`
        )
      )
    const connection: Connection = {
      upstream: definition.name,
      scope: connections.length,
      declared,
      requests: [],
      notifications: [],
      closed: false,
      listChanged: (kind) => events.listChanged(kind, 'server'),
      notify: (notification) => events.notification(notification),
      die() {
        connection.closed = true
        events.closed(new Error('it died'))
      }
    }
    connections.push(connection)
    const lists: Record<string, () => Result> = {
      'tools/list': () => ({
        tools: typeof double.tools === 'function' ? double.tools(declared) : (double.tools ?? [])
      }),
      'prompts/list': () => ({ prompts: double.prompts ?? [] }),
      'resources/list': () => ({ resources: double.resources ?? [] }),
      'resources/templates/list': () => ({ resourceTemplates: double.templates ?? [] }),
      'logging/setLevel': () => ({})
    }
    return Promise.resolve({
      id: randomUUID(),
      name: definition.name,
      era: 'legacy',
      revision: '2025-11-25',
      capabilities: double.capabilities ?? { tools: {}, prompts: {}, resources: {}, logging: {}, completions: {} },
      serverInfo: { name: definition.name, version: '1' },
      instructions: double.instructions,
      async request(request, client, signal) {
        connection.requests.push(request)
        if (lists[request.method] !== undefined) await double.listing?.(request, connection)
        return lists[request.method]?.() ?? (await double.answer?.(request, client, signal, connection)) ?? {}
      },
      notify: (notification) => {
        connection.notifications.push(notification)
      },
      async close() {
        connection.closed = true
      },
      destroy() {
        connection.closed = true
      }
    })
  }

  t.teardown(async () => {
    setup.relay.close()
    live.close()
    await pool.close()
    await sessions.close()
    if (given === undefined) await store.close()
  })
  return setup
}

/** A real gateway whose callers have keys, and tokens of an issuer that can be made to forge. */
export const startGateway = async (t: Test, options: TestGatewayOptions): Promise<TestGateway> =>
  await gateway(t, { auth: authOf(await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })), ...options })
