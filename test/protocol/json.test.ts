// JSON text to value and back: nothing lost, nothing let through that would hurt later.

import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/protocol/messages.ts'
import { maxDepth, maxValues, parseJson, parseJsonSteps } from '../../src/protocol/json.ts'
import { JsonLimitError, maxInexact, maxMembers } from '../../src/protocol/json-scan.ts'
import { finished, jsonSteps } from '../../src/protocol/json-steps.ts'
import { stringOf, textOfMessage } from '../../src/protocol/json-text.ts'
import { longTextSteps } from '../../src/protocol/json-writer.ts'
import { runs } from '../kit/runs.ts'

const bytes = (text: string): Buffer => Buffer.from(text)
const parseText = (text: string) => parseJson(bytes(text))
const through = (text: string) => JSON.stringify(parseJson(bytes(text)))
const refused = (input: Buffer): boolean => {
  try {
    parseJson(input)
    return false
  } catch (error) {
    if (error instanceof GatewayError && (error.code === 'parse_error' || error.code === 'invalid_request')) return true
    throw error
  }
}

/** That this thread has taken: the time by the clock is also that of other processes. */
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Levels of a value as it was parsed. */
const depthOf = (item: unknown): number =>
  typeof item !== 'object' || item === null ? 0 : 1 + Math.max(0, ...Object.values(item).map(depthOf))

t.test('any JSON value comes through as it is', async () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 2 }), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      return depthOf(value) > maxDepth || through(text) === JSON.stringify(value)
    }),
    { numRuns: runs(2_000) }
  )
})

t.test('any bytes parse as JSON.parse would have it, or are a parse error', async () => {
  const agree = (input: Buffer): boolean => {
    let expected: unknown
    try {
      expected = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(input))
    } catch {
      return refused(input)
    }
    return depthOf(expected) > maxDepth
      ? refused(input)
      : JSON.stringify(JSON.parse(JSON.stringify(parseJson(input)))) === JSON.stringify(expected)
  }
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 60 }).map((each) => Buffer.from(each)),
      agree
    ),
    { numRuns: runs(5_000) }
  )
  // Near misses of JSON: far likelier to slip through than noise.
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(), fc.integer({ min: 0, max: 255 }), (value, at, byte) => {
      const input = bytes(JSON.stringify(value))
      input[at % input.length] = byte
      return agree(input)
    }),
    { numRuns: runs(5_000) }
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
    { numRuns: runs(10_000) }
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
    { numRuns: runs(5_000) }
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
    { numRuns: runs(50_000) }
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
    t.ok(refused(Buffer.from(input)), what)
  t.equal(
    parseJson(bytes('"\\u0000\u2028\ud83d\ude00"')),
    '\0\u2028\u{1f600}',
    'while NUL, line separators and astral characters are data'
  )
  t.equal(through('"\\ud800"'), '"\\ud800"', 'and an escaped lone surrogate stays escaped')
})

t.test('bytes of a long text that are no UTF-8 are refused as such, wherever they stand', async (t) => {
  const text = JSON.stringify({ long: 'ä'.repeat(100_000), list: Array.from({ length: 20_000 }, (_, at) => at) })
  t.same(parseJson(Buffer.from(text)), JSON.parse(text), 'the control')
  const size = Buffer.byteLength(text)
  for (const at of [0, 3, 12, 65_540, 131_073, 200_020, size - 40_000, size - 1]) {
    const input = Buffer.from(text)
    input[at] = 0xff
    t.throws(() => parseJson(input), { code: 'parse_error' }, `at ${at}`)
  }
  const input = Buffer.from(text)
  input[100_001] = 0xff
  t.throws(() => parseJson(input), { message: 'The body is not valid UTF-8.' })
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
  t.notOk(refused(bytes(JSON.stringify(`\\"${'[{'.repeat(maxDepth)}`))), 'brackets in a string are text')
  const start = cpuMs()
  t.ok(refused(bytes('['.repeat(200_000))))
  t.ok(refused(bytes('{"a":'.repeat(200_000))))
  t.ok(cpuMs() - start < 10_000, 'linear: the square of it would take minutes')
})

t.test('a long text is read in pieces as a whole one is', async (t) => {
  const blank = fc.constantFrom('', ' ', '\n', ' '.repeat(50_000))
  const long = fc.constantFrom(
    `"${'x'.repeat(40_000)}"`,
    `"${'\\n\\u0041\\"\\\\'.repeat(10_000)}"`,
    `"${'\u{1f600}'.repeat(140_000)}"`,
    `[${'1,'.repeat(30_000)}12345678901234567890]`,
    `{${Array.from({ length: 5_000 }, (_, at) => `"key ${at}":{"n":[${at}]}`).join(', ')}}`
  )
  const value = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom('1', 'true', '""', '{}', '[]', '"a"', '1e999'),
      long,
      tie('list'),
      tie('object')
    ),
    list: fc
      .array(fc.tuple(blank, tie('value'), blank), { maxLength: 5 })
      .map((items) => `[${items.map((item) => item.join('')).join()}]`),
    object: fc
      .array(fc.tuple(blank, fc.constantFrom('a', 'b', '7', '__proto__', '\\u0061', ''), blank, tie('value'), blank), {
        maxLength: 5
      })
      .map((items) => `{${items.map(([a, name, b, item, c]) => `${a}"${name}"${b}:${item}${c}`).join()}}`)
  })).value
  const same = (generated: string): boolean => {
    // A character that the spoiling has cut in two is another one in UTF-8.
    const text = new TextDecoder().decode(bytes(generated))
    let expected: unknown
    try {
      expected = JSON.parse(text)
    } catch {
      return refused(bytes(text))
    }
    const actual = JSON.stringify(parseText(text))
    return JSON.stringify(JSON.parse(actual)) === JSON.stringify(expected)
  }
  fc.assert(fc.property(value, same), { numRuns: runs(200) })
  const spoil = fc.constantFrom(',', ']', '}', '[', '{', ':', '"', '1', ' ', '""')
  fc.assert(
    fc.property(value, fc.nat(), spoil, fc.boolean(), (text, at, piece, replace) => {
      const cut = at % text.length
      return same(text.slice(0, cut) + piece + text.slice(replace ? cut + 1 : cut))
    }),
    { numRuns: 80, endOnFailure: true }
  )
  for (const text of [
    `[${'1,'.repeat(40_000)}]`,
    `[${'1,'.repeat(20_000)},${'1,'.repeat(20_000)}1]`,
    `[1"${'x'.repeat(40_000)}"]`,
    `["${'x'.repeat(40_000)}"1]`,
    `{"a":1"${'x'.repeat(40_000)}"}`,
    `[${'1,'.repeat(40_000)}1}`,
    `[${'1,'.repeat(40_000)}1]]`,
    `[${'1,'.repeat(40_000)}1][${'1,'.repeat(40_000)}1]`,
    `1[${'1,'.repeat(40_000)}1]`
  ])
    t.ok(refused(bytes(text)), text.slice(0, 20))
})

/** As JSON.parse has it, except that a number which no double holds is there as it was written. */
function isSame(actual: unknown, expected: unknown): boolean {
  if (typeof actual !== 'object' || actual === null) return Object.is(actual, expected)
  if (isRawJson(actual)) {
    const written = (actual as { rawJSON: string }).rawJSON
    return Object.is(Number(written), expected) && String(expected) !== written
  }
  if (typeof expected !== 'object' || expected === null) return false
  if (Object.getPrototypeOf(actual) !== Object.getPrototypeOf(expected)) return false
  const [mine, theirs] = [Object.entries(actual), Object.entries(expected)]
  return (
    mine.length === theirs.length &&
    mine.every(([name, item], at) => name === theirs[at]?.[0] && isSame(item, theirs[at]?.[1]))
  )
}

const { isRawJSON: isRawJson } = JSON as unknown as { isRawJSON(value: unknown): boolean }

t.test('a text that is cut wherever it can be is read as JSON.parse reads it, or refused as there', async (t) => {
  const cuts = { piece: 6, stringPiece: 5, scan: 3, near: 2 }
  const blank = fc.constantFrom('', '', '', ' ', '\n', '\t\r          ')
  const text = fc
    .array(
      fc.constantFrom(
        'a',
        '\\n',
        '\\"',
        '\\\\',
        '\\u0041',
        '\\ud83d',
        '😀',
        '[',
        '}',
        ',',
        ':',
        '1e999',
        '\\u0000',
        '\u2028'
      ),
      {
        maxLength: 12
      }
    )
    .map((parts) => `"${parts.join('')}"`)
  const number = fc.constantFrom(
    ...['0', '-0', '12.5', '1E+2', '1e999', '-1e-400', '12345678901234567890', '0.1000000000000000055', '0e999'],
    ...['1.0000000000000000', '100000000000000000000', '9007199254740993', '5e-324']
  )
  const name = fc.constantFrom('"a"', '"b"', '"7"', '"3"', '"__proto__"', '"\\u0061"', '""', '"toJSON"')
  const { value } = fc.letrec<{ value: string }>((tie) => {
    const item = fc.tuple(blank, tie('value'), blank).map((parts) => parts.join(''))
    const member = fc.tuple(blank, name, blank, item).map(([a, key, b, own]) => `${a}${key}${b}:${own}`)
    return {
      value: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom('true', 'null', '[]', '{}', '[ ]'),
        number,
        text,
        fc.array(item, { maxLength: 5 }).map((items) => `[${items.join()}]`),
        fc.array(member, { maxLength: 5 }).map((members) => `{${members.join()}}`)
      )
    }
  })
  const agrees = (given: string): boolean =>
    agreesAs(given, given) && (!given.isWellFormed() || agreesAs(given, Buffer.from(given)))
  const agreesAs = (given: string, source: string | Buffer): boolean => {
    let expected: unknown
    let actual: unknown
    let valid = true
    try {
      expected = JSON.parse(given)
    } catch {
      valid = false
    }
    try {
      actual = finished(jsonSteps(source, { maxDepth, maxValues, keepsSource: true }, cuts))
    } catch (error) {
      // The names above are no longer than a piece: a longer one is a mutation.
      return error instanceof SyntaxError && (!valid || error instanceof JsonLimitError)
    }
    return valid && isSame(actual, expected) && isPassedOn(actual, JSON.stringify(expected))
  }
  // The text that is kept for whoever it is passed on to: in one line, the same value, no member twice.
  const isPassedOn = (value: unknown, expected: string): boolean =>
    [textOfMessage({ result: value }), finished(longTextSteps({ result: value }))].map(stringOf).every((line) => {
      const members = line.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1
      return (
        !/[\r\n]/.test(line) &&
        JSON.stringify(JSON.parse(line)) === `{"result":${expected}}` &&
        members === membersOf(value) + 1
      )
    })
  const membersOf = (value: unknown): number => {
    if (typeof value !== 'object' || value === null || isRawJson(value)) return 0
    const own = Array.isArray(value) ? 0 : Object.keys(value).length
    return Object.values(value).reduce<number>((sum, each) => sum + membersOf(each), own)
  }
  const spoil = fc.constantFrom(
    ...[
      ',',
      ']',
      '}',
      '[',
      '{',
      ':',
      '"',
      '1',
      ' ',
      '""',
      '\\',
      '-',
      '.',
      'e',
      'null',
      '\0',
      '\ufeff',
      '1e999',
      '[]',
      '{}'
    ],
    ''
  )
  const spoilt = fc
    .tuple(value, fc.array(fc.tuple(fc.nat(), spoil, fc.nat({ max: 3 })), { minLength: 1, maxLength: 2 }))
    .map(([whole, changes]) =>
      changes.reduce((now, [place, piece, left]) => {
        const at = place % (now.length + 1)
        return now.slice(0, at) + piece + now.slice(at + left)
      }, whole)
    )
  t.ok(agrees('{"3":0,"3":0.1000000000000000055}'), 'a member that comes twice, and a number that counts as one value')
  fc.assert(fc.property(value, agrees), { numRuns: runs(5_000), seed: 1 })
  fc.assert(fc.property(spoilt, agrees), { numRuns: runs(5_000), seed: 2 })
  fc.assert(fc.property(value, agrees), { numRuns: runs(2_000) })
  const inOneLine = value.map((given) => given.replaceAll(/[\r\n]/g, ' ').replaceAll(/1e999|-1e-400|\d{10,}/g, '1'))
  fc.assert(fc.property(inOneLine, agrees), { numRuns: runs(5_000), seed: 3 })
  fc.assert(fc.property(spoilt, agrees), { numRuns: runs(2_000) })
})

t.test('a long text takes many steps, none of which is long', async (t) => {
  const names = (from: number): string =>
    Array.from({ length: maxMembers }, (_, at) => `"name ${from + at}":{"m${from + at}":${at}}`).join()
  const objects = Array.from({ length: 8 }, (_, at) => `{${names(at * maxMembers)}}`).join()
  for (const text of [`[${objects}]`, `["${'\\n'.repeat(4_000_000)}"]`, `[${'0.12345678901234567,'.repeat(4_000)}1]`]) {
    const steps = parseJsonSteps(bytes(text))
    let [count, longestMs] = [0, 0]
    for (let done = false; !done; count++) {
      const before = cpuMs()
      done = steps.next().done === true
      longestMs = Math.max(longestMs, cpuMs() - before)
    }
    t.ok(count > text.length / 1_000_000, `${count} steps`)
    t.ok(longestMs < 2_000, `the longest took ${longestMs} ms of CPU`)
  }
})

t.test('how many numbers that no double holds', async (t) => {
  const list = (count: number): Buffer => bytes(`[${Array(count).fill('1e999').join()}]`)
  t.equal(JSON.stringify(parseJson(list(maxInexact))).length, maxInexact * 6 + 1)
  t.throws(() => parseJson(list(maxInexact + 1)), { code: 'invalid_request', message: /send them as strings/ })
})

t.test('how many members one object has', async (t) => {
  const object = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"m${at}":[]`).join()}}`
  t.equal(Object.keys(parseJson(bytes(object(maxMembers))) as object).length, maxMembers)
  t.notOk(refused(bytes(`[${object(maxMembers)},${object(maxMembers)}]`)), 'each is counted by itself')
  for (const text of [object(maxMembers + 1), `[{},{"a":${object(maxMembers + 1)}}]`])
    t.throws(() => parseJson(bytes(text)), { code: 'invalid_request', message: /more than 10000 members\. Send/ })
  const same = `{${Array(maxMembers + 1)
    .fill('"m":1')
    .join()}}`
  t.throws(() => parseJson(bytes(same)), { code: 'invalid_request' }, 'also where all have one name')
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

t.test('a long number keeps its digits, and one that is too long is refused', async (t) => {
  const number = `0.1${'0'.repeat(4_000)}1`
  t.equal(through(`{"a":${number}}`), `{"a":${number}}`)
  t.equal(through(`[0.5${'0'.repeat(1_000)}]`), '[0.5]', 'zeros at the end change nothing')
  t.throws(() => parseText(`{"a":0.1${'0'.repeat(1_000_000)}1}`), {
    code: 'invalid_request',
    message: /number of more than 4096 characters/
  })
})

t.test('numbers of hundreds of digits stay as they were written, without an exponent, too', async (t) => {
  for (const number of [`1${'0'.repeat(400)}`, `0.${'0'.repeat(400)}1`, `-1${'0'.repeat(350)}.5`])
    t.equal(JSON.stringify(parseJson(Buffer.from(`[${number}]`))), `[${number}]`)
  t.same(parseJson(Buffer.from(`[1${'0'.repeat(20)}]`)), [1e20])
})
