// The schema of the configuration: one object is the type, what a file is compared with, the defaults, the JSON Schema
// and docs/config.md. What one schema cannot say (dangling names, loopback) is in rules.ts.

import type { Static } from 'typebox'

import { optionalAdmin } from './admin.ts'
import { TelemetrySchema } from './telemetry.ts'
import { AuditSchema, LogSampleSchema, TenantAuditSchema } from './audit.ts'
import { optionalCallLimits } from './call-limits.ts'
import { EndpointSchema } from './endpoint.ts'
import { optionalPolicy } from './policy.ts'
import { LimitsSchema } from './limits.ts'
import { optionalResources } from './resources.ts'
import { BearerSchema } from './auth.ts'
import { choice, closedObject, defaulted, formatted, integer, list, record, scopes } from './parts.ts'
import { UpstreamSchema } from './upstream.ts'
import { optionalVault } from './vault.ts'
import { Type } from './type.ts'

/** Names that would be mistaken for the last segment of an endpoint path. */
export const reservedEndpointNames: readonly string[] = ['mcp', 'sse', 'messages']

const slug = {
  pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
  patternErrorMessage:
    'must be lower-case letters, digits and "-", start with a letter or a digit, and have at most 63 characters'
}

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

const EgressSchema = closedObject(
  {
    allow: list(
      Type.String({ format: 'cidr' }),
      'Ranges such as `10.1.0.0/16` that may be reached although they are not public.'
    ),
    ports: list(
      Type.Integer({ minimum: 1, maximum: 65_535 }),
      'Ports such as `8443` at which public addresses may be reached, beside 443.'
    )
  },
  {
    description:
      'Where the gateway may go for URLs that no operator wrote: those that upstreams and authorization servers name ' +
      'lead to public addresses only, unless their range is listed here.'
  }
)

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
  ),
  policy: optionalPolicy(
    'Who may use what ([policy.md](policy.md)). Not given: everybody who is let in may use everything.'
  ),
  limits: optionalCallLimits,
  resources: optionalResources,
  audit: defaulted(TenantAuditSchema),
  logSample: Type.Optional(
    Type.Union([LogSampleSchema], {
      description:
        'Writes arguments and results of some tool calls into the log ([logging.md](logging.md#a-sample-of-arguments' +
        '-and-results)). Not given: never. `{}` is one in a hundred.'
    })
  ),
  reserved: list(
    Type.String({
      pattern: '^(?:auth|audit|endpoints|limits|logSample|origins|policy|upstreams)(?:/[^/]+)?$',
      patternErrorMessage:
        'must be a member of a tenant, such as "policy", or a part of one, such as "limits/everybody"'
    }),
    'Parts of a tenant of the admin API that only a platform-admin changes or removes, such as ' +
      '`reserved: [policy, audit, limits/everybody]`. What the rules in them look at, a tenant-admin gives nobody ' +
      '([policy.md](policy.md#rules-that-a-tenant-admin-cannot-get-around)).'
  ),
  grantableScopes: scopes(
    'Scopes that a tenant-admin may give API keys although reserved rules look at them. Only a platform-admin ' +
      'changes this list.'
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
    trustedProxies: list(
      Type.String({ format: 'cidr' }),
      'Networks of proxies in front, such as `10.0.0.0/8`, whose `X-Forwarded-For` is believed: the address of a ' +
        'client, for conditions of rules, the log and the audit log, is then the last one that is not among them. ' +
        'Each of them must add the address of whoever connects to it.'
    ),
    store: defaulted(
      Type.String({
        format: 'store',
        default: 'file:./data/gatehouse.db',
        description:
          'Where sessions are stored: `file:PATH` (SQLite; relative to this file), `memory:`, ' +
          '`redis://HOST:PORT/DB`, `redis+sentinel://HOST:PORT,HOST:PORT/NAME` or ' +
          '`redis+cluster://HOST:PORT,HOST:PORT`; `rediss…` for TLS (docs/storage.md).'
      })
    ),
    logLevel: choice(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'info',
      'The least severe level that is logged.'
    ),
    vault: optionalVault,
    egress: defaulted(EgressSchema),
    limits: defaulted(LimitsSchema),
    telemetry: Type.Optional(
      Type.Union([TelemetrySchema], {
        description:
          'Where traces, metrics and the log are sent ([tracing.md](tracing.md)). Not given: nowhere, and nothing ' +
          'is loaded for it.'
      })
    ),
    pseudonyms: Type.Optional(
      Type.Union(
        [
          closedObject(
            {
              key: Type.String({
                minLength: 32,
                maxLength: 512,
                description: 'A secret of 32 characters or more; who has it can find out whose a pseudonym is.'
              })
            },
            { title: 'pseudonyms' }
          )
        ],
        {
          description:
            'Shows people and API keys under pseudonyms in the log, in traces and among live calls ' +
            '([logging.md](logging.md#pseudonyms)). Not given: by their names.'
        }
      )
    ),
    admin: optionalAdmin,
    audit: defaulted(
      Type.Union([Type.Literal('none', { title: 'none' }), AuditSchema], {
        default: 'none',
        description:
          'Records who did what, so that it cannot be altered unnoticed ([audit.md](audit.md)). `{}` is enough.'
      })
    ),
    tenants: record(slug, TenantSchema, {
      description:
        'The organisations that this gateway serves, by id. Tenants share nothing. `{}` where the admin API makes ' +
        'them all.'
    })
  },
  { title: 'Gatehouse configuration' }
)

/** A configuration of the right shape, with its defaults. */
export type ConfigInput = Static<typeof ConfigSchema>
export type TenantInput = ConfigInput['tenants'][string]
