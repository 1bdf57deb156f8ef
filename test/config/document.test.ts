import Ajv from 'ajv/dist/2020.js'
import t from 'tap'
import { configMarkdown, exampleConfig } from '../../scripts/config-doc.ts'
import { configJsonSchema } from '../../src/cli/offline.ts'
import type { Shape } from '../../src/config/shape.ts'
import { parse } from 'yaml'
import { base, compiled, problemsOf } from './kit.ts'

t.test('the example of the document compiles as it stands', async (t) => {
  const env = { CI_KEY: 'q7Xw2Zr9Lk4Vb8Nt', TICKETS_KEY: 'x' }
  t.same(problemsOf(exampleConfig, { env }), [])
  t.same(
    [...compiled(exampleConfig, { env }).tenants.values()].flatMap((tenant) =>
      [...tenant.endpoints.values()].map(({ path }) => path)
    ),
    ['/t/acme/mcp', '/t/acme/files/mcp', '/t/acme/support/mcp']
  )
  t.ok(configMarkdown().includes(exampleConfig))
})

t.test('every property is described, and no object takes what it does not know', async (t) => {
  let properties = 0
  const walk = (schema: Shape & { additionalProperties?: unknown }, path: string): void => {
    if (schema.properties !== undefined && schema.additionalProperties !== false) t.fail(`${path} takes unknown keys`)
    for (const [key, property] of Object.entries(schema.properties ?? {})) {
      properties++
      if ((property.description ?? '') === '') t.fail(`${path}.${key} has no description`)
      walk(property, `${path}.${key}`)
    }
    for (const inner of [
      ...(schema.anyOf ?? []),
      ...Object.values(schema.patternProperties ?? {}),
      ...(schema.items === undefined ? [] : [schema.items])
    ])
      walk(inner, `${path}.*`)
  }
  walk(configJsonSchema(), '')
  t.ok(properties > 50, 'the walk went down')
})

t.test('the JSON Schema is one, for other validators too', async (t) => {
  const validate = new Ajv.default({ strict: false, logger: false }).compile(configJsonSchema())
  t.ok(validate(base()))
  t.ok(validate(parse(exampleConfig)))
  t.notOk(validate({ ...base(), tenats: {} }))
})

t.test('the document names every key of the schema', async (t) => {
  const text = configMarkdown()
  for (const key of ['publicUrl', 'jwksUri', 'coldStartMs', 'maxMessageBytes', 'separator', 'sha256', 'disabled'])
    t.match(text, `| \`${key}\` |`)
  t.notMatch(text, /undefined|\[object/)
})
