// Lines as bytes: whatever is put into one is what JSON says of it, however long it is.

import fc from 'fast-check'
import t from 'tap'
import { escapedJson, LineBytes } from '../../src/observe/lines/line-bytes.ts'

const bytesOf = (put: (line: LineBytes) => void): string => {
  const line = new LineBytes()
  put(line)
  return String(line.take())
}

t.test('a value is what JSON says of it', async () => {
  const duration = fc.tuple(fc.integer({ min: 0, max: 10_000_000 }), fc.integer({ min: 0, max: 9 }))
  const value = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme-ascii', minLength: 3_000, maxLength: 9_000 }),
    fc.double(),
    fc.integer(),
    fc.maxSafeInteger(),
    duration.map(([whole, tenths]) => (whole * 10 + tenths) / 10),
    fc.constantFrom(
      -0,
      0.05,
      9.95,
      2 ** 31,
      2 ** 31 - 1,
      0.1 + 0.2,
      NaN,
      Infinity,
      1e21,
      '',
      '"',
      '\\',
      '\u007f',
      '\u202e'
    )
  )
  fc.assert(
    fc.property(fc.array(value), (values) => {
      const written = bytesOf((line) => {
        for (const each of values) line.value(each)
      })
      return written === values.map((each) => escapedJson(JSON.stringify(each))).join('')
    })
  )
})

t.test('texts, parts, ids and times stand as they are, beyond what there was room for', async (t) => {
  const text = '\u00fc\u20ac\ud83d\ude00'.repeat(2_000)
  t.equal(
    bytesOf((line) => {
      line.text(text)
      line.part(Buffer.from('part'))
      line.id('a-1_b')
      for (const ms of [7, 7, 1_767_000_000_000]) line.time(ms)
    }),
    `${text}part"a-1_b"771767000000000`
  )
})

t.test('what was taken stays as it was, and the next line begins anew', async (t) => {
  const line = new LineBytes()
  line.text(',one')
  line.put(0, '[')
  const taken = line.take()
  t.equal(line.length, 0)
  line.text('two')
  t.equal(String(taken), '[one')
  t.equal(String(line.view()), 'two')
})
