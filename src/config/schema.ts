// The schema of the configuration: one TypeBox object is the type, the validator, the defaults, the JSON Schema and
// docs/config.md. What one schema cannot say (dangling names, loopback) is in rules.ts.

import { Type, type Static } from 'typebox'

import {
  BearerSchema,
  choice,
  closedObject,
  defaulted,
  formatted,
  hourMs,
  integer,
  list,
  minuteMs,
  record,
  UpstreamSchema
} from './schema-tenant.ts'

/** Names that would be mistaken for the last segment of an endpoint path. */
export const reservedEndpointNames: readonly string[] = ['mcp', 'sse', 'messages']

const slug = {
  pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
  patternErrorMessage:
    'must be lower-case letters, digits and "-", start with a letter or a digit, and have at most 63 characters'
}
const prefix = (description: string) =>
  Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9_.-]{0,32}$',
      patternErrorMessage: 'must be at most 32 letters, digits, "_", "." or "-"',
      description
    })
  )

const ListenSchema = closedObject(
  {
    host: defaulted(
      Type.String({
        format: 'listen-host',
        default: '127.0.0.1',
        description: 'Address or name to bind. Anything but a loopback address needs publicUrl and authentication.'
      })
    ),
    port: integer(0, 65535, 8080, 'TCP port. 0 picks a free one, which the first line of output names.')
  },
  { description: 'Where the gateway listens.' }
)

const LimitsSchema = closedObject(
  {
    memoryBytes: Type.Optional(
      Type.Integer({
        minimum: 268_435_456,
        maximum: 1_099_511_627_776,
        description:
          'How much memory the process may use, in bytes (its resident set). What requests, answers, streams and ' +
          'subscriptions hold is counted and refused beyond it: one tenant may hold half of what the gateway itself ' +
          'leaves, one caller half of that. Default: three quarters of the memory of the container or machine; less ' +
          'where the heap of Node (`--max-old-space-size`) is smaller.'
      })
    ),
    bodyBytes: integer(1024, 268_435_456, 4_194_304, 'Largest request body, in bytes.'),
    sessionIdleMs: integer(100, 30 * 24 * hourMs, 30 * minuteMs, 'A session ends after this time without a request.'),
    sessionMaxMs: integer(100, 365 * 24 * hourMs, 24 * hourMs, 'A session ends after this time even if it is in use.'),
    sessionsPerPrincipal: integer(
      1,
      1_000_000,
      1000,
      'Sessions that one caller may have at once. Revision 2026-07-28 has no sessions: there it limits the sets ' +
        'of upstream sessions of one caller at one gateway process (docs/modern-to-legacy.md), and a caller may ' +
        'have 100 listen streams.'
    ),
    callsPerSession: integer(
      1,
      100_000,
      256,
      'Requests that may run at once for one session, or for one caller of revision 2026-07-28, which has no sessions.'
    ),
    requestsPerSecondPerPrincipal: integer(
      1,
      1_000_000,
      1000,
      'HTTP requests that one caller (issuer and subject) may send to one gateway process, for long; five times as ' +
        'many may come at once after a pause. Each message of a batch counts.'
    ),
    requestsPerSecondPerTenant: integer(1, 1_000_000, 2000, 'The same for all callers of one tenant together.'),
    callsPerPrincipal: integer(
      1,
      1_000_000,
      1_024,
      'Requests that may run at once for one person (issuer and subject), over all sessions and clients.'
    ),
    callsPerTenant: integer(1, 1_000_000, 4_096, 'Requests that may run at once for all callers of one tenant.'),
    batchMessages: integer(1, 10_000, 50, 'Messages in one JSON-RPC batch (revision 2025-03-26 only).'),
    processes: integer(
      1,
      100_000,
      256,
      'stdio processes that may run at once, over all tenants. Half of them are kept for tenants that have few: each ' +
        'is sure of an equal part of that half, but of one at least while there are any. Calls leave an eighth to ' +
        'lists.'
    ),
    processesPerTenant: integer(
      1,
      100_000,
      128,
      'stdio processes that may run at once for the callers of one tenant. One caller (issuer and subject) may ' +
        'have three quarters of them, but always at least one. Processes of upstreams with `isolation: shared` are ' +
        'not counted, nor are those that lists are read from: one per upstream, and at most 64 per tenant for ' +
        'clients that declare capabilities.'
    ),
    coldStartMs: integer(
      0,
      5 * minuteMs,
      1500,
      'How long initialize and list requests wait for upstreams whose lists are not known yet.'
    ),
    drainMs: integer(0, hourMs, 30_000, 'How long shutdown waits for running calls.'),
    pageSize: integer(1, 100_000, 1000, 'Entries on one page of a list.'),
    streamMs: integer(
      0,
      hourMs,
      0,
      'How long one connection may stream the response of a call. After that it is closed, and the client is told ' +
        'to reconnect for the rest (clients of 2025-11-25 and later). For proxies that limit how long a response ' +
        'may take. 0: no limit.'
    )
  },
  { description: 'What one caller, one session or the whole process may use. Milliseconds and bytes.' }
)

const MemberSchema = closedObject(
  {
    upstream: Type.String({ description: 'Name of an upstream of this tenant.' }),
    prefix: prefix(
      'Put before the names of its tools and prompts. Empty: the names stay as they are. Default: the prefix of ' +
        'the endpoint, else the name of the upstream.'
    )
  },
  { title: 'member' }
)

export const EndpointSchema = closedObject({
  upstreams: Type.Array(Type.Union([Type.String({ title: 'name of an upstream' }), MemberSchema]), {
    minItems: 1,
    description: 'The upstreams behind this endpoint: names, or `{ upstream, prefix }`.'
  }),
  prefix: prefix(
    'Put before the names of the tools and prompts of every member. Empty: the names stay as they are. ' +
      'Default: the name of each upstream.'
  ),
  separator: defaulted(
    Type.String({
      pattern: '^[A-Za-z0-9_.-]{1,8}$',
      patternErrorMessage: 'must be 1 to 8 letters, digits, "_", "." or "-"',
      default: '__',
      description: 'Stands between a prefix and a name.'
    })
  ),
  instructions: Type.Optional(
    Type.String({
      maxLength: 20_000,
      description:
        'Instructions for the model, sent in the response to `initialize`. Default: the instructions of the ' +
        'upstreams.'
    })
  )
})

export const TenantSchema = closedObject({
  origins: list(
    Type.String({ format: 'origin' }),
    'Web origins whose pages may call, such as `https://claude.ai`. A request without an Origin header does ' +
      'not come from a web page and needs no entry.'
  ),
  auth: Type.Union([Type.Literal('none', { title: 'none' }), BearerSchema], {
    description:
      'Who may call: issuers and keys, or `none`, which is accepted only if listen.host is a loopback address.'
  }),
  upstreams: record(
    {
      pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$',
      patternErrorMessage:
        'must be letters, digits, "_", "." and "-", start with a letter or a digit, and have at most 63 characters'
    },
    UpstreamSchema,
    { description: 'The MCP servers of this tenant, by name. Entries of an `mcp.json` can be used unchanged.' }
  ),
  endpoints: Type.Optional(
    record(slug, EndpointSchema, {
      minProperties: 1,
      description:
        'The virtual MCP servers of this tenant, by name. `default` answers at `/t/{tenant}/mcp`, any other at ' +
        '`/t/{tenant}/{endpoint}/mcp`. Not given: `default` with all upstreams.'
    })
  )
})

export const ConfigSchema = closedObject(
  {
    listen: defaulted(ListenSchema),
    publicUrl: Type.Optional(
      formatted(
        'public-url',
        'The origin that clients use, such as `https://mcp.example.com`. Access tokens must be issued for it, ' +
          'and the metadata documents name it. Required unless listen.host is a loopback address, where it ' +
          'defaults to `http://host:port`.'
      )
    ),
    hosts: list(
      Type.String({ format: 'host-header' }),
      'Further names to accept in the Host header, such as `gatehouse.internal` or `10.0.0.5:8080`.'
    ),
    store: defaulted(
      Type.String({
        format: 'store',
        default: 'file:./data/gatehouse.db',
        description:
          'Where sessions are stored: `file:PATH` (SQLite; relative to this file), `memory:`, ' +
          '`redis://HOST:PORT/DB` or `rediss://…`.'
      })
    ),
    logLevel: choice(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'info',
      'The least severe level that is logged.'
    ),
    limits: defaulted(LimitsSchema),
    tenants: record(slug, TenantSchema, {
      minProperties: 1,
      description: 'The organisations that this gateway serves, by id. Tenants share nothing.'
    })
  },
  { title: 'Gatehouse configuration' }
)

/** A configuration of the right shape, with its defaults. */
export type ConfigInput = Static<typeof ConfigSchema>
export type TenantInput = ConfigInput['tenants'][string]
