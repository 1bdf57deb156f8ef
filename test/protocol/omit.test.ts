// JSON paths of parts that are left out: which texts are paths, what they take, and nothing else.

import fc from 'fast-check'
import t from 'tap'
import {
  everything,
  parseJsonPath,
  schemaWithout,
  withoutParts,
  type JsonPath
} from '../../src/protocol/translate/omit.ts'
import { runs } from '../kit/runs.ts'

const paths = (...texts: string[]): JsonPath[] =>
  texts.map((text) => {
    const path = parseJsonPath(text)
    if (path === undefined) throw new Error(`no path: ${text}`)
    return path
  })

t.test('members by name, in dots or brackets, and each element or member', async (t) => {
  const cases: ReadonlyArray<readonly [string, unknown]> = [
    ['$.a', ['a']],
    ['$.a.b[*].c', ['a', 'b', everything, 'c']],
    ['$[*]', [everything]],
    ['$.*.x-y', [everything, 'x-y']],
    ["$['a b'].c", ['a b', 'c']],
    ['$["it\'s"]', ["it's"]],
    ["$['it\\'s']", ["it's"]],
    ['$.$ref', ['$ref']]
  ]
  for (const [text, path] of cases) t.same(parseJsonPath(text), path, text)
  for (const text of [
    '',
    '$',
    'a',
    '.a',
    '$a',
    '$.',
    '$..a',
    '$.a.',
    '$[0]',
    '$[1:2]',
    '$[?@.a]',
    '$[a]',
    "$['']",
    '$.a b',
    '$.1a',
    '$.a[*'
  ])
    t.equal(parseJsonPath(text), undefined, JSON.stringify(text))
})

const value = {
  customer: { name: 'Ada', email: 'a@b', address: { street: 'x', city: 'y' } },
  items: [
    { price: 1, name: 'p' },
    { price: 2, name: 'q' }
  ],
  tags: ['a', 'b']
}
const left = (...texts: string[]): unknown =>
  withoutParts({ structuredContent: value }, paths(...texts))['structuredContent']

t.test('what is named is gone, and all else is there', async (t) => {
  const { email: _email, ...customer } = value.customer
  t.same(left('$.customer.email'), { ...value, customer })
  t.same(left('$.items[*].price'), { ...value, items: [{ name: 'p' }, { name: 'q' }] })
  t.same(left('$.tags[*]'), { ...value, tags: [] })
  t.same(left('$.customer.*'), { ...value, customer: {} })
  t.same(left('$.*.address.city'), { ...value, customer: { ...value.customer, address: { street: 'x' } } })
  t.same(left('$.customer', '$.items', '$.tags'), {})
  t.equal(
    left('$.nothing', '$.customer.name.first', '$.tags.x', '$.items.price', '$.toString'),
    value,
    'and copies nothing'
  )
})

t.test('a text that is JSON loses the same, one that is not loses nothing', async (t) => {
  const text = (of: string) => ({ type: 'text', text: of })
  const result = {
    content: [
      text(JSON.stringify(value)),
      text(` {"customer":{"email":"a@b"},"id":12345678901234567890}`),
      text('[{"a":1}]'),
      text('the mail is a@b'),
      text('{"customer":{"email":"a@b"'),
      {
        type: 'resource',
        resource: { uri: 'x:y', mimeType: 'application/json', text: '{"customer":{"email":"a@b"}}' }
      },
      { type: 'image', data: '{"customer":{"email":"a@b"}}', mimeType: 'image/png' }
    ]
  }
  const { content } = withoutParts(result, paths('$.customer.email', '$[*].a')) as { content: Array<{ text: string }> }
  t.notMatch(content[0]?.text, /email/)
  t.equal(content[1]?.text, '{"customer":{},"id":12345678901234567890}', 'long numbers keep their digits')
  t.equal(content[2]?.text, '[{}]')
  for (const at of [3, 4, 6]) t.equal(content[at], result.content[at])
  t.match(content[5], { resource: { uri: 'x:y', text: '{"customer":{}}' } })
})

t.test('what is no object, and is wrapped for older clients, loses its parts too', async (t) => {
  const wrapped = { structuredContent: { result: [{ a: 1, b: 2 }] } }
  t.same(withoutParts(wrapped, paths('$[*].a')), { structuredContent: { result: [{ b: 2 }] } })
})

t.test('a schema says no more of what is left out; where the way is not plain there is none', async (t) => {
  const schema = {
    type: 'object',
    required: ['items', 'customer'],
    properties: {
      customer: { type: 'object', required: ['email', 'name'], properties: { email: { type: 'string' }, name: {} } },
      items: {
        type: 'array',
        items: { type: 'object', properties: { price: {}, name: {} }, additionalProperties: false }
      },
      other: { $ref: '#/$defs/x' }
    }
  }
  t.same(schemaWithout(schema, paths('$.customer.email', '$.items[*].price')), {
    ...schema,
    properties: {
      ...schema.properties,
      customer: { type: 'object', required: ['name'], properties: { name: {} } },
      items: { type: 'array', items: { type: 'object', properties: { name: {} }, additionalProperties: false } }
    }
  })
  t.match(schemaWithout(schema, paths('$.customer')), { required: ['items'] })
  for (const path of ['$.other.x', '$.nothing', '$.*', '$.items[*]', '$.items.price'])
    t.equal(schemaWithout(schema, paths(path)), undefined, path)
  t.equal(schemaWithout({ ...schema, allOf: [] }, paths('$.customer')), undefined)
})

t.test('whatever a result and a path are, no value that it names is left, and every other one is', async (t) => {
  const name = fc.constantFrom('a', 'b', 'c', '__proto__', 'x y')
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      fc.integer(),
      fc.array(tie('json'), { maxLength: 3 }),
      fc.dictionary(name, tie('json'), { maxKeys: 3 })
    )
  }))
  const path = fc.array(fc.oneof(name, fc.constant(everything)), { minLength: 1, maxLength: 4 })
  /** The ways to all values, each with what is there where it is none that holds others. */
  function ways(of: unknown, way: readonly (string | number)[] = []): Map<string, unknown> {
    const found = new Map<string, unknown>([[JSON.stringify(way), typeof of === 'object' ? Array.isArray(of) : of]])
    if (typeof of !== 'object' || of === null) return found
    const entries: Array<[string | number, unknown]> = Array.isArray(of)
      ? of.map((each, at) => [at, each])
      : Object.entries(of)
    for (const [key, each] of entries) for (const [inner, leaf] of ways(each, [...way, key])) found.set(inner, leaf)
    return found
  }
  const isNamed = (way: readonly (string | number)[], named: readonly (string | typeof everything)[]): boolean =>
    way.length >= named.length &&
    named.every((part, at) => part === everything || (typeof way[at] === 'string' && way[at] === part))
  fc.assert(
    fc.property(json, path, (given, named) => {
      const before = ways({ value: given })
      const after = ways({
        value: (withoutParts({ structuredContent: given }, [named]) as { structuredContent: unknown }).structuredContent
      })
      const expected = [...before].filter(
        ([way]) => !isNamed((JSON.parse(way) as Array<string | number>).slice(1), named)
      )
      // Where all elements go, none is left to have another place.
      t.same(new Map(after), new Map(expected), JSON.stringify(given))
    }),
    { numRuns: runs(2_000) }
  )
})
