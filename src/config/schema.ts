// The schema of the configuration: one TypeBox object is the type, the validator, the JSON Schema and docs/config.md.
// Parts that are long stand in schema-auth.ts and schema-upstreams.ts. What one schema cannot say (dangling names, loopback) is in rules.ts.

import { Type } from 'typebox'
import type { Static } from 'typebox'

import { AuthSchema } from './schema-auth.ts'
import { UpstreamSchema, upstreamNamePattern } from './schema-upstreams.ts'
import type { Limits } from './snapshot.ts'

const KiB = 1024
const MiB = 1024 * KiB
const second = 1000
const minute = 60 * second
const hour = 60 * minute

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = typeof logLevels[number]

export const defaults = {
  host: '127.0.0.1',
  port: 8080,
  store: 'file:./data/gatehouse.db',
  logLevel: 'info' as LogLevel,
  separator: '__',
  limits: {
    bodyBytes: 4 * MiB,
    sessionIdleMs: 30 * minute,
    sessionMaxMs: 24 * hour,
    sessionsPerPrincipal: 1000,
    callsPerSession: 256,
    batchMessages: 50,
    processes: 256,
    processesPerTenant: 128,
    coldStartMs: 1500,
    drainMs: 30 * second,
    pageSize: 1000,
    streamMs: 0
  } satisfies Limits
} as const

/** Names that would be mistaken for the last segment of an endpoint path. */
export const reservedEndpointNames: readonly string[] = ['mcp', 'sse', 'messages']

const slugPattern = '^[a-z0-9][a-z0-9-]{0,62}$'
const slugMessage = 'must be lower-case letters, digits and "-", start with a letter or a digit, and have at most 63 characters'
const prefix = (description: string) => Type.String({
  pattern: '^[A-Za-z0-9_.-]{0,32}$',
  patternErrorMessage: 'must be at most 32 letters, digits, "_", "." or "-"',
  description
})

const ListenSchema = Type.Object({
  host: Type.Optional(Type.String({ format: 'listen-host', default: defaults.host, description: 'Address or name to bind. Anything but loopback needs publicUrl and authentication.' })),
  port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65535, default: defaults.port, description: 'TCP port. 0 takes a free one; the ready line names it.' }))
}, { additionalProperties: false, description: 'Where the gateway listens.' })

const limit = (name: keyof Limits, minimum: number, maximum: number, description: string) =>
  Type.Optional(Type.Integer({ minimum, maximum, default: defaults.limits[name], description }))

const LimitsSchema = Type.Object({
  bodyBytes: limit('bodyBytes', KiB, 256 * MiB, 'Largest request body, in bytes.'),
  sessionIdleMs: limit('sessionIdleMs', 100, 30 * 24 * hour, 'A session ends after this time without a request.'),
  sessionMaxMs: limit('sessionMaxMs', 100, 365 * 24 * hour, 'A session ends after this time whatever it does.'),
  sessionsPerPrincipal: limit('sessionsPerPrincipal', 1, 1_000_000, 'Sessions that one caller may have at once. Revision 2026-07-28 has none: there it is the conversations and sets of capabilities of one caller at one process (docs/bridge.md), and 100 listen streams.'),
  callsPerSession: limit('callsPerSession', 1, 100_000, 'Requests of one session, or of one caller of 2026-07-28, which has no sessions, that may run at once.'),
  batchMessages: limit('batchMessages', 1, 10_000, 'Messages in one JSON-RPC batch (revision 2025-03-26 only).'),
  processes: limit('processes', 1, 100_000, 'stdio processes at once, over all tenants.'),
  processesPerTenant: limit('processesPerTenant', 1, 100_000, 'stdio processes at once that serve the callers of one tenant. One caller (issuer and subject) may have three quarters of them, at least one. Not counted: what `isolation: shared` shares, and what lists are read from: one process per upstream, and at most 64 of a tenant for clients that declare capabilities.'),
  coldStartMs: limit('coldStartMs', 0, 5 * minute, 'How long initialize and the lists wait for upstreams that are not known yet.'),
  drainMs: limit('drainMs', 0, hour, 'How long shutdown waits for calls in flight.'),
  pageSize: limit('pageSize', 1, 100_000, 'Entries on one page of a list.'),
  streamMs: limit('streamMs', 0, hour, 'How long one connection streams the answer of a call before it is closed and the client told to come back for the rest (clients of 2025-11-25 and later). For proxies with a longest response time. 0: as long as it takes.')
}, { additionalProperties: false, description: 'What one caller, one session or the whole process may use. Milliseconds and bytes.' })

const MemberSchema = Type.Object({
  upstream: Type.String({ description: 'Name of an upstream of this tenant.' }),
  prefix: Type.Optional(prefix('What its names begin with here. Empty: names untouched. Default: the prefix of the endpoint, else the name of the upstream.'))
}, { additionalProperties: false, title: 'member' })

export const EndpointSchema = Type.Object({
  upstreams: Type.Array(Type.Union([Type.String({ title: 'name of an upstream' }), MemberSchema]), {
    minItems: 1,
    description: 'The upstreams behind this endpoint: names, or `{ upstream, prefix }`.'
  }),
  prefix: Type.Optional(prefix('What the names of every member begin with. Empty: names untouched. Default: each upstream\'s own name.')),
  separator: Type.Optional(Type.String({
    pattern: '^[A-Za-z0-9_.-]{1,8}$',
    patternErrorMessage: 'must be 1 to 8 letters, digits, "_", "." or "-"',
    default: defaults.separator,
    description: 'Stands between a prefix and a name.'
  })),
  instructions: Type.Optional(Type.String({ maxLength: 20_000, description: 'What `initialize` tells the model about this endpoint. Default: what the upstreams say.' }))
}, { additionalProperties: false })

export const TenantSchema = Type.Object({
  origins: Type.Optional(Type.Array(Type.String({ format: 'origin' }), {
    default: [],
    description: 'Browser origins that may call, such as `https://claude.ai`. A request without an Origin header is no browser and needs no entry.'
  })),
  auth: AuthSchema,
  upstreams: Type.Record(Type.String(), UpstreamSchema, {
    propertyNames: Type.String({
      pattern: upstreamNamePattern,
      patternErrorMessage: 'must be letters, digits, "_", "." and "-", start with a letter or a digit, and have at most 63 characters'
    }),
    description: 'The MCP servers of this tenant, by name. Entries of an `mcp.json` fit as they are.'
  }),
  endpoints: Type.Optional(Type.Record(Type.String(), EndpointSchema, {
    minProperties: 1,
    propertyNames: Type.String({ pattern: slugPattern, patternErrorMessage: slugMessage }),
    description: 'The virtual MCP servers of this tenant, by name. `default` answers at `/t/{tenant}/mcp`, any other at `/t/{tenant}/{endpoint}/mcp`. Not given: `default` with all upstreams.'
  }))
}, { additionalProperties: false })

export const ConfigSchema = Type.Object({
  listen: Type.Optional(ListenSchema),
  publicUrl: Type.Optional(Type.String({
    format: 'public-url',
    description: 'The origin that clients see, such as `https://mcp.example.com`: tokens are issued for it and metadata name it. Needed unless listen.host is loopback; there it defaults to `http://host:port`.'
  })),
  hosts: Type.Optional(Type.Array(Type.String({ format: 'host-header' }), { default: [], description: 'Further names that the Host header may carry, such as `gatehouse.internal` or `10.0.0.5:8080`.' })),
  store: Type.Optional(Type.String({
    format: 'store',
    default: defaults.store,
    description: 'Where sessions live: `file:PATH` (sqlite; relative to this file), `memory:`, `redis://HOST:PORT/DB` or `rediss://…`.'
  })),
  logLevel: Type.Optional(Type.Enum(logLevels, { default: defaults.logLevel, description: 'The least severe level that is logged.' })),
  limits: Type.Optional(LimitsSchema),
  tenants: Type.Record(Type.String(), TenantSchema, {
    minProperties: 1,
    propertyNames: Type.String({ pattern: slugPattern, patternErrorMessage: slugMessage }),
    description: 'The organisations that this gateway serves, by id. Nothing crosses tenants.'
  })
}, { additionalProperties: false, title: 'Gatehouse configuration' })

/** A configuration that has the right shape; defaults are not applied yet. */
export type ConfigInput = Static<typeof ConfigSchema>
export type TenantInput = Static<typeof TenantSchema>
export type EndpointInput = Static<typeof EndpointSchema>
