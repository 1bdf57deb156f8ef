// JSON as text in parts: the same text as in one go, whatever the value.

import fc from 'fast-check'
import t from 'tap'
import { arrayOf, keepSource, stringOf, textOfMessage } from '../../src/protocol/json-text.ts'
import { longTextSteps } from '../../src/protocol/json-writer.ts'
import { parseJson } from '../../src/protocol/json.ts'
import { finished } from '../../src/protocol/json-steps.ts'

const textOf = (value: unknown): string => {
  const text = finished(longTextSteps(value))
  const whole = stringOf(text)
  if (text.length !== Buffer.byteLength(whole)) throw new Error('another length')
  return whole
}

t.test('the parts of any value are what JSON.stringify gives', async () => {
  const large = fc.constantFrom<unknown>(
    'x'.repeat(200_000),
    '\u{1f600}'.repeat(70_001),
    `y${'\u{1f600}'.repeat(70_001)}`,
    '\ud800'.repeat(70_000),
    Array(60_000).fill(null),
    Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [`member ${at}`, [at, { at }]])),
    parseJson(Buffer.from('[12345678901234567890, 1e999]'))
  )
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.jsonValue(),
      large,
      fc.array(fc.option(tie('value'), { nil: undefined }), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom('a', '__proto__', '"', ''), fc.option(tie('value'), { nil: undefined }))
    )
  }))
  fc.assert(
    fc.property(value, (each) => textOf({ each }) === JSON.stringify({ each })),
    { numRuns: 60, endOnFailure: true }
  )
})

t.test('no step writes much', async (t) => {
  let count = 0
  for (const steps = longTextSteps({ text: 'x'.repeat(10_000_000) }); steps.next().done !== true;) count++
  t.ok(count >= 100, `${count} steps`)
})

t.test('texts of both kinds become an array', async (t) => {
  const long = finished(longTextSteps(['x']))
  t.equal(stringOf(arrayOf(['1', '{}'])), '[1,{}]')
  t.equal(stringOf(arrayOf(['1', long, long])), '[1,["x"],["x"]]')
})

t.test('a value that kept its source is written as it was read, wherever it stands', async (t) => {
  const source = `[ "${'\u{1f600}'.repeat(70_001)}" ]`
  for (const kept of [source, Buffer.from(source)]) {
    const content: object = JSON.parse(source)
    keepSource(content, kept)
    for (const result of [content, { content }, { left: undefined, content, isError: false }]) {
      const message = { id: 1, result }
      const expected = JSON.stringify(message).replace(JSON.stringify(content), () => source)
      const text = textOfMessage(message)
      t.ok(stringOf(text) === expected)
      t.equal(text.length, typeof kept === 'string' ? expected.length : Buffer.byteLength(expected))
      t.ok(textOf(message) === expected)
    }
    const copy = { ...content }
    t.ok(stringOf(textOfMessage({ copy })) === JSON.stringify({ copy }), 'a copy may be changed')
  }
})
