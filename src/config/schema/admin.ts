// The schema of `admin`: the listener of the admin API, and who may use it.

import { IssuerSchema } from './auth.ts'
import { ProviderSchema } from './login.ts'
import { closedObject, defaulted, formatted, integer, list, record, scopesOrDefault } from './parts.ts'
import { Type } from './type.ts'

export const adminRoles = ['platform-admin', 'tenant-admin', 'auditor', 'viewer', 'metrics'] as const

export const AdminKeySchema = closedObject({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}$',
    patternErrorMessage:
      'must be letters, digits, "_", ".", "@" and "-", start with a letter or a digit, and have at most 63 characters',
    description: 'Who holds the key. Appears in the log with every change.'
  }),
  sha256: Type.String({
    pattern: '^[0-9a-fA-F]{64}$',
    patternErrorMessage: 'must be the SHA-256 of the key: 64 hexadecimal digits',
    description:
      'SHA-256 of the key in hexadecimal, as `gatehouse admin-key new` prints it. The key itself is not kept.'
  }),
  role: Type.Enum([...adminRoles], {
    description: 'What the holder may do; [admin-api.md](admin-api.md) has every route and who may use it.'
  }),
  tenants: Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      description:
        'The tenants that the key is for. Required for `tenant-admin`. For `auditor` and `viewer`, not given: all. ' +
        'A `platform-admin` has all, and so have `metrics`.'
    })
  )
})

const names = (description: string) => Type.Optional(Type.Array(Type.String(), { minItems: 1, description }))

const AdminAccessSchema = closedObject({
  role: Type.Enum([...adminRoles], { description: 'What they may do, as of a key.' }),
  tenants: Type.Optional(Type.Array(Type.String(), { minItems: 1, description: 'For which tenants, as of a key.' })),
  issuers: names('Of these issuers.'),
  subjects: names('These people.'),
  groups: names('Who is in one of these groups.'),
  roles: names('Who has one of these roles at the issuer.')
})

const { issuer, clientId, clientSecret, subjectClaim, groupsClaim, rolesClaim, userinfo } = ProviderSchema.properties

const ConsoleLoginSchema = closedObject({
  issuer,
  clientId,
  clientSecret,
  scopes: scopesOrDefault(['openid', 'profile', 'email'], 'Scopes to ask it for. `openid` is needed.'),
  subjectClaim,
  groupsClaim,
  rolesClaim,
  userinfo
})

const AdminOidcSchema = closedObject({
  audience: Type.String({
    format: 'audience',
    description:
      'What `aud` of their tokens says, and of no other: such as the URL of the admin API. Tokens for endpoints open ' +
      'nothing here.'
  }),
  issuers: Type.Array(IssuerSchema, { minItems: 1, description: 'Whose tokens are accepted.' }),
  login: Type.Optional(
    Type.Union([ConsoleLoginSchema], {
      description:
        'The OpenID provider where people sign in to the [console](console.md), whose name in `access` is its ' +
        'issuer. Register the gateway there as a confidential web client with the redirect URI ' +
        '`{URL of the listener}/console/`. Not given: they paste a key or a token.'
    })
  ),
  access: Type.Array(AdminAccessSchema, {
    minItems: 1,
    maxItems: 1_000,
    description:
      'Who may do what: of each member that is given the caller has to have one. The first entry that fits counts; ' +
      'whoever fits none is not let in.'
  })
})

export const PrometheusSchema = closedObject({
  url: formatted(
    'upstream-url',
    'Its base URL, such as `http://127.0.0.1:9090`: `/api/v1/query_range` below it is asked.'
  ),
  headers: defaulted(
    record({ format: 'header-name' }, Type.String({ format: 'header-value' }), {
      default: {},
      description: 'Headers to send with that, such as `Authorization`.'
    })
  ),
  matchers: defaulted(
    record(
      {
        pattern: '^(?!__)[a-zA-Z_][a-zA-Z0-9_]{0,127}$',
        patternErrorMessage: 'must be the name of a label: letters, digits and "_", no digit and no "__" first'
      },
      Type.String({ minLength: 1, maxLength: 256 }),
      {
        default: {},
        maxProperties: 16,
        description:
          'Labels that the series of this gateway have there, such as `{ cluster: eu }`, where the Prometheus reads ' +
          'several: only series with exactly these values are asked for.'
      }
    )
  )
})

export const AdminListenSchema = closedObject(
  {
    host: defaulted(
      Type.String({
        format: 'listen-host',
        default: '127.0.0.1',
        description: 'Address or name to bind. Anything but a loopback address needs behindTlsProxy.'
      })
    ),
    port: integer(0, 65535, 8081, 'TCP port. 0 picks a free one, which the log names.')
  },
  { description: 'Where the admin API listens: a port of its own. Changing it needs a restart.' }
)

export const AdminSchema = closedObject({
  listen: defaulted(AdminListenSchema),
  behindTlsProxy: defaulted(
    Type.Boolean({
      default: false,
      description:
        'Set it to true where a proxy that speaks TLS stands before the listener, and nobody else can reach it: ' +
        'admin keys must not cross a network in the clear. Without a proxy only on a network that is for this alone, ' +
        'such as from Prometheus to the gateways, with keys of the role `metrics`.'
    })
  ),
  hosts: list(
    Type.String({ format: 'host-header' }),
    'Names to accept in the Host header besides the address that a request came to, such as `admin.example.com`.'
  ),
  keys: Type.Array(AdminKeySchema, { minItems: 1, description: 'Who may use the admin API.' }),
  oidc: Type.Optional(
    Type.Union([AdminOidcSchema], {
      description: 'Administrators who come with a token of an identity provider. Keys are for when that is away.'
    })
  ),
  prometheus: Type.Optional(
    Type.Union([PrometheusSchema], {
      description:
        'The Prometheus that reads the metrics of all processes: the [console](console.md) shows more than the last ' +
        'hour with it.'
    })
  ),
  traceUrl: Type.Optional(
    Type.String({
      maxLength: 1_024,
      pattern: '^https?://[^\\s]*\\{traceId\\}[^\\s]*$',
      patternErrorMessage: 'must be a URL with {traceId} in it',
      description:
        'Where a trace is looked at, such as `https://jaeger.example.com/trace/{traceId}`: the console links calls ' +
        'to it.'
    })
  ),
  allowedCommands: list(
    Type.Union([
      Type.String({
        title: 'path or name',
        pattern: '^(?:/.*|[^/\\s][^/]*)$',
        patternErrorMessage: 'must be an absolute path, or the name of a program without "/"'
      }),
      closedObject(
        {
          command: Type.String({
            pattern: '^/.*$',
            patternErrorMessage: 'must be an absolute path: what a name leads to may change',
            description: 'Its absolute path.'
          }),
          sha256: Type.String({
            pattern: '^[0-9a-fA-F]{64}$',
            patternErrorMessage: 'must be a SHA-256: 64 hexadecimal digits, as sha256sum prints it',
            description: 'Of the file that is there. Another one is not started.'
          })
        },
        { title: 'program by digest' }
      )
    ]),
    'Programs that upstreams made by a platform-admin may start, each exactly as its `command`. Others may start ' +
      'none. With `{ command, sha256 }` the file is compared before each start; as it is started by its path, nobody ' +
      'but the operator should be able to write there. One entry names it, with one digest.'
  ),
  allowedHosts: list(
    Type.String({
      pattern: '^(?:\\*\\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$',
      patternErrorMessage: 'must be a host in lower case without a port; *. before it stands for any name below it'
    }),
    'Hosts that a tenant-admin may name in the URLs of upstreams and issuers, such as `*.example.com`. One that is ' +
      'listed by its own name is reached wherever it leads, from the network of the gateway; one below `*.` at ' +
      'public addresses only, and what `egress` opens. A platform-admin may name any.'
  )
})

/** Not an object by itself, which would be there where it is not given. */
export const optionalAdmin = Type.Optional(
  Type.Union([AdminSchema], { description: 'The admin API ([admin-api.md](admin-api.md)). Not given: there is none.' })
)
