// Wrapping of structured output: whatever the schema, a value that was valid is valid, one that was not is not, and
// nothing else changes.

import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import t from 'tap'
import { needsWrapping, wrapOutputSchema, wrapStructured } from '../../src/protocol/translate/wrap-structured.ts'
import type { JsonObject } from '../../src/protocol/messages.ts'
import { runs } from '../kit/runs.ts'

const wrapped = (schema: JsonObject): JsonObject =>
  wrapOutputSchema({ name: 't', outputSchema: schema })['outputSchema'] as JsonObject
const inner = (schema: JsonObject): JsonObject => (wrapped(schema)['properties'] as JsonObject)['result'] as JsonObject

t.test('only what allows for other than objects is wrapped', async (t) => {
  for (const schema of [{ type: 'object' }, { type: 'object', $ref: '#/$defs/a', $defs: { a: {} } }]) {
    const tool = { name: 't', outputSchema: schema }
    t.equal(wrapOutputSchema(tool), tool)
    t.notOk(needsWrapping(tool))
  }
  const none = { name: 't' }
  t.equal(wrapOutputSchema(none), none)
  for (const schema of [
    {},
    { type: 'array' },
    { type: ['object', 'null'] },
    { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } },
    true
  ]) {
    t.ok(needsWrapping({ outputSchema: schema }), JSON.stringify(schema))
    t.match(wrapOutputSchema({ name: 't', 'x-kept': 1, outputSchema: schema }), {
      name: 't',
      'x-kept': 1,
      outputSchema: { type: 'object', properties: {}, required: ['result'] }
    })
  }
})

t.test('pointers follow, and nothing else', async (t) => {
  const cases: Array<[JsonObject, JsonObject]> = [
    [{ items: { $ref: '#' } }, { items: { $ref: '#/properties/result' } }],
    [
      { items: { $ref: '#/$defs/a' }, $defs: { a: { $dynamicRef: '#/$defs/b' } } },
      { items: { $ref: '#/properties/result/$defs/a' }, $defs: { a: { $dynamicRef: '#/properties/result/$defs/b' } } }
    ],
    [{ items: { $ref: '#name' } }, { items: { $ref: '#name' } }],
    [{ items: { $ref: 'https://a.example/s#/x' } }, { items: { $ref: 'https://a.example/s#/x' } }],
    [{ items: { $id: 'https://a.example/s', $ref: '#/x' } }, { items: { $id: 'https://a.example/s', $ref: '#/x' } }],
    [{ items: { $id: '#name', $ref: '#/x' } }, { items: { $id: '#name', $ref: '#/properties/result/x' } }],
    [
      { const: { $ref: '#/x' }, enum: [{ $ref: '#' }], default: { $ref: '#' }, examples: [{ $ref: '#' }] },
      { const: { $ref: '#/x' }, enum: [{ $ref: '#' }], default: { $ref: '#' }, examples: [{ $ref: '#' }] }
    ],
    [
      {
        items: {
          properties: { const: { $ref: '#' }, $ref: { type: 'string' }, $id: { $ref: '#/a' }, default: { $ref: '#/b' } }
        }
      },
      {
        items: {
          properties: {
            const: { $ref: '#/properties/result' },
            $ref: { type: 'string' },
            $id: { $ref: '#/properties/result/a' },
            default: { $ref: '#/properties/result/b' }
          }
        }
      }
    ],
    [
      { anyOf: [{ $ref: '#/a' }, true], dependencies: { a: ['b'], c: { $ref: '#/d' } } },
      {
        anyOf: [{ $ref: '#/properties/result/a' }, true],
        dependencies: { a: ['b'], c: { $ref: '#/properties/result/d' } }
      }
    ]
  ]
  for (const [before, after] of cases) {
    const copy = structuredClone(before)
    t.same(inner({ type: 'array', ...before }), { type: 'array', ...after })
    t.same(before, copy, 'the original is left alone')
  }
  const whole = { $id: 'https://a.example/root', type: 'array', items: { $ref: '#/$defs/a' } }
  t.same(inner(whole), whole)
})

t.test('the dialect stands at the root; recursion of 2019-09 finds its way', async (t) => {
  t.equal(
    wrapped({ $schema: 'http://json-schema.org/draft-07/schema#', type: 'array' })['$schema'],
    'http://json-schema.org/draft-07/schema#'
  )
  const dialect = 'https://json-schema.org/draft/2019-09/schema'
  t.match(inner({ $schema: dialect, type: 'array', items: { $recursiveRef: '#' } }), {
    items: { $ref: '#/properties/result' }
  })
  t.match(inner({ $schema: dialect, type: 'array', items: { $recursiveRef: '#', $ref: '#/a' } }), {
    items: { $ref: '#/properties/result/a', allOf: [{ $ref: '#/properties/result' }] }
  })
  t.match(inner({ $schema: dialect, $recursiveAnchor: true, type: 'array', items: { $recursiveRef: '#' } }), {
    items: { $recursiveRef: '#' }
  })
  t.match(
    inner({ type: 'array', items: { $recursiveRef: '#' } }),
    { items: { $recursiveRef: '#' } },
    'unknown elsewhere'
  )
})

t.test('what was valid is valid, what was not is not', async (t) => {
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<JsonObject>(
        { type: 'string' },
        { type: 'number' },
        { type: 'null' },
        { const: { $ref: '#/$defs/a' } },
        { $ref: '#/$defs/a' },
        { $ref: '#/$defs/$ref' },
        {}
      ),
      tie('schema').map((items) => ({ type: 'array', items })),
      fc
        .dictionary(fc.constantFrom('a', 'const', '$ref', 'default', 'enum'), tie('schema'), { maxKeys: 3 })
        .map((properties) => ({ type: 'object', properties })),
      fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf }))
    )
  }))
  fc.assert(
    fc.property(schema, schema, schema, fc.jsonValue({ maxDepth: 3 }), (root, a, b, value) => {
      // References to a definition that refers to itself at once say nothing, and validators do not end on them.
      if ('$ref' in a || '$ref' in b || 'anyOf' in a || 'anyOf' in b) return true
      const natural = { ...root, $defs: { a, $ref: b } }
      const tool = { outputSchema: natural }
      const ajv = new Ajv2020({ strict: false })
      const before = ajv.validate(natural, value)
      const shown = wrapOutputSchema(tool)['outputSchema'] as JsonObject
      const after = ajv.validate(
        shown,
        wrapStructured({ content: [], structuredContent: value }, needsWrapping(tool))['structuredContent']
      )
      // Where only objects are allowed, nothing but an object was right.
      return needsWrapping(tool) || (typeof value === 'object' && value !== null && !Array.isArray(value))
        ? before === after
        : !before
    }),
    { numRuns: runs(500) }
  )
  t.pass()
})

t.test('results', async (t) => {
  const plain = { content: [{ type: 'text', text: 'x' }] }
  t.equal(wrapStructured(plain, true), plain, 'without structured content there is nothing to wrap')
  const object = { content: [], structuredContent: { a: 1 } }
  t.equal(wrapStructured(object, false), object)
  t.same(wrapStructured(object, true), {
    content: [{ type: 'text', text: '{"a":1}' }],
    structuredContent: { result: { a: 1 } }
  })
  t.same(
    wrapStructured({ ...plain, structuredContent: null, _meta: { a: 1 } }, false),
    { ...plain, structuredContent: { result: null }, _meta: { a: 1 } },
    'a text that is there is left alone'
  )
  t.same(wrapStructured({ structuredContent: [1] }, false), {
    content: [{ type: 'text', text: '[1]' }],
    structuredContent: { result: [1] }
  })
  const failed = { content: [], isError: true, structuredContent: { a: 1 } }
  t.equal(wrapStructured(failed, true), failed)
})
