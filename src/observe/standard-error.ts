// Where the lines of the log go. Nobody waits for them: neither a full disk nor a reader that stands still stops calls.

import { fstatSync } from 'node:fs'
import pino from 'pino'

// Of lines that could not be written yet. They are tried again, and the newest are left out beyond this.
const maxUnwrittenBytes = 1_048_576

export function openStandardError(): { write(text: string): unknown } {
  const kind = fstatSync(2)
  if (kind.isFIFO() || kind.isSocket()) return withoutWaiting(process.stderr)
  const destination = pino.destination({ dest: 2, sync: true, maxLength: maxUnwrittenBytes })
  // The terminal was closed or the disk is full.
  destination.on('error', () => {})
  return destination
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
    write(text: string): void {
      if (stream.writableLength + text.length > maxUnwrittenBytes) lostBytes += text.length
      else stream.write(text)
    }
  }
}
