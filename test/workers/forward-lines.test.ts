// Lines of several workers do not mix within a line, in whatever pieces their pipes bring them.

import { PassThrough } from 'node:stream'
import t from 'tap'
import { forwardLines } from '../../src/cli/workers/forward-lines.ts'

t.test('only whole lines are passed on, also the half one of a worker that is killed', async (t) => {
  const written: string[] = []
  const to = { write: (lines: Buffer) => void written.push(lines.toString()) }
  const [one, two] = [new PassThrough(), new PassThrough()]
  const over = [one, two].map((from) => forwardLines(from, to))
  const say = (from: PassThrough, piece: string): Promise<void> =>
    new Promise((resolve) => void from.write(piece, () => setImmediate(resolve)))
  await say(one, '{"a":')
  await say(two, '{"b":1}\n{"b"')
  await say(one, '1}\n')
  await say(two, ':2}\n{"b":3')
  one.end()
  two.end()
  await Promise.all(over)
  t.same(written, ['{"b":1}\n', '{"a":1}\n', '{"b":2}\n', '{"b":3\n'])
})

t.test('a line that does not end is passed on in pieces, and never kept whole', async (t) => {
  let most = 0
  let bytes = 0
  const to = {
    write(lines: Buffer) {
      most = Math.max(most, lines.length)
      bytes += lines.length
    }
  }
  const from = new PassThrough()
  const over = forwardLines(from, to)
  for (let n = 0; n < 64; n++)
    if (!from.write(Buffer.alloc(65_536, 'x'))) await new Promise((resolve) => from.once('drain', resolve))
  from.end()
  await over
  t.ok(bytes >= 64 * 65_536)
  t.ok(most < 1_048_576 + 2 * 65_536)
})
