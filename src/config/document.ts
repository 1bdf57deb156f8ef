// The schema as documents: docs/config.md for people, JSON Schema for editors. Written from the one schema, so they cannot be wrong.

import { exampleConfig } from './example.ts'
import { ConfigSchema, EndpointSchema, TenantSchema, reservedEndpointNames } from './schema.ts'
import { IssuerSchema, KeySchema, AuthSchema } from './schema-auth.ts'
import { HttpSchema, StdioSchema } from './schema-upstreams.ts'
import type { Shape } from './shape.ts'

/** JSON Schema 2020-12. `format` names and `refused` are ours; validators ignore what they do not know. */
export function configJsonSchema (): Readonly<Record<string, unknown>> {
  // Through JSON, so that what the library keeps on its objects stays behind.
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...JSON.parse(JSON.stringify(ConfigSchema)) as Record<string, unknown> }
}

const intro = `# Configuration

*Written by \`npm run docs\` from the schema in src/config; do not edit.*

One file, YAML or JSON, given as \`gatehouse serve --config FILE\`. \`gatehouse check --config FILE\` tells every problem at once, and
\`gatehouse schema\` prints the JSON Schema, which editors understand. While the gateway runs, a changed file is taken over without a
restart; a broken one is refused with the reasons in the log, and the one before stays in use.

## Values from outside

| in a string | stands for |
|---|---|
| \`\${NAME}\` | the environment variable; not set is an error |
| \`\${NAME:-default}\` | the same, with a value for when it is not set or empty |
| \`\${file:PATH}\` | the content of a file, without the line break at its end; relative to the folder of the configuration |
| \`$\${\` | a literal \`\${\` |

A string that is nothing but one reference may stand where a number, or true or false, is expected. Keys are taken as they are.
Inside \`{ }\` and \`[ ]\` YAML needs quotes around a reference.`

const afterEndpoints = `Endpoint names are lower-case letters, digits and "-"; ${reservedEndpointNames.map((name) => `\`${name}\``).join(', ')} are reserved. With \`endpoints\` given, only those exist:
a tenant that names its endpoints has a \`default\` one only if it names it. A member of \`upstreams\` is a name, or \`{ upstream, prefix }\`.`

const sections: readonly (readonly [string, string, Shape, string])[] = [
  ['The file', '', ConfigSchema, ''],
  ['listen', 'listen', part(ConfigSchema, 'listen'), ''],
  ['limits', 'limits', part(ConfigSchema, 'limits'), ''],
  ['tenants', 'tenants.{id}', TenantSchema, 'Tenant ids are lower-case letters, digits and "-", at most 63 of them.'],
  ['auth', 'tenants.{id}.auth', objectOf(AuthSchema), 'Or the word `none` instead of all this: accepted only where the gateway listens on loopback.'],
  ['auth.issuers', 'tenants.{id}.auth.issuers[]', IssuerSchema, ''],
  ['auth.keys', 'tenants.{id}.auth.keys[]', KeySchema, ''],
  ['upstreams: a process', 'tenants.{id}.upstreams.{name}', StdioSchema, ''],
  ['upstreams: a URL', 'tenants.{id}.upstreams.{name}', HttpSchema, ''],
  ['endpoints', 'tenants.{id}.endpoints.{name}', EndpointSchema, afterEndpoints]
]

/** docs/config.md: one table per section, and an example that the compiler accepts. */
export function configMarkdown (): string {
  const parts = sections.map(([title, path, schema, note]) => [
    `## ${title}`,
    ...(path === '' ? [] : [`At \`${path}\`.${schema.description === undefined ? '' : ` ${schema.description}`}`]),
    table(schema),
    ...(note === '' ? [] : [note])
  ].join('\n\n'))
  return `${[intro, ...parts, '## Example', `\`\`\`yaml\n${exampleConfig.trimEnd()}\n\`\`\``].join('\n\n')}\n`
}

function table (schema: Shape): string {
  const required = schema.required ?? []
  const rows = Object.entries(schema.properties ?? {}).map(([key, property]) =>
    `| \`${key}\` | ${kind(property)} | ${required.includes(key) ? 'required' : fallback(property)} | ${cell(property.description ?? '')} |`)
  return ['| key | type | default | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

function kind (schema: Shape): string {
  if (schema.const !== undefined) return code(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(code).join(', ')
  if (schema.anyOf !== undefined) return schema.anyOf.map(kind).join(' or ')
  if (schema.type === 'array') return `list of ${plural(kind(schema.items ?? {}))}`
  if (schema.patternProperties !== undefined) return `map of ${plural(kind(Object.values(schema.patternProperties)[0] ?? {}))}`
  if (schema.type === 'integer') return `integer, ${schema.minimum} to ${schema.maximum}`
  return schema.type === 'object' ? schema.title ?? 'map' : schema.type ?? 'any'
}

function fallback (schema: Shape): string {
  const value = schema.default
  if (value === undefined) return ''
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(code).join(', ')
  return typeof value === 'object' ? 'none' : code(value)
}

const code = (value: unknown): string => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``

const plural = (kinds: string): string => kinds === 'string' || kinds === 'map' ? `${kinds}s` : kinds

const cell = (text: string): string => text.replaceAll('|', '\\|')

function part (schema: Shape, key: string): Shape {
  return schema.properties?.[key] ?? {}
}

function objectOf (schema: Shape): Shape {
  return schema.anyOf?.find((branch) => branch.type === 'object') ?? {}
}
