// Buffers that are given back: a whole one is empty afterwards, and what others have a part in stays as it is.

import t from 'tap'
import { freeBuffer } from '../../src/limits/free-buffer.ts'

t.test('a long buffer that has its block to itself is given back', async (t) => {
  const whole = Buffer.alloc(65_536, 'x')
  freeBuffer(whole)
  t.equal(whole.length, 0)
  t.ok(whole.buffer instanceof ArrayBuffer && whole.buffer.detached)
  freeBuffer(whole)
})

t.test('a part of a block, and a short buffer, stay as they are', async (t) => {
  const block = Buffer.alloc(65_536, 'x')
  freeBuffer(block.subarray(100))
  freeBuffer(block.subarray(0, -1))
  t.equal(block.length, 65_536)
  const short = Buffer.from('x'.repeat(1_000))
  freeBuffer(short)
  t.equal(short.toString(), 'x'.repeat(1_000))
})
