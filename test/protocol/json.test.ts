// JSON text to value and back: nothing lost, nothing let through that would hurt later.

import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/protocol/messages.ts'
import { depthOf, maxDepth, maxValues, parseJson, parseText } from '../../src/protocol/json.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const through = (text: string) => JSON.stringify(parseJson(bytes(text)))
const refused = (input: Uint8Array): boolean => {
  try {
    parseJson(input)
    return false
  } catch (error) {
    if (error instanceof GatewayError && (error.code === 'parse_error' || error.code === 'invalid_request')) return true
    throw error
  }
}

t.test('any JSON value comes through as it is', async () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 2 }), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      return depthOf(bytes(text)) > maxDepth || through(text) === JSON.stringify(value)
    }),
    { numRuns: 2_000 }
  )
})

t.test('any bytes parse as JSON.parse would have it, or are a parse error', async () => {
  const agree = (input: Uint8Array): boolean => {
    let expected: string | undefined
    try {
      expected = JSON.stringify(JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(input)))
    } catch {
      return refused(input)
    }
    return depthOf(input) > maxDepth
      ? refused(input)
      : JSON.stringify(JSON.parse(JSON.stringify(parseJson(input)))) === expected
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), agree), { numRuns: 5_000 })
  // Near misses of JSON: far likelier to slip through than noise.
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(), fc.integer({ min: 0, max: 255 }), (value, at, byte) => {
      const input = bytes(JSON.stringify(value))
      input[at % input.length] = byte
      return agree(input)
    }),
    { numRuns: 5_000 }
  )
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          '{',
          '}',
          '[',
          ']',
          ',',
          ':',
          '"',
          '\\',
          '1',
          '.',
          'e',
          '-',
          '+',
          '0',
          'true',
          'null',
          '"a"',
          ' ',
          '\n',
          '\u2028',
          '\ufeff'
        ),
        { maxLength: 12 }
      ),
      (parts) => agree(bytes(parts.join('')))
    ),
    { numRuns: 10_000 }
  )
})

t.test('a number keeps all its digits', async (t) => {
  const digits = (max: number) =>
    fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: max }).map((list) => list.join(''))
  fc.assert(
    fc.property(fc.boolean(), digits(30), fc.option(digits(30)), (negative, whole, fraction) => {
      const number =
        (negative ? '-' : '') + (whole.replace(/^0+/, '') || '0') + (fraction === null ? '' : `.${fraction}1`)
      const back = through(`{"a":[${number}]}`).slice(6, -2)
      // Either letter by letter, or another spelling of the same number that a double holds exactly enough.
      return back === number || (number.replace(/\D/g, '').length <= 15 && Number(back) === Number(number))
    }),
    { numRuns: 5_000 }
  )
  for (const number of [
    '9007199254740993',
    '12345678901234567890',
    '123456789.123456789',
    '0.1234567890123456789',
    '1e400',
    '-1E-400',
    '1.7976931348623157e309',
    '100000000000000000000000000000000001'
  ])
    t.equal(through(number), number)
  t.equal(parseText('9007199254740991'), 9007199254740991, 'what a number holds exactly stays a number')
  t.equal(parseText('1763680000123456'), 1763680000123456)
  t.equal(through('"12345678901234567890"'), '"12345678901234567890"', 'digits in a string are a string')
})

t.test('what JSON.parse refuses is refused with long numbers in it too, and what it takes is taken', async (t) => {
  const piece = fc.constantFrom(
    '12345678901234567890',
    '-1e999',
    '012345678901234567890',
    '1-2',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    ' ',
    '"a"',
    '"',
    '"\\u0000',
    '"\\u0001"',
    'null',
    '1',
    '\n'
  )
  const parses = (parse: (text: string) => unknown, text: string): boolean => {
    try {
      parse(text)
      return true
    } catch {
      return false
    }
  }
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 8 }),
      (pieces) => parses(JSON.parse, pieces.join('')) === parses(parseText, pieces.join(''))
    ),
    { numRuns: 50_000 }
  )
  t.throws(() => parseText('{12345678901234567890:1}'))
  t.throws(() => parseText(`{12345678901234567890${' '.repeat(100)}:1}`))
  const every = Array.from({ length: 32 }, (_, code) => `\\u00${code.toString(16).padStart(2, '0')}`).join('')
  t.throws(() => parseText(`["${every}",12345678901234567890]`), 'a text made to defeat the marks is refused')
  t.same(
    JSON.stringify(parseText(`["${every.slice(6)}",12345678901234567890]`)),
    JSON.stringify([JSON.parse(`"${every.slice(6)}"`), 0]).replace(',0]', ',12345678901234567890]')
  )
})

t.test('what JSON.parse lets through and we do not', async (t) => {
  for (const [what, input] of [
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x7b, 0x7d]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['a raw surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['latin-1', [0x22, 0xe9, 0x22]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0, 0x7d, 0]],
    ['UTF-16 without a mark', [0x7b, 0, 0x7d, 0]],
    ['a cut character', [0x22, 0xe2, 0x82, 0x22]],
    ['beyond Unicode', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]]
  ] as const)
    t.ok(refused(Uint8Array.from(input)), what)
  t.equal(
    parseJson(bytes('"\\u0000\u2028\ud83d\ude00"')),
    '\0\u2028\u{1f600}',
    'while NUL, line separators and astral characters are data'
  )
  t.equal(through('"\\ud800"'), '"\\ud800"', 'and an escaped lone surrogate stays escaped')
})

t.test('how many values', async (t) => {
  const list = (count: number, item: string) => bytes(`[${Array(count).fill(item).join()}]`)
  t.notOk(refused(list(maxValues - 2, '1')))
  t.ok(refused(list(maxValues, '1')))
  t.notOk(refused(list(Math.floor(maxValues / 2) - 2, '{}')))
  t.ok(refused(list(maxValues / 2 + 1, '{}')), 'an object takes more memory than a number')
  t.notOk(refused(bytes(JSON.stringify(','.repeat(2 * maxValues)))), 'commas in a string are text')
})

t.test('depth', async (t) => {
  const nest = (depth: number, open = '[', close = ']') =>
    bytes(open.repeat(depth) + (open === '[' ? '' : '1') + close.repeat(depth))
  t.notOk(refused(nest(maxDepth)))
  t.ok(refused(nest(maxDepth + 1)))
  t.notOk(refused(nest(maxDepth, '{"a":', '}')))
  t.ok(refused(nest(maxDepth + 1, '{"a":', '}')))
  t.equal(depthOf(bytes('"[[[[{{{{"')), 0, 'brackets in a string are text')
  t.equal(depthOf(bytes('"\\"[[[" , [')), 1, 'an escaped quote does not end a string')
  t.equal(depthOf(bytes(']]]][')), 0, 'a text that closes too early is no JSON, so its depth does not matter')
  const start = performance.now()
  t.ok(refused(bytes('['.repeat(200_000))))
  t.ok(refused(bytes('{"a":'.repeat(200_000))))
  t.ok(performance.now() - start < 10_000, 'linear: the square of it would take minutes')
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 10 }), (value) => {
      const deepest = (item: unknown): number =>
        typeof item !== 'object' || item === null ? 0 : 1 + Math.max(0, ...Object.values(item).map(deepest))
      return depthOf(bytes(JSON.stringify(value))) === deepest(value)
    }),
    { numRuns: 2_000 }
  )
})

t.test('keys that mean something to the language are data', async (t) => {
  const text =
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":1,"n":12345678901234567890}'
  const value = parseJson(bytes(text)) as Record<string, unknown>
  t.ok(Object.hasOwn(value, '__proto__'))
  t.equal(Object.getPrototypeOf(value), Object.prototype)
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
  t.equal(JSON.stringify(value), text)
  t.equal(JSON.stringify({ ...value }), text, 'and a copy keeps them')
})

t.test('an error never quotes the text', async (t) => {
  try {
    parseJson(bytes('{"password": canary}'))
    t.fail('must throw')
  } catch (error) {
    t.ok(error instanceof GatewayError)
    const { message, cause, data } = error as GatewayError
    t.notMatch(`${message} ${String(cause)} ${JSON.stringify(data)}`, /canary/)
  }
})

t.test('a number of a megabyte is compared with its double in linear time', (t) => {
  const number = `0.1${'0'.repeat(1_000_000)}1`
  const began = performance.now()
  t.equal(JSON.stringify(parseText(`{"a":${number}}`)), `{"a":${number}}`)
  t.ok(performance.now() - began < 5_000, 'the square of its length would take an hour')
  t.equal(
    JSON.stringify(parseText(`[${'0'.repeat(0)}0.5${'0'.repeat(1_000)}]`)),
    '[0.5]',
    'zeros at the end change nothing'
  )
  t.end()
})
