// Lines out of a stream of bytes: the framing of stdio (2025-11-25 basic/transports "stdio"). Memory is bounded by the
// limit, work is linear however the stream is cut.

import { createByteChunks } from '../rpc/byte-chunks.ts'

export interface LineReaderOptions {
  /** Longest line, in bytes without its end. */
  readonly maxBytes: number
  /** A line without its end (LF or CRLF); never empty. Valid only during the call. */
  line(line: Buffer): void
  /** A line was longer than the limit and is left out. Called when it has ended, with its first and last bytes. */
  tooLong(head: Buffer, tail: Buffer): void
}

export interface LineReader {
  push(chunk: Buffer): void
  /** Bytes held back for a line that has not ended. */
  readonly held: number
}

const LF = 0x0a
const CR = 0x0d
/** How much of a line that is too long is kept to find the call it answers. */
const sampleBytes = 256

export function createLineReader({ maxBytes, line, tooLong }: LineReaderOptions): LineReader {
  const chunks = createByteChunks()
  let head: Buffer | undefined
  let tail: Buffer = Buffer.alloc(0)

  /** Keeps samples of a line that is too long, and nothing else of it. */
  function overflow(rest: Buffer): void {
    chunks.add(rest)
    const known = chunks.take()
    if (head === undefined || head.length < sampleBytes)
      head = Buffer.concat([head ?? known.subarray(0, 0), known.subarray(0, sampleBytes)]).subarray(0, sampleBytes)
    // A copy: a slice would keep the whole of what it was cut from.
    tail = Buffer.from(Buffer.concat([tail, known.subarray(-sampleBytes)]).subarray(-sampleBytes))
  }

  function end(rest: Buffer): void {
    // One byte more than the limit: it may be the CR of the line's end.
    if (head === undefined && chunks.size + rest.length <= maxBytes + 1) {
      chunks.add(rest)
      const whole = chunks.take()
      const trimmed = whole.at(-1) === CR ? whole.subarray(0, -1) : whole
      if (trimmed.length > maxBytes) return tooLong(whole.subarray(0, sampleBytes), whole.subarray(-sampleBytes))
      if (trimmed.length > 0) line(trimmed)
      return
    }
    overflow(rest)
    const sample = [head ?? tail, tail] as const
    head = undefined
    tail = Buffer.alloc(0)
    tooLong(...sample)
  }

  return {
    get held() {
      return chunks.size
    },
    push(chunk) {
      let from = 0
      for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
        end(chunk.subarray(from, at))
        from = at + 1
      }
      if (from === chunk.length) return
      const rest = chunk.subarray(from)
      if (head !== undefined || chunks.size + rest.length > maxBytes + 1) return overflow(rest)
      chunks.add(rest)
    }
  }
}
