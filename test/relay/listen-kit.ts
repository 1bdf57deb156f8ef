// The listen module with doubles at both of its sides: listings that a test sets, and upstreams whose listen streams a
// test speaks on.

import { type Teardown } from '../kit/until.ts'
import pino from 'pino'
import { randomBytes, randomUUID } from 'node:crypto'
import { keyPrincipal } from '../../src/auth/principal.ts'
import { compileConfig } from '../../src/config/load.ts'
import type { Snapshot, UpstreamDefinition } from '../../src/config/snapshot.ts'
import {
  type ClientCapabilities,
  endpointName,
  GatewayError,
  type JsonObject,
  type Notification,
  type Request,
  type Result,
  type ServerCapabilities,
  tenantId,
  upstreamName
} from '../../src/protocol/messages.ts'
import type { Client, ListKind, Upstream } from '../../src/protocol/seams.ts'
import { buildCatalog, type Catalog } from '../../src/relay/catalog/catalog.ts'
import type { EndpointContext } from '../../src/relay/call/call.ts'
import type { Listings } from '../../src/relay/catalog/listings.ts'
import type { LeasedConnection } from '../../src/relay/connections/caller-connections.ts'
import { createListenStreams, type ListenStreams } from '../../src/relay/subscriptions/listen-streams.ts'
import { createResourceSubscriptions } from '../../src/relay/subscriptions/resource-subscriptions.ts'
import { createSealedTaskIds, type SealedTaskIds } from '../../src/relay/tasks/caller-tasks.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import type { Listing } from '../../src/upstream/listing/listing.ts'
import { aloneOnTheBus, stillClock, type StillClock } from './kit.ts'

const tasks = 'io.modelcontextprotocol/tasks'
export const taskClient: ClientCapabilities = { extensions: { [tasks]: {} } }

/** One listen request that reached an upstream. */
export interface Leg {
  readonly upstream: string
  readonly filter: JsonObject
  readonly client: Client
  /** Was it closed from our side? */
  readonly closed: boolean
  ack(filter?: JsonObject): void
  say(method: string, params?: JsonObject): void
  end(): void
  fail(error?: Error): void
}

export interface Double {
  tools?: JsonObject[]
  prompts?: JsonObject[]
  resources?: JsonObject[]
  era?: 'legacy' | 'modern'
  /** What the connection declares. */
  capabilities?: ServerCapabilities
  /** Runs before the connection is there. */
  opening?(): Promise<void>
  /** Connecting fails while it is set. */
  down?: boolean
  /** Is not acknowledged by itself. */
  silent?: boolean
  /** Answers with this instead of a stream. */
  refuses?: Error
  /** What it acknowledges; default all that it is asked. */
  grants?(filter: JsonObject): JsonObject
  answer?(request: Request): Result | Promise<Result>
}

export interface Listener {
  readonly heard: Notification[]
  /** Resolves with the result, or rejects. */
  readonly over: Promise<Result>
  leave(): void
}

export interface ListenSetup {
  readonly listen: ListenStreams
  readonly clock: StillClock
  readonly legs: Leg[]
  /** Legs that are open at an upstream. */
  open(upstream: string): Leg[]
  readonly requests: Request[]
  readonly taskIds: SealedTaskIds
  place(endpoint?: string): EndpointContext
  listener(filter: unknown, more?: { who?: string; endpoint?: string; capabilities?: ClientCapabilities }): Listener
  /** Something was listed anew. */
  relisted(upstream: string, ...kinds: ListKind[]): void
  readonly used: string[]
  /** Scopes that are kept from being idle. */
  readonly touched: string[]
  /** Connections that were not given back. */
  readonly taken: ReadonlySet<LeasedConnection>
  /** The connection to a legacy upstream says something that is about no call. */
  tell(upstream: string, method: string, params: JsonObject): void
  /** It breaks. */
  cut(upstream: string): void
  reload(change: (config: Config) => void): void
  /** Is called before each look-up of where a resource leads. */
  onLookUp(run: (uri: string) => void): void
}

export interface Config {
  upstreams: Record<string, unknown>
  endpoints: Record<string, unknown>
  limits: Record<string, number>
}

export async function listenSetup(
  t: Teardown,
  doubles: Record<string, Double>,
  limits: Record<string, number> = {}
): Promise<ListenSetup> {
  const clock = stillClock()
  const log = pino({ level: 'silent' })
  const config: Config = {
    upstreams: Object.fromEntries(
      Object.keys(doubles).map((name) => [name, { type: 'http', url: `http://127.0.0.1:9/${name}` }])
    ),
    endpoints: {
      default: { upstreams: Object.keys(doubles) },
      other: { upstreams: Object.keys(doubles) },
      ...Object.fromEntries(Object.keys(doubles).map((name) => [`only-${name}`, { upstreams: [name], prefix: '' }]))
    },
    limits
  }
  let snapshot = compile(config)
  const real = { now: Date.now, timer: (ms: number, run: () => void) => setTimeout(run, ms) }
  const store = await createSqliteStore({ path: ':memory:', clock: real, log })
  const sealer = await createSealer({ store, randomBytes, timer: real.timer, log })
  t.teardown(async () => {
    setup.listen.close()
    subscriptions.close()
    sealer.close()
    await store.close()
  })
  const legs: Leg[] = []
  const requests: Request[] = []
  const used: string[] = []
  const listeners: Array<Parameters<Listings['onChange']>[0]> = []
  const placeOf = (id: string, name: string): EndpointContext | undefined => {
    const tenant = snapshot.tenants.get(tenantId(id))
    const endpoint = tenant?.endpoints.get(endpointName(name))
    return tenant === undefined || endpoint === undefined ? undefined : { snapshot, tenant, endpoint }
  }
  const listingOf = (name: string): Listing => {
    const { tools = [], prompts = [], resources = [], era = 'modern' } = doubles[name] ?? {}
    return {
      tools,
      prompts,
      resources,
      templates: [],
      capabilities: { tools: {}, prompts: {}, resources: { subscribe: true } },
      serverInfo: { name, version: '1' },
      instructions: undefined,
      revision: era === 'modern' ? '2026-07-28' : '2025-11-25',
      partial: [],
      failed: []
    } as unknown as Listing
  }
  // As in the relay: the same object until something is listed anew.
  let catalogs = new WeakMap<object, Catalog>()
  let lookedUp = (_uri: string): void => {}
  function withLookUps(catalog: Catalog): Catalog {
    const resource = (uri: string) => {
      lookedUp(uri)
      return catalog.resource(uri)
    }
    return { ...catalog, resource }
  }
  const catalog = (place: EndpointContext): Catalog => {
    const known =
      catalogs.get(place.endpoint) ??
      withLookUps(
        buildCatalog(
          place.endpoint,
          new Map(place.endpoint.members.map(({ upstream }) => [upstream, listingOf(upstream)]))
        )
      )
    catalogs.set(place.endpoint, known)
    return known
  }
  const taskIds = createSealedTaskIds(sealer)

  function connect(name: string): Promise<Upstream> {
    const double = doubles[name]
    if (double === undefined || double.down === true)
      return Promise.reject(new GatewayError('upstream_unavailable', `Upstream ${name} is down.`))
    const { era = 'modern', capabilities = { resources: { subscribe: true }, extensions: { [tasks]: {} } } } = double
    return Promise.resolve({
      id: randomUUID(),
      name: upstreamName(name),
      era,
      revision: era === 'modern' ? '2026-07-28' : '2025-11-25',
      capabilities,
      serverInfo: { name, version: '1' },
      instructions: undefined,
      request(request, client, signal) {
        requests.push(request)
        if (request.method !== 'subscriptions/listen') return Promise.resolve(double.answer?.(request) ?? {})
        if (double.refuses !== undefined) return Promise.reject(double.refuses)
        const over = Promise.withResolvers<Result>()
        let closed = false
        const filter = request.params?.['notifications'] as JsonObject
        const leg: Leg = {
          upstream: name,
          filter,
          client,
          get closed() {
            return closed
          },
          ack: (granted = filter) => leg.say('notifications/subscriptions/acknowledged', { notifications: granted }),
          say: (method, params) => client.notify(params === undefined ? { method } : { method, params }),
          end: () => {
            closed = true
            over.resolve({ resultType: 'complete' })
          },
          fail: (error = new GatewayError('upstream_lost', 'it broke')) => {
            closed = true
            over.reject(error)
          }
        }
        signal.addEventListener('abort', () => leg.fail(new GatewayError('cancelled', 'closed')), { once: true })
        legs.push(leg)
        if (double.silent !== true) leg.ack(double.grants?.(filter))
        return over.promise
      },
      notify() {},
      close: () => Promise.resolve(),
      destroy() {}
    })
  }

  const touched: string[] = []
  const subscriptions = createResourceSubscriptions({ touch: (scope) => void touched.push(scope) }, clock, log, () => 0)
  /** Of legacy upstreams: one connection each, while it lives. */
  const watched = new Map<string, Promise<Upstream>>()
  const taken = new Set<LeasedConnection>()
  const definitionOf = (name: string): UpstreamDefinition =>
    snapshot.tenants.get(tenantId('acme'))?.upstreams.get(upstreamName(name)) as UpstreamDefinition
  async function watch(name: string): Promise<LeasedConnection> {
    const upstream = watched.get(name) ?? connect(name)
    if (doubles[name]?.era === 'legacy') watched.set(name, upstream)
    upstream.catch(() => watched.delete(name))
    await doubles[name]?.opening?.()
    const connection = {
      scope: `of ${name}`,
      upstream: await upstream,
      release: () => {
        taken.delete(connection)
      }
    }
    taken.add(connection)
    return connection
  }

  const setup: ListenSetup = {
    clock,
    legs,
    requests,
    taskIds,
    used,
    touched,
    taken,
    tell: (name, method, params) => subscriptions.notification(definitionOf(name), `of ${name}`, { method, params }),
    cut(name) {
      watched.delete(name)
      subscriptions.lost(definitionOf(name), `of ${name}`)
    },
    open: (upstream) => legs.filter((leg) => leg.upstream === upstream && !leg.closed),
    listen: createListenStreams({
      catalogs: {
        of: catalog,
        awaitListings: () => Promise.resolve(),
        revalidate: () => Promise.resolve(),
        offers: () => true,
        viewKeyOf: () => undefined
      },
      contextOf: Object.assign(placeOf, { load: async (...at: Parameters<typeof placeOf>) => placeOf(...at) }),
      taskIds,
      processTasks: { find: () => undefined },
      listings: {
        markUsed: ({ name }) => {
          used.push(name)
        },
        peek: ({ name }) => listingOf(name),
        onChange: (listener) => {
          listeners.push(listener)
        }
      },
      connections: { watch: ({ name }) => watch(name) },
      subscriptions,
      bus: aloneOnTheBus,
      runtime: { clock, wall: clock, random: () => 0, log, observers: { clock, log } }
    }),
    place(endpoint = 'default') {
      const place = placeOf('acme', endpoint)
      if (place === undefined) throw new Error(`no endpoint ${endpoint}`)
      return place
    },
    listener(notifications, { who = 'ada', endpoint = 'default', capabilities = {} } = {}) {
      const heard: Notification[] = []
      const stop = new AbortController()
      const place = setup.place(endpoint)
      const over = setup.listen.listen({
        ...place,
        principal: keyPrincipal(place.tenant.id, { name: who, sha256: '', scopes: [] }),
        request: { method: 'subscriptions/listen', params: { notifications } },
        client: {
          era: 'modern',
          capabilities,
          notify: (notification) => {
            heard.push(notification)
          },
          ask: () => Promise.reject(new Error('not asked'))
        },
        signal: stop.signal
      })
      over.catch(() => {}) // Looked at by the test, where it wants to.
      return { heard, over, leave: () => stop.abort() }
    },
    relisted(upstream, ...kinds) {
      catalogs = new WeakMap()
      const definition = snapshot.tenants.get(tenantId('acme'))?.upstreams.get(upstreamName(upstream))
      const change = { kinds: new Set(kinds), isAffected: () => true, view: undefined, isFirst: false }
      for (const listener of listeners) listener({ hash: definition?.hash ?? '', ...change })
    },
    onLookUp(run) {
      lookedUp = run
    },
    reload(change) {
      change(config)
      snapshot = compile(config)
      setup.listen.retain()
    }
  }
  return setup
}

const compile = ({ upstreams, endpoints, limits }: Config): Snapshot =>
  compileConfig(
    JSON.stringify({
      listen: { host: '127.0.0.1', port: 0 },
      store: 'memory:',
      limits,
      tenants: { acme: { auth: { keys: [{ name: 'a', key: 'gh_key_of_the_relay_0123' }] }, upstreams, endpoints } }
    }),
    { path: 'test.json', env: {} }
  )

export const ackOf = ({ heard }: Listener): unknown => {
  const [first] = heard
  return first?.method === 'notifications/subscriptions/acknowledged' ? first.params?.['notifications'] : undefined
}
export const said = ({ heard }: Listener): string[] =>
  heard
    .slice(1)
    .map(({ method, params }) =>
      [method, params?.['uri'] ?? params?.['taskId']].filter((part) => part !== undefined).join(' ')
    )
