// The modern relay with everything real but the upstreams: doubles of the Upstream seam, of either era, behind a real
// pool.

import { type Teardown } from '../kit/until.ts'
import pino from 'pino'
import { randomBytes, randomUUID } from 'node:crypto'
import { keyPrincipal } from '../../src/auth/principal.ts'
import { compileConfig } from '../../src/config/load.ts'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'
import { createMemoryAccount } from '../../src/limits/memory.ts'
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
import type { Client, HandshakeParams, LogLevel, Upstream, UpstreamEvents } from '../../src/protocol/seams.ts'
import type { ContextOf, EndpointContext } from '../../src/relay/call/call.ts'
import { createCatalogCache } from '../../src/relay/catalog/cache/catalog-cache.ts'
import { createLogLevels } from '../../src/relay/connections/log-level.ts'
import { createListings, type Listings } from '../../src/relay/catalog/listings.ts'
import { createResourceSubscriptions } from '../../src/relay/subscriptions/resource-subscriptions.ts'
import { createCallLimits } from '../../src/policy/call-limits.ts'
import { createModernRelay, type ModernRelay } from '../../src/relay/modern-relay.ts'
import { createSealer, type Sealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { createPool } from '../../src/upstream/pool/pool.ts'
import { aloneOnTheBus, stillClock, type StillClock } from './kit.ts'

/** What a double offers and does. May be changed while it is connected. */
export interface Double {
  era?: 'legacy' | 'modern'
  tools?: JsonObject[]
  prompts?: JsonObject[]
  resources?: JsonObject[]
  capabilities?: ServerCapabilities
  instructions?: string
  ttlMs?: number
  /** Runs before a list is answered. */
  listing?(): Promise<void>
  down?: boolean
  /** Do its questions come with their calls? */
  namesCalls?: boolean
  /** Has it calls that were given up? */
  owed?(): Promise<void> | undefined
  /** Every request fails with it. */
  broken?: Error | undefined
  answer?(request: Request, client: Client, signal: AbortSignal): Result | Promise<Result>
}

export interface Opened {
  readonly upstream: string
  readonly era: 'legacy' | 'modern'
  readonly handshake: HandshakeParams
  readonly events: UpstreamEvents
  readonly requests: Request[]
  closed: boolean
}

export interface Asking {
  readonly who?: string
  readonly endpoint?: string
  readonly capabilities?: ClientCapabilities
  readonly logLevel?: LogLevel
  readonly heard?: Notification[]
  readonly signal?: AbortSignal
}

export interface ModernSetup {
  readonly relay: ModernRelay
  readonly listings: Listings
  readonly sealer: Sealer
  readonly connections: Opened[]
  /** The time of day; for what expires. */
  readonly wall: { now(): number }
  readonly clock: StillClock
  later(ms: number): void
  place(endpoint?: string): EndpointContext
  /** A reload after which there is no such endpoint. Calls may still come that were let in before. */
  takeAway(endpoint?: string): void
  requests(method: string): Request[]
  call(method: string, params?: JsonObject, asking?: Asking): Promise<Result>
}

export interface SetupOptions {
  readonly endpoints?: Record<string, unknown>
  readonly isolation?: string
  readonly type?: 'http' | 'stdio'
  readonly limits?: Record<string, number>
}

export const tasksExtension = 'io.modelcontextprotocol/tasks'
export const taskClient: ClientCapabilities = { extensions: { [tasksExtension]: {} } }

export async function modernSetup(
  t: Teardown,
  doubles: Record<string, Double>,
  { endpoints, isolation = 'session', type = 'http', limits = {} }: SetupOptions = {}
): Promise<ModernSetup> {
  const log = pino({ level: 'silent' })
  const clock = stillClock()
  let today = 1_800_000_000_000
  const snapshot = compileConfig(
    JSON.stringify({
      listen: { host: '127.0.0.1', port: 0 },
      store: 'memory:',
      limits: { coldStartMs: 1_000, pageSize: 3, ...limits },
      tenants: {
        acme: {
          auth: { keys: ['ada', 'bob', 'you'].map((name) => ({ name, key: `gh_key_of_the_relay_${name}_0123` })) },
          upstreams: Object.fromEntries(
            Object.keys(doubles).map((name) => [
              name,
              {
                ...(type === 'http' ? { type, url: `http://127.0.0.1:9/${name}` } : { type, command: name }),
                isolation
              }
            ])
          ),
          ...(endpoints === undefined ? {} : { endpoints })
        }
      }
    }),
    { path: 'test.json', env: {} }
  )
  const tenant = snapshot.tenants.get(tenantId('acme'))
  if (tenant === undefined) throw new Error('no tenant')
  const store = await createSqliteStore({ path: ':memory:', clock: { now: Date.now }, log })
  const sealer = await createSealer({ store, randomBytes, timer: (ms, run) => setTimeout(run, ms), log })
  const connections: Opened[] = []
  const pool = createPool({
    connector: {
      connect: (definition, handshake, events) => connect(definition, handshake, events),
      endSession: () => Promise.resolve()
    },
    clock,
    random: () => 0,
    log
  })
  const clientInfo = { name: 'test', version: '1' }
  const listings = createListings({
    pool,
    store,
    clock,
    log,
    clientInfo,
    memory: createMemoryAccount(),
    events: { sharedNotification() {}, lost() {} }
  })
  const catalogs = createCatalogCache(listings, log)
  const wall = { now: () => today }
  const placeOf = (endpoint: string): EndpointContext | undefined => {
    const found = tenant.endpoints.get(endpointName(endpoint))
    return found === undefined ? undefined : { snapshot, tenant, endpoint: found }
  }
  const away = new Set<string>()
  const contextOf = (...[, endpoint]: Parameters<ContextOf>): EndpointContext | undefined =>
    away.has(endpoint) ? undefined : placeOf(endpoint)
  const relay = createModernRelay({
    pool,
    sealer,
    shared: {
      listings,
      catalogOf: catalogs,
      levels: createLogLevels(log),
      subscriptions: createResourceSubscriptions(pool, clock, log)
    },
    runtime: {
      clock,
      wall: { ...wall, timer: clock.timer },
      random: () => 0,
      newId: () => randomBytes(16).toString('base64url'),
      clientInfo,
      log,
      observers: { clock, log },
      callLimits: createCallLimits({ store, clock, wall, node: 'here', log })
    },
    contextOf: Object.assign(contextOf, { load: async (...at: Parameters<typeof contextOf>) => contextOf(...at) }),
    node: 'here',
    bus: aloneOnTheBus
  })

  function connect(
    { name }: UpstreamDefinition,
    handshake: HandshakeParams,
    events: UpstreamEvents
  ): Promise<Upstream> {
    const double = doubles[name]
    if (double === undefined || double.down === true)
      return Promise.reject(
        new GatewayError('upstream_unavailable', `Upstream ${name} is down at http://127.0.0.1:9/${name}.`)
      )
    const { era = 'modern' } = double
    const opened: Opened = { upstream: name, era, handshake, events, requests: [], closed: false }
    connections.push(opened)
    const hints = (): Result =>
      era === 'modern' ? { resultType: 'complete', ttlMs: double.ttlMs ?? 0, cacheScope: 'public' } : {}
    const lists: Record<string, () => Result> = {
      'tools/list': () => ({ tools: double.tools ?? [], ...hints() }),
      'prompts/list': () => ({ prompts: double.prompts ?? [], ...hints() }),
      'resources/list': () => ({ resources: double.resources ?? [], ...hints() }),
      'resources/templates/list': () => ({ resourceTemplates: [], ...hints() }),
      'logging/setLevel': () => ({})
    }
    return Promise.resolve({
      id: randomUUID(),
      name,
      era,
      revision: era === 'modern' ? '2026-07-28' : '2025-11-25',
      capabilities: double.capabilities ?? { tools: {}, prompts: {}, resources: {}, completions: {}, logging: {} },
      serverInfo: { name, version: '1' },
      ...(era === 'modern' ? { discoveryTtlMs: double.ttlMs ?? 0 } : {}),
      instructions: double.instructions,
      serverRequestsNameCall: double.namesCalls,
      abandonedCalls: () => double.owed?.(),
      async request(request, client, signal) {
        opened.requests.push(request)
        if (double.broken !== undefined && !request.method.endsWith('/list')) throw double.broken
        if (request.method.endsWith('/list')) await double.listing?.()
        return lists[request.method]?.() ?? (await double.answer?.(request, client, signal)) ?? {}
      },
      notify() {},
      async close() {
        opened.closed = true
      },
      destroy() {}
    })
  }

  t.teardown(async () => {
    void relay.close()
    listings.close()
    await pool.close()
    sealer.close()
    await store.close()
  })

  const setup: ModernSetup = {
    relay,
    listings,
    sealer,
    connections,
    wall,
    clock,
    later(ms) {
      today += ms
      clock.move(ms)
    },
    place(endpoint = 'default') {
      const place = placeOf(endpoint)
      if (place === undefined) throw new Error(`no endpoint ${endpoint}`)
      return place
    },
    takeAway(endpoint = 'default') {
      away.add(endpoint)
      relay.retain(new Set([...tenant.upstreams.values()].map(({ hash }) => hash)))
    },
    requests: (method) =>
      connections.flatMap(({ requests }) => requests).filter((request) => request.method === method),
    call: async (
      method,
      params,
      { who = 'ada', endpoint, capabilities = {}, logLevel, heard = [], signal = new AbortController().signal } = {}
    ) =>
      await relay.call({
        ...setup.place(endpoint),
        record: {},
        principal: keyPrincipal(tenant.id, { name: who, sha256: '', scopes: [] }),
        request: params === undefined ? { method } : { method, params },
        client: {
          era: 'modern',
          capabilities,
          logLevel,
          notify: (notification) => {
            heard.push(notification)
          },
          ask: () => Promise.reject(new Error('not asked'))
        },
        signal
      })
  }
  return setup
}
