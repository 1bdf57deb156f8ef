// docs/config.md, from the schema of the configuration.

import { AdminKeySchema, AdminListenSchema, AdminSchema, PrometheusSchema } from '../src/config/schema/admin.ts'
import { ConfigSchema, TenantSchema, reservedEndpointNames } from '../src/config/schema/config.ts'
import { LoginSchema, ProviderSchema, SignInSchema } from '../src/config/schema/login.ts'
import { EndpointSchema, ToolChangeSchema } from '../src/config/schema/endpoint.ts'
import { PolicySchema, RuleSchema } from '../src/config/schema/policy.ts'
import { BearerSchema, ClaimsSchema, IntrospectionSchema, IssuerSchema, KeySchema } from '../src/config/schema/auth.ts'
import { HttpSchema, StdioSchema } from '../src/config/schema/upstream.ts'
import * as upstreamAuth from '../src/config/schema/upstream-auth.ts'
import { AwsKmsSchema, VaultKeySchema, VaultSchema } from '../src/config/schema/vault.ts'
import type { Shape } from '../src/config/shape.ts'

/** Needs the environment variables CI_KEY and TICKETS_KEY. */
export const exampleConfig = `listen: { host: 0.0.0.0, port: 8080 }
publicUrl: https://mcp.example.com
hosts: [gatehouse.internal]
store: file:./data/gatehouse.db
logLevel: info
limits:
  sessionIdleMs: 1800000
  drainMs: 24000

tenants:
  acme:
    origins: [https://claude.ai]
    auth:
      issuers:
        - issuer: https://idp.example.com
      keys:
        - { name: ci, key: "\${CI_KEY}", scopes: [mcp] }
        - name: nightly
          sha256: 7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a
          scopes: [mcp]
      requiredScopes: [mcp]
    upstreams:
      files:
        command: npx
        args: [-y, "@modelcontextprotocol/server-filesystem", /srv/files]
        env: { LOG_LEVEL: "\${FILES_LOG_LEVEL:-warn}" }
        cwd: /srv
        isolation: session
      tickets:
        type: http
        url: https://tickets.example.com/mcp
        headers: { X-Api-Key: "\${TICKETS_KEY}" }
        timeoutMs: 120000
    endpoints:
      default: { upstreams: [files, tickets] }                        # /t/acme/mcp: files__read, tickets__search, ...
      files: { upstreams: [files], prefix: "" }                       # /t/acme/files/mcp: names untouched
      support:                                                        # /t/acme/support/mcp: t.search, files.read
        upstreams: [{ upstream: tickets, prefix: t }, files]
        separator: "."
        instructions: Look for an open ticket before you make a new one.
`

const intro = `# Configuration

*Written by \`npm run docs\` from the schema in src/config; do not edit.*

One file, YAML or JSON, given as \`gatehouse serve --config FILE\`. \`gatehouse check --config FILE\` reports all
problems at once, and \`gatehouse schema\` prints the JSON Schema for editors. While the gateway runs, it applies a
changed file without a restart, and reads it again when a file that it names by \`\${file:PATH}\` has new content. An
invalid file is refused: the log says why, and the last valid one stays in use. Changed environment variables need a
restart.

## Values from outside

| in a string | stands for |
|---|---|
| \`\${NAME}\` | the environment variable; not set is an error |
| \`\${NAME:-default}\` | the same, with a value to use if it is not set or empty |
| \`\${file:PATH}\` | the content of a file, without its last line break; relative to the folder of this file |
| \`$\${\` | a literal \`\${\` |

A stdio server of the same user can read the gateway's environment, and so what \`\${NAME}\` stands for; a \`\${file:PATH}\` never
stands there ([upstreams.md](upstreams.md), "Secrets of a definition").

A string that consists of one reference may stand where a number, true or false is expected. References in keys are not
replaced. Inside \`{ }\` and \`[ ]\` YAML needs quotes around a reference.`

const reservedNames = reservedEndpointNames.map((name) => `\`${name}\``).join(', ')
const afterEndpoints = `Endpoint names are lower-case letters, digits and "-"; ${reservedNames} are reserved. A tenant
with \`endpoints\` has only those: a \`default\` one exists only if it is named. A member of \`upstreams\` is a name, or
\`{ upstream, prefix }\`. [endpoints.md](endpoints.md) shows by example what the rest does.`

const sections: readonly (readonly [string, string, Shape, string])[] = [
  ['The file', '', ConfigSchema, ''],
  ['listen', 'listen', part(ConfigSchema, 'listen'), ''],
  ['limits', 'limits', part(ConfigSchema, 'limits'), ''],
  ['vault', 'vault', VaultSchema, ''],
  ['vault.keys', 'vault.keys[]', VaultKeySchema, 'How to change one: [connections.md](connections.md#the-vault).'],
  ['vault.keys.awsKms', 'vault.keys[].awsKms', AwsKmsSchema, ''],
  ['egress', 'egress', part(ConfigSchema, 'egress'), ''],
  ['admin', 'admin', AdminSchema, ''],
  ['admin.listen', 'admin.listen', AdminListenSchema, ''],
  ['admin.keys', 'admin.keys[]', AdminKeySchema, ''],
  ['admin.prometheus', 'admin.prometheus', PrometheusSchema, 'What is shown with it: [console.md](console.md#pages).'],
  ['tenants', 'tenants.{id}', TenantSchema, 'Tenant ids are lower-case letters, digits and "-", at most 63 of them.'],
  [
    'auth',
    'tenants.{id}.auth',
    BearerSchema,
    'Or the word `none`, which is accepted only if the gateway listens on a loopback address.'
  ],
  ['auth.issuers', 'tenants.{id}.auth.issuers[]', IssuerSchema, ''],
  ['auth.issuers.claims', 'tenants.{id}.auth.issuers[].claims', ClaimsSchema, ''],
  ['auth.issuers.introspection', 'tenants.{id}.auth.issuers[].introspection', IntrospectionSchema, ''],
  ['auth.keys', 'tenants.{id}.auth.keys[]', KeySchema, ''],
  ['upstreams: a process', 'tenants.{id}.upstreams.{name}', StdioSchema, ''],
  ['upstreams: a URL', 'tenants.{id}.upstreams.{name}', HttpSchema, ''],
  ...authSections(),
  ['endpoints', 'tenants.{id}.endpoints.{name}', EndpointSchema, afterEndpoints],
  ['endpoints.tools', 'tenants.{id}.endpoints.{name}.tools.{upstream/name}', ToolChangeSchema, ''],
  ['auth.login', 'tenants.{id}.auth.login', LoginSchema, 'What it does: [login.md](login.md).'],
  ['auth.login.provider', 'tenants.{id}.auth.login.provider', ProviderSchema, ''],
  ['auth.signIn', 'tenants.{id}.auth.signIn', SignInSchema, ''],
  ['policy', 'tenants.{id}.policy` and `tenants.{id}.endpoints.{name}.policy', PolicySchema, ''],
  ['policy.rules', 'tenants.{id}.policy.rules[]', RuleSchema, 'How they work together: [policy.md](policy.md).'],
  ['policy.rules.who', 'tenants.{id}.policy.rules[].who', part(RuleSchema, 'who'), ''],
  ['policy.rules.what', 'tenants.{id}.policy.rules[].what', part(RuleSchema, 'what'), '']
]

/** What each kind does is in connections.md. */
function authSections(): Array<readonly [string, string, Shape, string]> {
  const kinds = {
    'an account of each person': upstreamAuth.UserSchema,
    'a secret of each person': upstreamAuth.UserHeaderSchema,
    'a variable of each person': upstreamAuth.UserVariableSchema,
    'client credentials': upstreamAuth.ClientCredentialsSchema,
    'token exchange': upstreamAuth.TokenExchangeSchema,
    'a signed assertion': upstreamAuth.SignedSchema
  }
  const place = 'tenants.{id}.upstreams.{name}.auth'
  const identityAssertion = ['upstream auth: identityAssertion', `${place}.identityAssertion`] as const
  return [
    ...Object.entries(kinds).map(([kind, schema]) => [`upstream auth: ${kind}`, place, schema, ''] as const),
    [...identityAssertion, upstreamAuth.IdentityAssertionSchema, '']
  ]
}

/** docs/config.md: one table per section, and the example that the tests compile. */
export function configMarkdown(): string {
  const parts = sections.map(([title, path, schema, note]) =>
    [
      `## ${title}`,
      ...(path === '' ? [] : [`At \`${path}\`.${schema.description === undefined ? '' : ` ${schema.description}`}`]),
      table(schema),
      ...(note === '' ? [] : [note])
    ].join('\n\n')
  )
  return `${[intro, ...parts, '## Example', `\`\`\`yaml\n${exampleConfig.trimEnd()}\n\`\`\``].join('\n\n')}\n`
}

function table(schema: Shape): string {
  const required = schema.required ?? []
  const rows = Object.entries(schema.properties ?? {}).map(
    ([key, property]) =>
      `| \`${key}\` | ${kind(property)} | ${required.includes(key) ? 'required' : fallback(property)} | ` +
      `${cell(property.description ?? '')} |`
  )
  return ['| key | type | default | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

function kind(schema: Shape): string {
  if (schema.const !== undefined) return code(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(code).join(', ')
  if (schema.anyOf !== undefined) return schema.anyOf.map(kind).join(' or ')
  if (schema.type === 'array') return `list of ${plural(kind(schema.items ?? {}))}`
  if (schema.patternProperties !== undefined)
    return `map of ${plural(kind(Object.values(schema.patternProperties)[0] ?? {}))}`
  if (schema.type === 'integer') return `integer, ${schema.minimum} to ${schema.maximum}`
  return schema.type === 'object' ? (schema.title ?? 'map') : (schema.type ?? 'any')
}

function fallback(schema: Shape): string {
  const value = schema.default
  if (value === undefined) return ''
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(code).join(', ')
  return typeof value === 'object' ? 'none' : code(value)
}

const code = (value: unknown): string => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``

const plural = (kinds: string): string => (kinds === 'string' || kinds === 'map' ? `${kinds}s` : kinds)

const cell = (text: string): string => text.replaceAll('|', '\\|')

function part(schema: Shape, key: string): Shape {
  return schema.properties?.[key] ?? {}
}
