// Arguments in headers: which annotations count, that every value comes back as it went, and that nothing else passes
// for it.

import fc from 'fast-check'
import t from 'tap'
import { parseJson } from '../../src/protocol/json.ts'
import {
  type ParamHeader,
  decodeHeader,
  encodeHeader,
  headersFor,
  paramHeadersOf,
  paramMismatch,
  withoutParamHeaders
} from '../../src/protocol/translate/param-headers.ts'

const region = { type: 'string', 'x-mcp-header': 'Region' }
const object = (properties: Record<string, unknown>) => ({ type: 'object', properties })
const given = (headers: Record<string, string>) =>
  new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value]]))

function annotationsOf(schema: Record<string, unknown>): readonly ParamHeader[] {
  const found = paramHeadersOf(schema)
  if (typeof found === 'string') throw new Error(found)
  return found
}

t.test('annotations on properties are found at any depth, in the order of the schema', async (t) => {
  t.same(
    paramHeadersOf(
      object({
        region,
        deep: object({
          'a.b': { type: 'integer', 'x-mcp-header': 'Count' },
          on: { type: 'boolean', 'x-mcp-header': 'On' }
        }),
        query: { type: 'string' }
      })
    ),
    [
      { header: 'Mcp-Param-Region', path: ['region'], type: 'string' },
      { header: 'Mcp-Param-Count', path: ['deep', 'a.b'], type: 'integer' },
      { header: 'Mcp-Param-On', path: ['deep', 'on'], type: 'boolean' }
    ]
  )
  t.same(paramHeadersOf({}), [])
  t.same(paramHeadersOf({ properties: 'no object' }), [])
})

t.test('what only looks like an annotation is none', async (t) => {
  t.same(paramHeadersOf(object({ 'x-mcp-header': { type: 'string' } })), [], 'a property of that name')
  t.same(
    paramHeadersOf({
      ...object({ a: { type: 'string', default: { 'x-mcp-header': 'A' }, enum: [{ 'x-mcp-header': 'B' }] } }),
      examples: [region]
    }),
    [],
    'a value'
  )
})

for (const [why, schema] of Object.entries({
  'no name': object({ a: { type: 'string', 'x-mcp-header': '' } }),
  'no string': object({ a: { type: 'string', 'x-mcp-header': 7 } }),
  'a space in the name': object({ a: { type: 'string', 'x-mcp-header': 'My Region' } }),
  'a colon in the name': object({ a: { type: 'string', 'x-mcp-header': 'Region:' } }),
  'a line break in the name': object({ a: { type: 'string', 'x-mcp-header': 'Region\r\nX-Admin: 1' } }),
  'a final line break in the name': object({ a: { type: 'string', 'x-mcp-header': 'Region\n' } }),
  'a letter beyond ASCII': object({ a: { type: 'string', 'x-mcp-header': 'Région' } }),
  'a very long name': object({ a: { type: 'string', 'x-mcp-header': 'x'.repeat(129) } }),
  'a number': object({ a: { type: 'number', 'x-mcp-header': 'A' } }),
  'an object': object({ a: { type: 'object', 'x-mcp-header': 'A' } }),
  'an array': object({ a: { type: 'array', 'x-mcp-header': 'A' } }),
  null: object({ a: { type: 'null', 'x-mcp-header': 'A' } }),
  'a choice of types': object({ a: { type: ['string', 'null'], 'x-mcp-header': 'A' } }),
  'no type': object({ a: { 'x-mcp-header': 'A' } }),
  'the same name twice': object({ a: region, b: region }),
  'the same name in other letters': object({ a: region, b: object({ c: { ...region, 'x-mcp-header': 'rEGION' } }) }),
  'the root': { ...object({}), ...region },
  'under items': object({ a: { type: 'array', items: region } }),
  'under items, further down': object({ a: { type: 'array', items: object({ region }) } }),
  'under anyOf': { ...object({}), anyOf: [object({ region })] },
  'under oneOf': object({ a: { oneOf: [region] } }),
  'under allOf': { allOf: [object({ region })] },
  'under not': { not: object({ region }) },
  'under if': { if: object({ region }) },
  'under else': { if: {}, else: object({ region }) },
  'under $defs': { ...object({ a: { $ref: '#/$defs/a' } }), $defs: { a: region } },
  'under definitions': { definitions: { a: region } },
  'under patternProperties': { patternProperties: { '^a': region } },
  'under additionalProperties': { additionalProperties: region },
  'under prefixItems': object({ a: { prefixItems: [{}, region] } }),
  'under keys that are very long together': object({ ['k'.repeat(1_000)]: object({ ['l'.repeat(25)]: region }) }),
  'more than 64': object(
    Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`p${n}`, { type: 'string', 'x-mcp-header': `P${n}` }]))
  )
})) {
  t.test(`an annotation is invalid: ${why}`, async (t) => {
    t.type(paramHeadersOf(schema), 'string')
  })
}

t.test('keys may have 1024 characters together', async (t) => {
  t.equal(
    annotationsOf(
      object({
        ['k'.repeat(1_000)]: object({
          ['l'.repeat(24)]: region,
          ['m'.repeat(24)]: { ...region, 'x-mcp-header': 'Other' }
        })
      })
    ).length,
    2
  )
})

t.test('a schema without its annotations has everything else', async (t) => {
  const schema = {
    ...object({
      a: { ...region, description: 'kept' },
      'x-mcp-header': { type: 'string' },
      deep: { type: 'array', items: [object({ region }), true], default: { 'x-mcp-header': 'a value' } }
    }),
    'x-mcp-header': 7,
    $defs: { region, 'x-mcp-header': region },
    dependencies: { a: ['b'] },
    not: region,
    examples: [region]
  }
  t.same(withoutParamHeaders(schema), {
    ...object({
      a: { type: 'string', description: 'kept' },
      'x-mcp-header': { type: 'string' },
      deep: {
        type: 'array',
        items: [object({ region: { type: 'string' } }), true],
        default: { 'x-mcp-header': 'a value' }
      }
    }),
    $defs: { region: { type: 'string' }, 'x-mcp-header': { type: 'string' } },
    dependencies: { a: ['b'] },
    not: { type: 'string' },
    examples: [region]
  })
  t.match(schema.$defs.region, { 'x-mcp-header': 'Region' }, 'the given one is as it was')
})

t.test('64 annotations are not too many, and a schema may nest as deep as a message', async (t) => {
  t.equal(
    annotationsOf(
      object(
        Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`p${n}`, { type: 'string', 'x-mcp-header': `P${n}` }]))
      )
    ).length,
    64
  )
  const nested = (levels: number): Record<string, unknown> =>
    levels === 0 ? object({ region }) : object({ a: nested(levels - 1) })
  t.equal(annotationsOf(nested(30)).length, 1)
  t.type(paramHeadersOf(nested(100_000 / 1_000)), 'string')
})

t.test('no schema makes it throw, and what is found is a token on a pure chain of properties', async (t) => {
  const annotated = fc.record({
    type: fc.constantFrom('string', 'integer', 'boolean', 'number'),
    'x-mcp-header': fc.oneof(fc.constantFrom('A', 'B', 'c', 'd-e'), fc.string({ maxLength: 3 }))
  })
  const leaf = fc.oneof(annotated, fc.constantFrom(null, true, 'text', [], {}))
  const { schema } = fc.letrec<{ schema: unknown; properties: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.record(
        {
          properties: tie('properties'),
          items: tie('schema'),
          anyOf: fc.array(tie('schema'), { maxLength: 2 }),
          $defs: tie('properties')
        },
        { requiredKeys: [] }
      )
    ),
    properties: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.dictionary(fc.string({ maxLength: 3 }), tie('schema'), { maxKeys: 3 })
    )
  }))
  let valid = 0
  fc.assert(
    fc.property(fc.dictionary(fc.string({ maxLength: 3 }), schema, { maxKeys: 3 }), (properties) => {
      const found = paramHeadersOf({ properties })
      const stripped = paramHeadersOf(withoutParamHeaders({ properties }))
      if (stripped.length > 0) return false
      if (typeof found === 'string') return true
      valid += found.length
      return found.every(({ header, path }) => {
        let at: unknown = { properties }
        for (const key of path) at = (at as { properties: Record<string, unknown> }).properties[key]
        return (
          /^Mcp-Param-[!-~]+$/.test(header) &&
          (at as Record<string, unknown>)['x-mcp-header'] === header.slice('Mcp-Param-'.length)
        )
      })
    }),
    { numRuns: 2_000 }
  )
  t.ok(valid > 100, 'valid ones are among them')
})

t.test('examples of the specification', async (t) => {
  for (const [text, value] of [
    ['us-west1', 'us-west1'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
    ['', ''],
    ['two words', 'two words']
  ] as const) {
    t.equal(encodeHeader(text), value)
    t.equal(decodeHeader(value), text)
  }
})

t.test('every text comes back as it went, in visible ASCII without blanks at its ends', async (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme' }),
    fc.string(),
    fc.string().map((inner) => `=?base64?${inner}?=`),
    fc.constantFrom('\ufeffbom', '\0', '\t', '=?base64?=', '=?base64??=')
  )
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(text, (text) => {
        const value = encodeHeader(text)
        return /^$|^[!-~]$|^[!-~][ -~]*[!-~]$/.test(value) && decodeHeader(value) === text
      }),
      { numRuns: 2_000 }
    )
  )
})

t.test('a damaged sentinel is no text', async (t) => {
  for (const inner of [
    'SGVsbG8',
    'SGVsbG9=',
    'SGVs!!!bG8=',
    'SGVs bG8=',
    '=',
    'SGVsbG8==',
    '_-8=',
    '/w==',
    '7aCA',
    '4pyT\t'
  ]) {
    t.equal(decodeHeader(`=?base64?${inner}?=`), undefined, inner)
  }
  for (const value of ['é', 'a\0b', 'a\x7f', '\x80']) t.equal(decodeHeader(value), undefined, JSON.stringify(value))
  for (const literal of ['=?base64?SGVsbG8=', 'SGVsbG8=?=', '=?BASE64?SGVsbG8=?=', '=?base64?=', '=?utf-8?q?a?='])
    t.equal(decodeHeader(literal), literal, 'not a sentinel, so it is what it is')
})

const schema = object({
  region,
  count: { type: 'integer', 'x-mcp-header': 'Count' },
  on: { type: 'boolean', 'x-mcp-header': 'On' },
  deep: object({ name: { type: 'string', 'x-mcp-header': 'Name' } })
})
const annotations = annotationsOf(schema)

t.test(
  'a call has headers for what it says: none for null and for what is absent, an empty one for an empty text',
  async (t) => {
    t.same(headersFor(annotations, { region: '', count: -7, on: false, deep: { name: 'ü' } }), {
      'Mcp-Param-Region': '',
      'Mcp-Param-Count': '-7',
      'Mcp-Param-On': 'false',
      'Mcp-Param-Name': '=?base64?w7w=?='
    })
    t.same(headersFor(annotations, { region: null, count: undefined, deep: null }), {})
    t.same(headersFor(annotations, undefined), {})
    t.same(headersFor(annotations, { region: { a: 1 }, deep: [] }), {})
    t.same(headersFor(annotations, { count: 2 ** 53 }), {})
  }
)

t.test('the headers of a call pass its own check, and no other call passes with them', async (t) => {
  const args = fc.record(
    {
      region: fc.option(fc.string({ unit: 'binary' }), { freq: 5 }),
      count: fc.option(fc.maxSafeInteger(), { freq: 5 }),
      on: fc.option(fc.boolean(), { freq: 5 }),
      deep: fc.option(fc.record({ name: fc.string() }, { requiredKeys: [] }), { freq: 5 })
    },
    { requiredKeys: [] }
  )
  // eslint-disable-next-line typescript/no-explicit-any
  const said = (value: Record<string, any>): string =>
    JSON.stringify(
      [value['region'] ?? null, value['count'] ?? null, value['on'] ?? null, value['deep']?.name ?? null].map((item) =>
        Object.is(item, -0) ? 0 : item
      )
    ) // eslint-disable-line typescript/no-explicit-any
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(args, args, (one, other) => {
        const headers = given(headersFor(annotations, one))
        return (
          paramMismatch(annotations, one, headers) === undefined &&
          (paramMismatch(annotations, other, headers) === undefined) === (said(one) === said(other))
        )
      }),
      { numRuns: 2_000 }
    )
  )
})

t.test('integers are compared as numbers, everything else as text', async (t) => {
  for (const value of ['42', '42.0', '042', '42.000'])
    t.equal(paramMismatch(annotations, { count: 42 }, given({ 'Mcp-Param-Count': value })), undefined, value)
  for (const value of ['42.5', '4.2e1', '0x2a', '', ' 42', '42.0000000000000000000000001', '+42'])
    t.type(paramMismatch(annotations, { count: 42 }, given({ 'Mcp-Param-Count': value })), 'string', value)
  t.type(paramMismatch(annotations, { region: '42' }, given({ 'Mcp-Param-Region': '42.0' })), 'string')
  t.type(paramMismatch(annotations, { on: true }, given({ 'Mcp-Param-On': 'True' })), 'string')
  t.equal(
    paramMismatch(annotations, { count: 'many' }, given({ 'Mcp-Param-Count': 'many' })),
    undefined,
    'a wrong type is for the tool to refuse'
  )
})

t.test('what is missing, superfluous, damaged or there twice is refused in words that name the header', async (t) => {
  t.match(
    paramMismatch(annotations, { region: 'eu' }, given({})),
    /Mcp-Param-Region is missing.*params\.arguments\.region/
  )
  t.match(
    paramMismatch(annotations, { deep: { name: 'x' } }, given({ 'Mcp-Param-Name': 'y' })),
    /Mcp-Param-Name.*params\.arguments\.deep\.name/
  )
  t.match(paramMismatch(annotations, {}, given({ 'Mcp-Param-Region': '' })), /Mcp-Param-Region is there/)
  t.match(paramMismatch(annotations, { region: null }, given({ 'Mcp-Param-Region': 'null' })), /Leave it out/)
  t.match(paramMismatch(annotations, { region: 'eu' }, given({ 'Mcp-Param-Region': '=?base64?!?=' })), /damaged/)
  t.match(paramMismatch(annotations, { region: 'é' }, given({ 'Mcp-Param-Region': 'é' })), /damaged/)
  t.match(paramMismatch(annotations, { region: 'eu, us' }, new Map([['mcp-param-region', ['eu', 'us']]])), /2 times/)
  t.equal(
    paramMismatch(annotations, {}, given({ 'Mcp-Param-Other': 'x' })),
    undefined,
    'what no annotation names is not looked at'
  )
})

t.test('an integer that a double cannot hold has no header that says the same', async (t) => {
  for (const text of ['9007199254740993', '1e300', '-9007199254740992']) {
    const args = parseJson(Buffer.from(`{"count":${text}}`))
    t.match(paramMismatch(annotations, args, given({ 'Mcp-Param-Count': text })), /2\^53/, text)
    t.match(paramMismatch(annotations, args, given({})), /2\^53/, text)
  }
})

t.test('members of the prototype are no arguments', async (t) => {
  const odd = annotationsOf(
    object({
      constructor: object({ name: { type: 'string', 'x-mcp-header': 'A' } }),
      toString: { type: 'string', 'x-mcp-header': 'B' }
    })
  )
  t.equal(odd.length, 2)
  t.same(headersFor(odd, {}), {})
  t.equal(paramMismatch(odd, {}, given({})), undefined)
})
