// The schema of `upstreams` of a tenant, in the words of mcp.json and ours.

import {
  choice,
  closedObject,
  defaulted,
  formatted,
  hourMs,
  integer,
  list,
  MiB,
  minuteMs,
  patterns,
  record,
  requiredScopes
} from './parts.ts'
import { Type } from './type.ts'
import { optionalStdioAuth, optionalUpstreamAuth } from './upstream-auth.ts'

const tagName = {
  pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,62}$',
  patternErrorMessage: 'must be letters, digits, "_", "." and "-", start with a letter, and have at most 63 characters'
}

/** The hash of a connection leaves it out: it is then the one of versions that do not know the key. */
export const defaultMaxTimeoutMs = 6 * hourMs

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
    'Which revisions the gateway uses with it. `auto`: found out by asking the server; one that knows ' +
      'both is spoken to in that of its client, or in the one in which its clients can be asked. ' +
      '`legacy`: those with a handshake, up to 2025-11-25. `modern`: those without one, from 2026-07-28 ' +
      'on. Naming one saves the request that finds out, and the other is never tried.'
  ),
  connectMs: integer(100, hourMs, connectMs, 'How long starting or connecting may take, handshake included.'),
  timeoutMs: integer(
    100,
    24 * hourMs,
    10 * minuteMs,
    'A call fails when the upstream sends nothing for it for this long.'
  ),
  maxTimeoutMs: integer(
    100,
    7 * 24 * hourMs,
    defaultMaxTimeoutMs,
    'A call fails when it has run for this long and the upstream still sends something for it, such as progress, or ' +
      'asks its client.'
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
  requires: requiredScopes(
    'Scopes that a call of its tools, prompts or resources needs: `requires: { scopes: [files] }`.'
  ),
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
            'Its environment in addition to PATH, HOME, LANG and the like, and to what programs need to reach the ' +
            'network (HTTPS_PROXY, NODE_EXTRA_CA_CERTS, SSL_CERT_FILE and their kin). It does not inherit the rest ' +
            'of the environment of the gateway.'
        }
      )
    ),
    inheritEnv: list(
      Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
      'Names of further variables that it inherits from the environment of the gateway, where they are set.'
    ),
    cwd: Type.Optional(
      formatted(
        'command',
        'Its working directory, relative to this file. Default: the working directory of the gateway.'
      )
    ),
    auth: optionalStdioAuth,
    memoryBytes: Type.Optional(
      Type.Integer({
        minimum: 16 * MiB,
        maximum: 1_099_511_627_776,
        description:
          'How much memory one server may take, in bytes, with all processes that it has started; memory that ' +
          'they share counts once, what is read from files does not. Beyond it the server is ended, ' +
          'and the calls that it ran fail. ' +
          'Read once a second from /proc (Linux). Default: no limit but `limits.processBytesPerTenant`.'
      })
    ),
    maxProcesses: integer(
      1,
      100_000,
      200,
      'Processes that one server may be, with all that it has started. Beyond it the server is ended, and ' +
        'the calls that it ran fail.'
    ),
    warm: integer(
      0,
      16,
      0,
      'How many processes are started ahead, for who comes next: a session then does not wait for the start ' +
        '([upstreams.md](upstreams.md#starting-ahead)). Not where one process is shared, or has secrets of one person.'
    ),
    sandbox: choice(
      ['off', 'preferred', 'required'],
      'off',
      'Whether the server runs in a sandbox made by bubblewrap (`bwrap`), in which it sees the programs of ' +
        'the system, read-only, a /tmp and a home folder of its own that end with it, `cwd` and its ' +
        'command read-only, what the next three say, and no other process: not the gateway, its ' +
        'configuration, its secrets or its store. `required`: it does not start without one. `preferred`: ' +
        'where the system offers none, it runs without one, and the log says so.'
    ),
    sandboxRead: list(
      formatted('command', ''),
      'Files and folders that it may read in its sandbox, relative to this file. They must exist.'
    ),
    sandboxWrite: list(
      formatted('command', ''),
      'Files and folders that it may read and write in its sandbox, relative to this file, such as the ' +
        'cache of `npx`. They must exist.'
    ),
    sandboxNetwork: defaulted(
      Type.Boolean({ default: true, description: 'Whether it may use the network from its sandbox.' })
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
        description:
          'Headers to send with every request, which may say who calls (`${principal.subject}`, ' +
          '[connections.md](connections.md)). Those of the connection and of MCP itself are refused.'
      })
    ),
    auth: optionalUpstreamAuth,
    checkAfterMs: integer(
      0,
      hourMs,
      30_000,
      'When the server has answered nothing for this long while a request waits, a handshake finds out whether it ' +
        'still answers. If not, further calls are refused at once until it does. 0: never.'
    ),
    lendSessions: defaulted(
      Type.Boolean({
        default: true,
        description:
          'Whether other replicas may send calls in the session that one replica has at the server for a session of ' +
          'a client, in place of passing them to that replica ' +
          '([reliability.md](reliability.md#several-replicas-in-one-session-of-a-server-over-http)). `false` for ' +
          'servers behind a balancer that binds sessions to addresses.'
      })
    ),
    ...common(10_000)
  },
  { title: 'HTTP upstream', description: 'A server that speaks MCP over HTTP.' }
)

export const UpstreamSchema = Type.Union([StdioSchema, HttpSchema])
