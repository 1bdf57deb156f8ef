// Where the lines of the log go. Nobody waits for them: neither a full disk nor a reader that stands still stops calls.

import { fstatSync, writeSync } from 'node:fs'
import { createDelay, steadyClock } from '../../time/clock.ts'

// Of lines that could not be written yet. They are tried again, and the newest are left out beyond this.
const maxUnwrittenBytes = 1_048_576
const retryMs = 100

export interface LineDestination {
  /** @param lines which are others once it has returned */
  write(lines: Buffer): unknown
}

export function openStandardError(): LineDestination {
  const kind = fstatSync(2)
  return kind.isFIFO() || kind.isSocket() ? withoutWaiting(process.stderr) : openLines(2)
}

/** @param fd of a file or a terminal */
export function openLines(fd: number): LineDestination {
  const delay = createDelay(steadyClock)
  let unwritten: Buffer[] = []
  let unwrittenBytes = 0
  function keep(lines: Buffer): void {
    if (unwrittenBytes + lines.length > maxUnwrittenBytes) return
    unwritten.push(Buffer.from(lines))
    unwrittenBytes += lines.length
  }
  function writeNow(lines: Buffer): void {
    let rest = lines
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest))
    } catch {
      // The disk is full, or the terminal was closed or stands still.
      keep(rest)
      delay.start(retryMs, retry)
    }
  }
  function retry(): void {
    const lines = Buffer.concat(unwritten)
    unwritten = []
    unwrittenBytes = 0
    writeNow(lines)
  }
  return { write: (lines) => (unwrittenBytes > 0 ? keep(lines) : writeNow(lines)) }
}

/**
 * The stream of Node, which writes at once what a pipe takes. A synchronous write to a pipe whose reader stands still
 * would stop the whole process.
 */
function withoutWaiting(stream: NodeJS.WriteStream) {
  let lostBytes = 0
  stream.on('error', () => {}) // The reader is gone.
  stream.on('drain', () => {
    if (lostBytes === 0) return
    const line = { level: 40, time: Date.now(), lostBytes, msg: 'lines of the log were left out: nobody read them' }
    lostBytes = 0
    stream.write(`${JSON.stringify(line)}\n`)
  })
  return {
    write(lines: Buffer): void {
      if (stream.writableLength + lines.length > maxUnwrittenBytes) lostBytes += lines.length
      else stream.write(Buffer.from(lines))
    }
  }
}
