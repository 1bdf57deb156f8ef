// One entry under `upstreams`: a process that speaks over stdio, or a URL that speaks MCP over HTTP. The words are those of mcp.json.

import { Type } from 'typebox'
import type { Static } from 'typebox'

import type { Isolation, UpstreamDefinition } from './snapshot.ts'

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
  isolation: Type.Optional(Type.Enum(['session', 'principal', 'shared'] as const, {
    default: upstreamDefaults.isolation,
    description: 'Who shares a connection: `session` nobody, `principal` the sessions of one caller, `shared` everybody (only for a server that keeps no state and asks nothing).'
  })),
  era: Type.Optional(Type.Enum(['auto', 'legacy', 'modern'] as const, {
    default: upstreamDefaults.era,
    description: 'Which revisions it is spoken to in. `auto`: found out by asking it. `legacy`: those with a handshake, up to 2025-11-25. `modern`: those without, from 2026-07-28 on. Naming one saves the question and never tries the other.'
  })),
  connectMs: Type.Optional(Type.Integer({ minimum: 100, maximum: hour, default: upstreamDefaults.connectMs[kind], description: 'How long starting or connecting may take, handshake included.' })),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 100, maximum: 24 * hour, default: upstreamDefaults.timeoutMs, description: 'A call that hears nothing from the upstream for so long is given up.' })),
  idleMs: Type.Optional(Type.Integer({ minimum: 100, maximum: 24 * hour, default: upstreamDefaults.idleMs, description: 'A connection that nobody uses is closed after this time.' })),
  maxMessageBytes: Type.Optional(Type.Integer({ minimum: 1024, maximum: 1024 * 1024 * 1024, default: upstreamDefaults.maxMessageBytes, description: 'Largest message that is read from the upstream.' })),
  disabled: Type.Optional(Type.Boolean({ default: false, description: 'Leave this upstream out everywhere; variables it refers to need not be set.' })),
  description: Type.Optional(Type.String({ maxLength: 2000, description: 'For people who read this file.' }))
})

const plain = (description: string) => Type.String({ format: 'no-nul', description })

export const StdioSchema = Type.Object({
  type: Type.Optional(Type.Enum(['stdio'] as const, { description: 'May be left out.' })),
  command: Type.String({ format: 'command', description: 'The program. It is started without a shell.' }),
  args: Type.Optional(Type.Array(Type.String({ format: 'no-nul' }), { default: [], description: 'Its arguments, one by one; nothing is split or expanded.' })),
  env: Type.Optional(Type.Record(Type.String(), plain(''), {
    propertyNames: Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$', patternErrorMessage: 'must be the name of an environment variable: letters, digits and "_", not starting with a digit' }),
    default: {},
    description: 'Its environment besides PATH, HOME, LANG and the like. The environment of the gateway is not passed on.'
  })),
  cwd: Type.Optional(Type.String({ format: 'command', description: 'Its working directory; relative to this file. Default: that of the gateway.' })),
  ...common('stdio')
}, { additionalProperties: false, title: 'stdio upstream', description: 'A process of its own, spoken to over its standard input and output.' })

export const HttpSchema = Type.Object({
  type: Type.Optional(Type.Enum(['http', 'streamable-http', 'streamableHttp', 'sse'] as const, {
    default: 'http',
    description: '`http`: Streamable HTTP, or the older HTTP+SSE where the server turns out to speak only that. `streamable-http` (or `streamableHttp`) and `sse` name one of the two, and the other is not tried.'
  })),
  url: Type.String({ format: 'upstream-url', description: 'Its MCP endpoint, `https://` or `http://`; for HTTP+SSE, where its stream is opened.' }),
  headers: Type.Optional(Type.Record(Type.String(), Type.String({ format: 'header-value' }), {
    propertyNames: Type.String({ format: 'header-name' }),
    default: {},
    description: 'Sent with every request. Headers of the connection and of MCP itself are refused.'
  })),
  ...common('http')
}, { additionalProperties: false, title: 'HTTP upstream', description: 'A server that speaks MCP over HTTP.' })

export const UpstreamSchema = Type.Union([StdioSchema, HttpSchema])

export type UpstreamInput = Static<typeof UpstreamSchema>
export type StdioInput = Static<typeof StdioSchema>
export type HttpInput = Static<typeof HttpSchema>
