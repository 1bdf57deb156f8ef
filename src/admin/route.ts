// The definition of a route of the admin API: roles, schemas of its input and output, and handler. The server, the
// OpenAPI document, docs/admin-api.md and the tests are made from these definitions.

import type { Static, TSchema } from 'typebox'
import type { Audit } from '../audit/audit.ts'
import { createReport, problemLine } from '../config/problems.ts'
import { checkShape } from '../config/shape.ts'
import type { Control } from '../control/control.ts'
import type { Snapshot, Tenant } from '../config/snapshot.ts'
import type { OwnListener } from '../hosts/own-request.ts'
import type { MemoryAccount } from '../limits/memory.ts'
import { tenantId, type TenantId } from '../protocol/messages.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics/metrics.ts'
import type { CacheUses } from '../auth/token-cache.ts'
import type { CallLimits } from '../policy/call-limits.ts'
import type { CatalogCache } from '../relay/catalog/cache/catalog-cache.ts'
import type { Listings } from '../relay/catalog/listings.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Clock } from '../time/clock.ts'
import type { Store } from '../store/port.ts'
import type { Supervisor } from '../upstream/stdio/supervisor.ts'
import type { Pool } from '../upstream/pool/pool.ts'
import type { Vault } from '../vault/vault.ts'
import type { Administrator, AdminRole } from './access.ts'
import type { Conditions } from './configuration/conditions.ts'
import type { Callers } from './callers/callers.ts'
import type { Processes } from './live/processes.ts'
import type { Prometheus } from './series/prometheus.ts'
import type { RefusedLately } from './live/refused-lately.ts'
import type { Series } from './series/series.ts'
import type { Usage } from './live/usage.ts'
import type { Watch } from './live/watch.ts'
import { AdminProblem, noSuch } from './problem.ts'

/** The numbers of what the process holds. */
interface Held {
  readonly live: { readonly size: number }
  readonly streams: { readonly size: number }
  readonly connections: { readonly openCount: number; readonly max: number }
  readonly memory: Pick<MemoryAccount, 'held' | 'budgetBytes' | 'ofTenant' | 'share'>
  readonly modernRelay: { readonly parkedCalls: number; readonly listenStreams: number }
  readonly httpSse: { readonly streams: { readonly size: number } }
  readonly supervisor: Pick<Supervisor, 'count' | 'countsOf' | 'memoryByTenant' | 'usageOf' | 'strayLines'>
  readonly authenticator: { readonly uses: CacheUses }
  readonly calls: {
    /** The tenant of each call that runs. */
    tenants(): Iterable<string>
    countsOf(tenant: TenantId): { readonly calls: number; readonly streams: number }
  }
}

/** The services that the handlers read and call. */
export interface AdminServices {
  readonly snapshot: () => Snapshot
  readonly listings: Pick<Listings, 'peek' | 'named' | 'awaitListings' | 'revalidate' | 'catalogs'>
  readonly catalogOf: CatalogCache
  readonly pool: Pick<Pool, 'connect' | 'stateOf' | 'statesOf' | 'stderrOf'>
  readonly sessions: Pick<Sessions, 'index' | 'end'>
  readonly callLimits: Pick<CallLimits, 'usesOf'>
  readonly control: Control
  readonly vault: Pick<Vault, 'connections'>
  /** Names this process among several. */
  readonly node: string
  readonly watch: Pick<Watch, 'listen'>
  readonly usage: Pick<Usage, 'read'>
  readonly series: Pick<Series, 'read' | 'failuresSince'>
  readonly processes: Pick<Processes, 'list'>
  readonly prometheus: Prometheus
  readonly callers: Pick<Callers, 'today'>
  readonly refusedLately: Pick<RefusedLately, 'read'>
  /** Opens the connections to an upstream anew, at every process. */
  readonly renew: (renewal: { readonly hash: string; readonly atOnce: boolean }) => void
  readonly store: Store
  /** The address on which the gateway listens; undefined: it does not yet. */
  readonly state: { readonly address: OwnListener | undefined }
  readonly version: string
  /** `clock` measures durations, `wall` tells the time of day. */
  readonly clock: Pick<Clock, 'now'>
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
  /** The audit log of changes; undefined: the configuration has none. */
  readonly audit: Pick<Audit, 'changed' | 'changeRefused' | 'blockedTenants'> | undefined
  readonly metrics: Pick<Metrics, 'text'>
  readonly held: Held
  /** Returns why this process is not ready; undefined: it is. */
  readonly fault: () => Promise<string | undefined>
  /** The file descriptors that the process may have open. */
  readonly descriptors: number
}

export interface AdminRequest<Query = unknown, Body = unknown> {
  readonly administrator: Administrator
  readonly address: string
  readonly conditions: Conditions
  /** The parameters of the path, percent-decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Body
  /** The tenant of the path, to which the key has access. @throws AdminProblem not_found */
  readonly tenant: Tenant
  /** Media types that the answer may have, as its header says it; '' where there is none. */
  readonly accept: string
  /** The answer is to go on, as server-sent events. */
  readonly wantsEvents: boolean
  /** Whether the client accepts an answer compressed by gzip. */
  readonly takesGzip: boolean
  /** The OpenAPI document of all routes. */
  readonly openApi: object
}

/** An answer with more than its body. */
export class AdminReply {
  readonly body: unknown
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(body: unknown, headers: Readonly<Record<string, string>>, status = 200) {
    this.body = body
    this.headers = headers
    this.status = status
  }
}

/** An answer that goes on, as server-sent events. */
export class AdminStream {
  readonly open: (send: (event: string, data: string) => void, end: () => void) => () => void
  readonly unopened: () => void

  /**
   * @param open begins to send, and returns what stops it; `end`: nothing more comes. `data` is one line
   * @param unopened called in its place where there is no room for a stream, or nobody to read it
   */
  constructor(open: AdminStream['open'], unopened: AdminStream['unopened'] = () => {}) {
    this.open = open
    this.unopened = unopened
  }
}

interface RouteShape {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path, with `{name}` for each parameter. */
  readonly path: `/${string}`
  /** The roles that may use the route: at least one. */
  readonly roles: readonly [AdminRole, ...AdminRole[]]
  readonly summary: string
  readonly query?: TSchema
  readonly body?: TSchema
  /** The handler validates the body: `body` is for the documentation only. */
  readonly validatesBody?: true
  /** The tenant of the path may be missing: the request creates it, or its document does not compile here. */
  readonly tenantMayBeMissing?: true
  /** The body of the answer. undefined: the answer is 204. A string is sent as plain text. */
  readonly response?: TSchema
  /** A POST that only reads: a safe method in the sense of RFC 9110 section 9.2.1. */
  readonly isSafe?: true
  /** How long a POST may take, in milliseconds. Default: a minute. */
  readonly timeoutMs?: number
  /** The route may create a resource, and answers 201 then. */
  readonly creates?: true
  /** The route can answer with server-sent events: what they say. */
  readonly events?: string
}

export interface AdminRoute extends RouteShape {
  handle(request: AdminRequest, services: AdminServices): unknown
}

export const everyRole = ['platform-admin', 'tenant-admin', 'auditor', 'viewer'] as const
export const administrators = ['platform-admin', 'tenant-admin'] as const

/** Gives the handler the types of what the route takes. */
export const defineRoute = <Query extends TSchema, Body extends TSchema>(
  route: RouteShape & { readonly query?: Query; readonly body?: Body },
  handle: (request: AdminRequest<Static<Query>, Static<Body>>, services: AdminServices) => unknown
): AdminRoute => ({
  ...route,
  handle: (request, services) => handle(request as AdminRequest<Static<Query>, Static<Body>>, services)
})

/**
 * A body, or the parameters of a query, whose numbers are texts.
 * @throws AdminProblem invalid_request with every fault; unknown members are such
 */
export function checked(schema: TSchema, value: unknown, part: 'body' | 'query'): unknown {
  const report = createReport(() => undefined)
  const result = checkShape(schema, value, report, () => part === 'query')
  const errors = report.problems()
  if (errors.length === 0) return result
  const [first] = errors
  throw new AdminProblem(
    'invalid_request',
    `The ${part} cannot be used: ${first === undefined ? '' : problemLine(first)}`,
    'Correct what errors names; /openapi.json has the form.',
    { errors }
  )
}

/**
 * A tenant that the key is not for is answered like one that there is not. @throws AdminProblem not_found
 * @returns undefined only for routes that need none
 */
export function tenantOf(
  { tenantMayBeMissing }: Pick<AdminRoute, 'tenantMayBeMissing'>,
  { tenants }: Snapshot,
  administrator: Administrator,
  id = ''
): Tenant | undefined {
  const tenant = maySee(administrator, id) ? tenants.get(tenantId(id)) : undefined
  if (tenant === undefined && (tenantMayBeMissing !== true || !maySee(administrator, id))) throw noSuch('tenant')
  return tenant
}

export const changesSomething = ({ method, isSafe }: Pick<AdminRoute, 'method' | 'isSafe'>): boolean =>
  method !== 'GET' && isSafe !== true

export const maySee = ({ tenants }: Administrator, id: string): boolean => tenants === undefined || tenants.has(id)
