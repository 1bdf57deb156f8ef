// The schema of the configuration as documents: docs/config.md for people, JSON Schema for editors.

import { exampleConfig } from './example.ts'
import { ConfigSchema, EndpointSchema, TenantSchema, reservedEndpointNames } from './schema/schema.ts'
import { IssuerSchema, KeySchema, AuthSchema } from './schema/schema-auth.ts'
import { HttpSchema, StdioSchema } from './schema/schema-upstreams.ts'
import type { Shape } from './schema/shape.ts'

/**
 * JSON Schema 2020-12. The names of formats and the keyword `refused` are the gateway's own, which validators ignore.
 */
export function configJsonSchema(): Readonly<Record<string, unknown>> {
  // The round trip through JSON removes the symbols that the library keeps on its objects.
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    ...(JSON.parse(JSON.stringify(ConfigSchema)) as Record<string, unknown>)
  }
}

const intro = `# Configuration

*Written by \`npm run docs\` from the schema in src/config; do not edit.*

One file, YAML or JSON, given as \`gatehouse serve --config FILE\`. \`gatehouse check --config FILE\` reports all
problems at once, and \`gatehouse schema\` prints the JSON Schema for editors. While the gateway runs, it applies a
changed file without a restart. An invalid file is refused: the log says why, and the last valid one stays in use.

## Values from outside

| in a string | stands for |
|---|---|
| \`\${NAME}\` | the environment variable; not set is an error |
| \`\${NAME:-default}\` | the same, with a value to use if it is not set or empty |
| \`\${file:PATH}\` | the content of a file, without its last line break; relative to the folder of this file |
| \`$\${\` | a literal \`\${\` |

A string that consists of one reference may stand where a number, true or false is expected. References in keys are not
replaced. Inside \`{ }\` and \`[ ]\` YAML needs quotes around a reference.`

const reservedNames = reservedEndpointNames.map((name) => `\`${name}\``).join(', ')
const afterEndpoints = `Endpoint names are lower-case letters, digits and "-"; ${reservedNames} are reserved. A tenant
with \`endpoints\` has only those: a \`default\` one exists only if it is named. A member of \`upstreams\` is a name, or
\`{ upstream, prefix }\`.`

const sections: readonly (readonly [string, string, Shape, string])[] = [
  ['The file', '', ConfigSchema, ''],
  ['listen', 'listen', part(ConfigSchema, 'listen'), ''],
  ['limits', 'limits', part(ConfigSchema, 'limits'), ''],
  ['tenants', 'tenants.{id}', TenantSchema, 'Tenant ids are lower-case letters, digits and "-", at most 63 of them.'],
  [
    'auth',
    'tenants.{id}.auth',
    objectOf(AuthSchema),
    'Or the word `none`, which is accepted only if the gateway listens on a loopback address.'
  ],
  ['auth.issuers', 'tenants.{id}.auth.issuers[]', IssuerSchema, ''],
  ['auth.keys', 'tenants.{id}.auth.keys[]', KeySchema, ''],
  ['upstreams: a process', 'tenants.{id}.upstreams.{name}', StdioSchema, ''],
  ['upstreams: a URL', 'tenants.{id}.upstreams.{name}', HttpSchema, ''],
  ['endpoints', 'tenants.{id}.endpoints.{name}', EndpointSchema, afterEndpoints]
]

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

function objectOf(schema: Shape): Shape {
  return schema.anyOf?.find((branch) => branch.type === 'object') ?? {}
}
