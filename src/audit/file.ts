// The file of the audit log: records are added to its end, and what is there is never written over. It is opened for
// each addition, so that it can be rotated by renaming it.

import { type FileHandle, open } from 'node:fs/promises'
import type { WriteLines } from './writes.ts'

const lineFeed = 0x0a

/**
 * Writes one after the other: two at once could mix their lines. A line that a crash or a full disk has cut off is
 * ended first, so that the next record is a line of its own.
 */
export function createFileWriter(path: string): WriteLines {
  let last = Promise.resolve()
  let mayBeCutOff = true

  async function append(lines: string): Promise<void> {
    const file = await open(path, 'a+', 0o600)
    try {
      const isCutOff = mayBeCutOff && (await endsWithinLine(file))
      mayBeCutOff = true
      await file.appendFile(isCutOff ? `\n${lines}` : lines)
      mayBeCutOff = false
    } finally {
      await file.close()
    }
  }

  return (lines) => {
    const next = last.then(() => append(lines))
    // Whoever wrote is told; the next write is tried all the same.
    last = next.catch(() => undefined)
    return next
  }
}

async function endsWithinLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat()
  if (size === 0) return false
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return bytesRead === 1 && buffer[0] !== lineFeed
}
