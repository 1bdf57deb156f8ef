// What the schema is made of, and the larger parts of a tenant: `auth`, who may call, and `upstreams`, in the words of
// mcp.json.

import type { TProperties, TSchema, TSchemaOptions } from 'typebox'
import { Type } from './type.ts'

const MiB = 1024 * 1024
export const minuteMs = 60_000
export const hourMs = 60 * minuteMs

/** May be absent in a file, and never is after checkShape, which puts the default in its place. */
export const defaulted = <Schema extends TSchema>(schema: Schema): Schema => Type.Optional(schema)

export const closedObject = <Properties extends TProperties>(properties: Properties, options?: TSchemaOptions) =>
  Type.Object(properties, { additionalProperties: false, ...options })

export const integer = (minimum: number, maximum: number, byDefault: number, description: string) =>
  defaulted(Type.Integer({ minimum, maximum, default: byDefault, description }))

export const formatted = (format: string, description: string) => Type.String({ format, description })

export const choice = <const Value extends string>(values: readonly Value[], byDefault: Value, description: string) =>
  defaulted(Type.Enum([...values], { default: byDefault, description }))

export const list = <Item extends TSchema>(items: Item, description: string) =>
  defaulted(Type.Array(items, { default: [], description }))

/** A map whose keys have this pattern or format. */
export const record = <Value extends TSchema>(names: TSchemaOptions, value: Value, options: TSchemaOptions) =>
  Type.Record(Type.String(), value, { propertyNames: Type.String(names), ...options })

const tagName = {
  pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,62}$',
  patternErrorMessage: 'must be letters, digits, "_", "." and "-", start with a letter, and have at most 63 characters'
}

const maxPatternLength = 512
/** In one list of a rule or tag. */
const maxPatterns = 1_000

export const patterns = (description: string) =>
  Type.Array(Type.String({ maxLength: maxPatternLength }), { minItems: 1, maxItems: maxPatterns, description })

const sharedSecret =
  'is refused: with HMAC whoever can verify a token can also make one. Have the issuer sign with ES256, EdDSA, ' +
  'PS256 or RS256'

export const scopes = (description: string) =>
  list(
    Type.String({
      // RFC 6749 appendix A.4
      pattern: '^[\\x21\\x23-\\x5B\\x5D-\\x7E]+$',
      patternErrorMessage: 'must be one scope: visible characters without spaces, quotes and backslashes'
    }),
    description
  )

export const IssuerSchema = closedObject({
  issuer: formatted('issuer', 'The exact `iss` of its tokens. Keys and metadata are discovered from it.'),
  jwksUri: Type.Optional(formatted('jwks-url', 'Where its public keys are, to use instead of discovery.')),
  algorithms: defaulted(
    Type.Array(
      // Only the issuer has the secret half. With HMAC and `none`, whoever verifies could also sign (RFC 8725 section
      // 3.1).
      Type.Enum(['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'] as const, {
        refused: {
          HS256: sharedSecret,
          HS384: sharedSecret,
          HS512: sharedSecret,
          none: 'is refused: such tokens are not signed at all'
        }
      }),
      {
        minItems: 1,
        default: ['ES256', 'ES384', 'EdDSA', 'PS256', 'RS256'],
        description: 'Signature algorithms that are accepted.'
      }
    )
  ),
  requireTyp: defaulted(
    Type.Boolean({
      default: true,
      description:
        'Accept only tokens of type `at+jwt` (RFC 9068). Set it to false for an issuer that writes `JWT` or no type.'
    })
  ),
  audiences: list(
    Type.String({ format: 'audience' }),
    'Further values that `aud` may contain. Normally none: a token must name the URL of the endpoint and ' +
      'nothing else. Some identity providers add a value of their own, such as their userinfo URL: list it ' +
      'here.'
  ),
  maxLifetimeSeconds: integer(60, 31_536_000, 86_400, 'Tokens with a longer lifetime are refused.')
})

export const KeySchema = closedObject({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}$',
    patternErrorMessage:
      'must be letters, digits, "_", ".", "@" and "-", start with a letter or a digit, and have at most 63 ' +
      'characters',
    description: 'Who holds the key. Appears in the log and in audit records.'
  }),
  key: Type.Optional(
    formatted(
      'api-key',
      'The key, at least 16 characters, preferably as `${NAME}` or `${file:PATH}`. Give either this or sha256.'
    )
  ),
  sha256: Type.Optional(
    Type.String({
      pattern: '^[0-9a-fA-F]{64}$',
      patternErrorMessage: 'must be the SHA-256 of the key: 64 hexadecimal digits',
      description: 'SHA-256 of the key in hexadecimal, to keep the key itself out of the file.'
    })
  ),
  scopes: scopes('Scopes that the holder has, such as `mcp`.')
})

export const BearerSchema = closedObject(
  {
    issuers: list(IssuerSchema, 'Issuers of access tokens (JWT).'),
    keys: list(KeySchema, 'API keys.'),
    requiredScopes: scopes('A caller needs all of these to use an endpoint of the tenant.'),
    leewaySeconds: integer(0, 60, 30, 'How far the clocks of the issuer and the gateway may differ.')
  },
  { title: 'issuers and keys' }
)

const common = (connectMs: number) => ({
  isolation: choice(
    ['session', 'principal', 'shared'],
    'session',
    'Who shares a connection. `session`: each session has its own. `principal`: the sessions of one caller ' +
      'share one. `shared`: all callers share one; only for servers that keep no state and send no requests to ' +
      'clients.'
  ),
  era: choice(
    ['auto', 'legacy', 'modern'],
    'auto',
    'Which revisions the gateway uses with it. `auto`: found out by asking the server; one that knows both is spoken ' +
      'to in that of its client, or in the older one where a client can be asked there. `legacy`: those with a ' +
      'handshake, up to 2025-11-25. `modern`: those without one, from 2026-07-28 on. Naming one saves the ' +
      'request that finds out, and the other is never tried.'
  ),
  connectMs: integer(100, hourMs, connectMs, 'How long starting or connecting may take, handshake included.'),
  timeoutMs: integer(
    100,
    24 * hourMs,
    10 * minuteMs,
    'A call fails when the upstream sends nothing for it for this long.'
  ),
  maxCalls: integer(
    1,
    100_000,
    1024,
    'Calls that may run at once at this upstream, at each gateway process; one caller may have three quarters of ' +
      'them, and always one. A call beyond that is refused with `too_many`. Lists and handshakes are not counted.'
  ),
  idleMs: integer(100, 24 * hourMs, 5 * minuteMs, 'An unused connection is closed after this time.'),
  maxMessageBytes: integer(1024, 1024 * MiB, 16 * MiB, 'Largest message that the gateway accepts from the upstream.'),
  disabled: defaulted(
    Type.Boolean({
      default: false,
      description: 'Leave this upstream out everywhere. The variables that it refers to need not be set.'
    })
  ),
  description: Type.Optional(Type.String({ maxLength: 2000, description: 'For people who read this file.' })),
  tags: defaulted(
    record(tagName, patterns(''), {
      default: {},
      description:
        'What rules may call its tools, prompts and resources ([policy.md](policy.md)): a tag such as `readOnly` or ' +
        '`destructive`, and the names of those that have it; `*` stands for any characters.'
    })
  ),
  trustAnnotations: defaulted(
    Type.Boolean({
      default: false,
      description:
        'Take the word of the server for what its tools do: `readOnlyHint`, `destructiveHint`, `idempotentHint` and ' +
        '`openWorldHint` that it sets to true are then the tags `readOnly`, `destructive`, `idempotent` and ' +
        '`openWorld`.'
    })
  )
})

export const StdioSchema = closedObject(
  {
    type: Type.Optional(Type.Enum(['stdio'] as const, { description: 'May be left out.' })),
    command: formatted('command', 'The program. It is started without a shell.'),
    args: list(Type.String({ format: 'no-nul' }), 'Its arguments, one per entry. Nothing is split or expanded.'),
    env: defaulted(
      record(
        {
          pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
          patternErrorMessage:
            'must be the name of an environment variable: letters, digits and "_", not starting with a digit'
        },
        formatted('no-nul', ''),
        {
          default: {},
          description:
            'Its environment in addition to PATH, HOME, LANG and the like. It does not inherit the environment of ' +
            'the gateway.'
        }
      )
    ),
    cwd: Type.Optional(
      formatted(
        'command',
        'Its working directory, relative to this file. Default: the working directory of the gateway.'
      )
    ),
    ...common(30_000)
  },
  { title: 'stdio upstream', description: 'A process that speaks MCP over its standard input and output.' }
)

export const HttpSchema = closedObject(
  {
    type: choice(
      ['http', 'streamable-http', 'streamableHttp', 'sse'],
      'http',
      '`http`: Streamable HTTP, or HTTP+SSE if the server speaks only that. `streamable-http` (or ' +
        '`streamableHttp`) and `sse` select one of the two, and the other is not tried.'
    ),
    url: formatted(
      'upstream-url',
      'Its MCP endpoint, `https://` or `http://`; for HTTP+SSE, the URL of its event stream.'
    ),
    headers: defaulted(
      record({ format: 'header-name' }, Type.String({ format: 'header-value' }), {
        default: {},
        description: 'Headers to send with every request. Those of the connection and of MCP itself are refused.'
      })
    ),
    checkAfterMs: integer(
      0,
      hourMs,
      30_000,
      'When the server has answered nothing for this long while a request waits, a handshake finds out whether it ' +
        'still answers. If not, further calls are refused at once until it does. 0: never.'
    ),
    ...common(10_000)
  },
  { title: 'HTTP upstream', description: 'A server that speaks MCP over HTTP.' }
)

export const UpstreamSchema = Type.Union([StdioSchema, HttpSchema])
