// One entry under `upstreams`: a process that speaks over stdio, or a URL that speaks MCP over HTTP. The words are
// those of mcp.json.

import { Type, type Static } from 'typebox'

import type { Isolation, UpstreamDefinition } from '../snapshot.ts'

export const upstreamNamePattern = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'

export const upstreamDefaults = {
  isolation: 'session' as Isolation,
  era: 'auto' as UpstreamDefinition['era'],
  connectMs: { stdio: 30_000, http: 10_000 },
  timeoutMs: 600_000,
  idleMs: 300_000,
  maxMessageBytes: 16 * 1024 * 1024
} as const

const hour = 3_600_000

const common = (kind: 'stdio' | 'http') => ({
  isolation: Type.Optional(
    Type.Enum(['session', 'principal', 'shared'] as const, {
      default: upstreamDefaults.isolation,
      description:
        'Who shares a connection. `session`: each session has its own. `principal`: the sessions of one caller ' +
        'share one. `shared`: all callers share one; only for servers that keep no state and send no requests to ' +
        'clients.'
    })
  ),
  era: Type.Optional(
    Type.Enum(['auto', 'legacy', 'modern'] as const, {
      default: upstreamDefaults.era,
      description:
        'Which revisions the gateway uses with it. `auto`: found out by asking the server. `legacy`: those with a ' +
        'handshake, up to 2025-11-25. `modern`: those without one, from 2026-07-28 on. Naming one saves the ' +
        'request that finds out, and the other is never tried.'
    })
  ),
  connectMs: Type.Optional(
    Type.Integer({
      minimum: 100,
      maximum: hour,
      default: upstreamDefaults.connectMs[kind],
      description: 'How long starting or connecting may take, handshake included.'
    })
  ),
  timeoutMs: Type.Optional(
    Type.Integer({
      minimum: 100,
      maximum: 24 * hour,
      default: upstreamDefaults.timeoutMs,
      description: 'A call fails when the upstream sends nothing for it for this long.'
    })
  ),
  idleMs: Type.Optional(
    Type.Integer({
      minimum: 100,
      maximum: 24 * hour,
      default: upstreamDefaults.idleMs,
      description: 'An unused connection is closed after this time.'
    })
  ),
  maxMessageBytes: Type.Optional(
    Type.Integer({
      minimum: 1024,
      maximum: 1024 * 1024 * 1024,
      default: upstreamDefaults.maxMessageBytes,
      description: 'Largest message that the gateway accepts from the upstream.'
    })
  ),
  disabled: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Leave this upstream out everywhere. The variables that it refers to need not be set.'
    })
  ),
  description: Type.Optional(Type.String({ maxLength: 2000, description: 'For people who read this file.' }))
})

const plain = (description: string) => Type.String({ format: 'no-nul', description })

export const StdioSchema = Type.Object(
  {
    type: Type.Optional(Type.Enum(['stdio'] as const, { description: 'May be left out.' })),
    command: Type.String({ format: 'command', description: 'The program. It is started without a shell.' }),
    args: Type.Optional(
      Type.Array(Type.String({ format: 'no-nul' }), {
        default: [],
        description: 'Its arguments, one per entry. Nothing is split or expanded.'
      })
    ),
    env: Type.Optional(
      Type.Record(Type.String(), plain(''), {
        propertyNames: Type.String({
          pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
          patternErrorMessage:
            'must be the name of an environment variable: letters, digits and "_", not starting with a digit'
        }),
        default: {},
        description:
          'Its environment in addition to PATH, HOME, LANG and the like. It does not inherit the environment of ' +
          'the gateway.'
      })
    ),
    cwd: Type.Optional(
      Type.String({
        format: 'command',
        description: 'Its working directory, relative to this file. Default: the working directory of the gateway.'
      })
    ),
    ...common('stdio')
  },
  {
    additionalProperties: false,
    title: 'stdio upstream',
    description: 'A process that speaks MCP over its standard input and output.'
  }
)

export const HttpSchema = Type.Object(
  {
    type: Type.Optional(
      Type.Enum(['http', 'streamable-http', 'streamableHttp', 'sse'] as const, {
        default: 'http',
        description:
          '`http`: Streamable HTTP, or HTTP+SSE if the server speaks only that. `streamable-http` (or ' +
          '`streamableHttp`) and `sse` select one of the two, and the other is not tried.'
      })
    ),
    url: Type.String({
      format: 'upstream-url',
      description: 'Its MCP endpoint, `https://` or `http://`; for HTTP+SSE, the URL of its event stream.'
    }),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String({ format: 'header-value' }), {
        propertyNames: Type.String({ format: 'header-name' }),
        default: {},
        description: 'Headers to send with every request. Those of the connection and of MCP itself are refused.'
      })
    ),
    ...common('http')
  },
  { additionalProperties: false, title: 'HTTP upstream', description: 'A server that speaks MCP over HTTP.' }
)

export const UpstreamSchema = Type.Union([StdioSchema, HttpSchema])

export type UpstreamInput = Static<typeof UpstreamSchema>
