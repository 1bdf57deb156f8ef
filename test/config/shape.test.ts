// Our own check of a configuration against a validator: what it accepts, defaults filled in, is what the schema says.

import { generateKeyPairSync } from 'node:crypto'
import { Check } from 'typebox/schema'
import t from 'tap'
import { createReport } from '../../src/config/problems.ts'
import { ConfigSchema } from '../../src/config/schema/config.ts'
import { checkShape, type Shape } from '../../src/config/shape.ts'
import { goodKey } from './kit.ts'

const signingKey = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const urls = ['https://a.example.com', 'http://127.0.0.1/mcp']
const strings = [
  'a',
  'A',
  '',
  'none',
  'file:a',
  '10.0.0.0/8',
  '$.a',
  'unix:/a',
  '1',
  'a b',
  '\0',
  'a'.repeat(64),
  'a'.repeat(5_000),
  goodKey,
  '2027-01-31',
  '10.1.0.0/16',
  signingKey,
  Buffer.alloc(32).toString('base64'),
  '10.0.0.0/8',
  '2027-01-31',
  'https://a.example/logo.png',
  'https://a.example/trace/{traceId}',
  '/bin/program',
  'policy',
  ...urls
]
const values = [null, true, 0, 1, -1, 1.5, 5_000, 1e9, 1e300, [], [[]], [1], ['a'], {}, { a: 1 }, ...strings]

function accepted(schema: Shape, value: unknown): { readonly shaped: unknown } | undefined {
  const report = createReport(() => undefined)
  const shaped = checkShape(schema, value, report, () => false)
  return report.problems().length === 0 ? { shaped } : undefined
}

/** Every schema within this one, and itself; a single value is one of several branches, and accepted there. */
function within(schema: Shape): Shape[] {
  const { anyOf = [], properties = {}, patternProperties = {}, items } = schema
  const parts = [...anyOf, ...Object.values(properties), ...Object.values(patternProperties)]
  const whole = schema.const === undefined ? [schema] : []
  return [...whole, ...(items === undefined ? parts : [...parts, items]).flatMap(within)]
}

/** Something that is accepted, with no more than must be there. */
function least(schema: Shape): unknown {
  const { anyOf, type, enum: only, const: one } = schema
  if (anyOf !== undefined) return least(anyOf[0] ?? {})
  if (type === 'array') return (schema.minItems ?? 0) > 0 ? [least(schema.items ?? {})] : []
  if (type !== 'object') return one ?? only?.[0] ?? values.find((value) => accepted(schema, value))
  const [entry] = Object.values(schema.patternProperties ?? {})
  if (entry !== undefined) {
    const name = strings.find((text) => accepted(schema.propertyNames ?? {}, text))
    return (schema.minProperties ?? 0) > 0 ? { [name ?? '']: least(entry) } : {}
  }
  return Object.fromEntries((schema.required ?? []).map((key) => [key, least(schema.properties?.[key] ?? {})]))
}

/** Values of any kind; the least, and the least with one member that is any value. */
function candidates(schema: Shape): unknown[] {
  const smallest = least(schema)
  if (typeof smallest !== 'object' || smallest === null) return [...values, smallest]
  if (Array.isArray(smallest)) return [...values, smallest, ...values.map((value) => [...smallest, value])]
  const keys = [...Object.keys(schema.properties ?? {}), 'unknown', 'a', 'X-A', '']
  return [...values, smallest, ...keys.flatMap((key) => values.map((value) => ({ ...smallest, [key]: value })))]
}

t.test('whatever is accepted as a part of a configuration, a validator of JSON Schema accepts', async (t) => {
  for (const schema of within(ConfigSchema)) {
    const passed = candidates(schema).flatMap((value) => accepted(schema, value) ?? [])
    const wrong = passed.filter(({ shaped }) => !Check(schema, shaped))
    const name = schema.description ?? schema.title ?? JSON.stringify(schema).slice(0, 60)
    if (passed.length === 0 || wrong.length > 0) t.same({ passed: passed.length, wrong }, {}, name)
  }
  t.ok(within(ConfigSchema).length > 150, 'every part of it')
  t.ok(Check(ConfigSchema, accepted(ConfigSchema, { tenants: { a: { auth: 'none', upstreams: {} } } })?.shaped))
  for (const bad of [{}, { tenants: [] }, { tenants: { a: { auth: 'none', upstreams: {} } }, unknown: 1 }])
    t.notOk(Check(ConfigSchema, bad), 'the validator refuses what is wrong')
})
