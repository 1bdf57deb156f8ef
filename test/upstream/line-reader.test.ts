// Lines out of bytes: the same lines however the bytes are cut, and bounded memory whatever comes.

import fc from 'fast-check'
import t from 'tap'
import { finished } from '../../src/protocol/json-steps.ts'
import { createLineReader } from '../../src/upstream/stdio/child-output.ts'
import { runs } from '../kit/runs.ts'

interface Seen {
  readonly lines: string[]
  readonly tooLong: Array<[string, string]>
}

function read(chunks: Buffer[], maxBytes: number): Seen {
  const seen: Seen = { lines: [], tooLong: [] }
  const lines = createLineReader(
    maxBytes,
    (line) => {
      seen.lines.push(line.toString('latin1'))
    },
    (head, tail) => {
      seen.tooLong.push([head.toString('latin1'), tail.toString('latin1')])
    }
  )
  for (const chunk of chunks) finished(lines.push(chunk))
  return seen
}

function cut(bytes: Buffer, cuts: number[]): Buffer[] {
  const at = [...new Set(cuts.map((each) => each % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length))
}

const text = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\n', '\r\n', '\r', '\n\n', '\u2028', '{"jsonrpc":"2.0"}'),
      fc.nat(700).map((length) => 'x'.repeat(length))
    )
  )
  .map((parts) => Buffer.from(parts.join('')))

t.test('any chunking gives the same lines', async (t) => {
  fc.assert(
    fc.property(text, fc.array(fc.nat()), fc.nat(600), (bytes, cuts, maxBytes) => {
      t.strictSame(read(cut(bytes, cuts), maxBytes), read([bytes], maxBytes))
    }),
    { numRuns: runs(300) }
  )
})

t.test('the lines are those of a plain split, without those that are too long', async (t) => {
  fc.assert(
    fc.property(text, fc.array(fc.nat()), (bytes, cuts) => {
      const whole = bytes.toString('latin1').split('\n').slice(0, -1)
      const bare = (line: string): string => line.replace(/\r$/, '')
      const seen = read(cut(bytes, cuts), 500)
      t.strictSame(
        seen.lines,
        whole.map(bare).filter((line) => line.length <= 500)
      )
      t.strictSame(
        seen.tooLong,
        whole.filter((line) => bare(line).length > 500).map((line) => [line.slice(0, 256), line.slice(-256)])
      )
    }),
    { numRuns: runs(300) }
  )
})

t.test('a line as long as the limit passes and one byte more does not', async (t) => {
  t.same(read([Buffer.from('12345\n123456\n12345\r\n')], 5), {
    lines: ['12345', '12345'],
    tooLong: [['123456', '123456']]
  })
})

t.test('what follows a line that is too long is read as usual', async (t) => {
  const long = Buffer.alloc(1_000, 'a')
  t.same(read([long, long, Buffer.from('bc\nnext\n')], 100).lines, ['next'])
})

t.test('a line that never ends costs no more memory than the limit', async (t) => {
  const lines = createLineReader(
    1_000,
    () => {
      t.fail('no line')
    },
    () => t.fail('no end')
  )
  const chunk = Buffer.alloc(300, 'x')
  for (let n = 0; n < 10_000; n++) {
    finished(lines.push(chunk))
    if (lines.held > 1_001) t.fail('held too much')
  }
  t.ok(lines.held <= 1_001)
})

t.test('a long line in small pieces takes linear time', async (t) => {
  let length = 0
  const lines = createLineReader(
    100_000_000,
    (line) => {
      length = line.length
    },
    () => {}
  )
  const piece = Buffer.alloc(64, 'x')
  const start = process.threadCpuUsage()
  for (let n = 0; n < 200_000; n++) finished(lines.push(piece))
  finished(lines.push(Buffer.from('\n')))
  t.equal(length, 200_000 * 64)
  // Joining at each piece would copy a terabyte.
  const { user, system } = process.threadCpuUsage(start)
  t.ok(user + system < 10_000_000, 'within ten seconds of CPU')
})
