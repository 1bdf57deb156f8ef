// The schema of the configuration: one TypeBox object is the type, the validator, the JSON Schema and docs/config.md.
// Parts that are long stand in schema-auth.ts and schema-upstreams.ts. What one schema cannot say (dangling names,
// loopback) is in rules.ts.

import { Type, type Static } from 'typebox'

import { AuthSchema } from './schema-auth.ts'
import { LimitsSchema } from './schema-limits.ts'
import { UpstreamSchema, upstreamNamePattern } from './schema-upstreams.ts'

const processLogLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type ProcessLogLevel = (typeof processLogLevels)[number]

export const configDefaults = {
  host: '127.0.0.1',
  port: 8080,
  store: 'file:./data/gatehouse.db',
  logLevel: 'info' as ProcessLogLevel,
  separator: '__'
} as const

/** Names that would be mistaken for the last segment of an endpoint path. */
export const reservedEndpointNames: readonly string[] = ['mcp', 'sse', 'messages']

const slugPattern = '^[a-z0-9][a-z0-9-]{0,62}$'
const slugMessage =
  'must be lower-case letters, digits and "-", start with a letter or a digit, and have at most 63 characters'
const prefix = (description: string) =>
  Type.String({
    pattern: '^[A-Za-z0-9_.-]{0,32}$',
    patternErrorMessage: 'must be at most 32 letters, digits, "_", "." or "-"',
    description
  })

const ListenSchema = Type.Object(
  {
    host: Type.Optional(
      Type.String({
        format: 'listen-host',
        default: configDefaults.host,
        description: 'Address or name to bind. Anything but a loopback address needs publicUrl and authentication.'
      })
    ),
    port: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 65535,
        default: configDefaults.port,
        description: 'TCP port. 0 picks a free one, which the first line of output names.'
      })
    )
  },
  { additionalProperties: false, description: 'Where the gateway listens.' }
)

const MemberSchema = Type.Object(
  {
    upstream: Type.String({ description: 'Name of an upstream of this tenant.' }),
    prefix: Type.Optional(
      prefix(
        'Put before the names of its tools and prompts. Empty: the names stay as they are. Default: the prefix of ' +
          'the endpoint, else the name of the upstream.'
      )
    )
  },
  { additionalProperties: false, title: 'member' }
)

export const EndpointSchema = Type.Object(
  {
    upstreams: Type.Array(Type.Union([Type.String({ title: 'name of an upstream' }), MemberSchema]), {
      minItems: 1,
      description: 'The upstreams behind this endpoint: names, or `{ upstream, prefix }`.'
    }),
    prefix: Type.Optional(
      prefix(
        'Put before the names of the tools and prompts of every member. Empty: the names stay as they are. ' +
          'Default: the name of each upstream.'
      )
    ),
    separator: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9_.-]{1,8}$',
        patternErrorMessage: 'must be 1 to 8 letters, digits, "_", "." or "-"',
        default: configDefaults.separator,
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
  },
  { additionalProperties: false }
)

export const TenantSchema = Type.Object(
  {
    origins: Type.Optional(
      Type.Array(Type.String({ format: 'origin' }), {
        default: [],
        description:
          'Web origins whose pages may call, such as `https://claude.ai`. A request without an Origin header does ' +
          'not come from a web page and needs no entry.'
      })
    ),
    auth: AuthSchema,
    upstreams: Type.Record(Type.String(), UpstreamSchema, {
      propertyNames: Type.String({
        pattern: upstreamNamePattern,
        patternErrorMessage:
          'must be letters, digits, "_", "." and "-", start with a letter or a digit, and have at most 63 characters'
      }),
      description: 'The MCP servers of this tenant, by name. Entries of an `mcp.json` can be used unchanged.'
    }),
    endpoints: Type.Optional(
      Type.Record(Type.String(), EndpointSchema, {
        minProperties: 1,
        propertyNames: Type.String({ pattern: slugPattern, patternErrorMessage: slugMessage }),
        description:
          'The virtual MCP servers of this tenant, by name. `default` answers at `/t/{tenant}/mcp`, any other at ' +
          '`/t/{tenant}/{endpoint}/mcp`. Not given: `default` with all upstreams.'
      })
    )
  },
  { additionalProperties: false }
)

export const ConfigSchema = Type.Object(
  {
    listen: Type.Optional(ListenSchema),
    publicUrl: Type.Optional(
      Type.String({
        format: 'public-url',
        description:
          'The origin that clients use, such as `https://mcp.example.com`. Access tokens must be issued for it, ' +
          'and the metadata documents name it. Required unless listen.host is a loopback address, where it ' +
          'defaults to `http://host:port`.'
      })
    ),
    hosts: Type.Optional(
      Type.Array(Type.String({ format: 'host-header' }), {
        default: [],
        description: 'Further names to accept in the Host header, such as `gatehouse.internal` or `10.0.0.5:8080`.'
      })
    ),
    store: Type.Optional(
      Type.String({
        format: 'store',
        default: configDefaults.store,
        description:
          'Where sessions are stored: `file:PATH` (SQLite; relative to this file), `memory:`, ' +
          '`redis://HOST:PORT/DB` or `rediss://…`.'
      })
    ),
    logLevel: Type.Optional(
      Type.Enum(processLogLevels, {
        default: configDefaults.logLevel,
        description: 'The least severe level that is logged.'
      })
    ),
    limits: Type.Optional(LimitsSchema),
    tenants: Type.Record(Type.String(), TenantSchema, {
      minProperties: 1,
      propertyNames: Type.String({ pattern: slugPattern, patternErrorMessage: slugMessage }),
      description: 'The organisations that this gateway serves, by id. Tenants share nothing.'
    })
  },
  { additionalProperties: false, title: 'Gatehouse configuration' }
)

/** A configuration that has the right shape; defaults are not applied yet. */
export type ConfigInput = Static<typeof ConfigSchema>
export type TenantInput = Static<typeof TenantSchema>
export type EndpointInput = Static<typeof EndpointSchema>
