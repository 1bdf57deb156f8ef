import fc from 'fast-check'
import t from 'tap'
import { plainJson } from '../../src/config/hosts/mcpjson.ts'

t.test('comments and trailing commas go, strings stay', async (t) => {
  const cases: [string, unknown][] = [
    ['{"a": 1, // one\n "b": 2}', { a: 1, b: 2 }],
    ['/* x */ {"a": /* , */ [1, 2, /* last */ ], }', { a: [1, 2] }],
    [
      '{"url": "https://a.example/*b*/", "c": "\\"// no comment,]"}',
      { url: 'https://a.example/*b*/', c: '"// no comment,]' }
    ],
    ['\ufeff{"a": ",}"}', { a: ',}' }],
    ['[1\n,\n]', [1]]
  ]
  for (const [text, value] of cases) t.same(JSON.parse(plainJson(text)), value, text)
})

t.test('what is wrong in JSON stays wrong', async (t) => {
  for (const text of ['[,]', '{"a": 1,, }', '{"a": "b}', '[1, 2', '{a: 1}', '/* [1]', '[1] /'])
    t.throws(() => JSON.parse(plainJson(text)), SyntaxError, text)
})

t.test('any JSON comes through unchanged', async (t) => {
  fc.assert(fc.property(fc.json(), (text) => plainJson(text) === text))
  t.pass('unchanged')
})
