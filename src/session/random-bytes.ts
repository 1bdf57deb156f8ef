// Random bytes for ids, drawn from the system some kilobytes at a time: a draw for each id costs more than all else of
// the id. Each byte is given out once, and is then not kept.

import { randomFillSync } from 'node:crypto'

const blockBytes = 4_096

export function createRandomBytes(): (size: number) => Buffer {
  const block = Buffer.alloc(blockBytes)
  let at = blockBytes
  return (size) => {
    if (size > blockBytes) return randomFillSync(Buffer.alloc(size))
    if (at + size > blockBytes) {
      randomFillSync(block)
      at = 0
    }
    const bytes = Buffer.from(block.subarray(at, at + size))
    block.fill(0, at, at + size)
    at += size
    return bytes
  }
}
