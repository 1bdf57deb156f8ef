// The lines of a worker's log, where standard error is a pipe: what several processes write to one pipe can mix within
// a line, beyond 4096 bytes (pipe(7) PIPE_BUF). So each worker has a pipe of its own, and the primary passes on whole
// lines.

import type { LineDestination } from '../../observe/lines/standard-error.ts'

/** Beyond it a line is passed on in pieces. */
const maxLineBytes = 1_048_576
const lineFeed = 0x0a

/** @returns when the worker has ended, and all of its lines are passed on */
export function forwardLines(from: NodeJS.ReadableStream, to: LineDestination): Promise<void> {
  let held: Buffer[] = []
  let heldBytes = 0
  const write = (...more: readonly Buffer[]): void => {
    if (heldBytes > 0 || more.length > 0) to.write(Buffer.concat([...held, ...more]))
    held = []
    heldBytes = 0
  }
  from.on('data', (chunk: Buffer) => {
    const end = chunk.lastIndexOf(lineFeed) + 1
    if (end > 0) write(chunk.subarray(0, end))
    if (end === chunk.length) return
    held.push(chunk.subarray(end))
    heldBytes += chunk.length - end
    if (heldBytes > maxLineBytes) write(Buffer.of(lineFeed))
  })
  return new Promise((over) => {
    from.once('close', () => {
      // Whoever is killed may leave half a line.
      if (heldBytes > 0) write(Buffer.of(lineFeed))
      over()
    })
  })
}
