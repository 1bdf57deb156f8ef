// What a child writes (2025-11-25 basic/transports "stdio"): JSON-RPC messages on its standard output, a line each, and
// free text for our log on its standard error, where secrets are masked. Memory and log lines are bounded.

import { createTokenBucket } from '../../limits/limits.ts'
import { isObject } from '../../protocol/messages.ts'
import { createByteChunks, decodeJson, idIn, printable } from '../rpc/decode-json.ts'
import { uncertainError } from '../rpc/errors.ts'
import { maskParts, secretParts } from '../rpc/mask.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'

const LF = 0x0a
const CR = 0x0d
/** How much of a line that is too long is kept to find the call it answers. */
const keptBytes = 256

/**
 * Work is linear however the stream is cut.
 * @param maxBytes of a line without its end
 * @param line gets each line without its end (LF or CRLF); never empty, valid only during the call
 * @param tooLong gets the first and last bytes of a line that is left out, when it has ended
 */
export function createLineReader(
  maxBytes: number,
  line: (line: Buffer) => void,
  tooLong: (head: Buffer, tail: Buffer) => void
) {
  const chunks = createByteChunks()
  let head: Buffer | undefined
  let tail: Buffer = Buffer.alloc(0)

  /** Keeps samples of a line that is too long, and nothing else of it. */
  function overflow(rest: Buffer): void {
    chunks.add(rest)
    const known = chunks.take()
    if (head === undefined || head.length < keptBytes)
      head = Buffer.concat([head ?? known.subarray(0, 0), known.subarray(0, keptBytes)]).subarray(0, keptBytes)
    // A copy: a slice would keep the whole of what it was cut from.
    tail = Buffer.from(Buffer.concat([tail, known.subarray(-keptBytes)]).subarray(-keptBytes))
  }

  function end(rest: Buffer): void {
    // One byte more than the limit: it may be the CR of the line's end.
    if (head === undefined && chunks.size + rest.length <= maxBytes + 1) {
      chunks.add(rest)
      const whole = chunks.take()
      const trimmed = whole.at(-1) === CR ? whole.subarray(0, -1) : whole
      if (trimmed.length > maxBytes) return tooLong(whole.subarray(0, keptBytes), whole.subarray(-keptBytes))
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
    /** Bytes held back for a line that has not ended. */
    get held() {
      return chunks.size
    },
    push(chunk: Buffer): void {
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

/** Debug prints of a busy server pass; what goes on above this rate would keep us from the messages of others. */
const strayPerSecond = 200
const strayBurst = 10_000
/** Enough of a line to mask what is secret in it, and to show what it is. */
const sampleBytes = 4_096
const sampleLength = 200

/**
 * Hands the messages to `rpc`. Servers print banners and debug lines among them although they must not: these are left
 * out.
 * @param flooded too many lines are no messages
 */
export function createMessageReader(
  { name, maxMessageBytes }: StdioDefinition,
  { clock, warnings }: LinkContext,
  mask: (text: string) => string,
  rpc: RpcClient,
  flooded: (reason: Error) => void
) {
  const bucket = createTokenBucket(clock, strayPerSecond, strayBurst)
  let stopped = false

  function countStray(): void {
    if (bucket.take()) return
    const text =
      `Upstream ${name} floods its standard output with lines that are no messages, so its process was ended: ` +
      'it has to write its log to standard error.'
    flooded(uncertainError(name, 'upstream_protocol', text))
  }

  const { push } = createLineReader(
    maxMessageBytes,
    (line) => {
      if (stopped) return
      let message: unknown
      try {
        message = decodeJson(line)
      } catch (error) {
        const sample = printable(mask(line.toString('utf8', 0, sampleBytes)), sampleLength)
        const { message: reason } = error as Error
        warnings.warn({ line: sample, reason }, 'left out a line of the upstream that is no message')
        return countStray()
      }
      rpc.receive(message)
      if (!isObject(message) && !Array.isArray(message)) countStray()
    },
    (head, tail) => {
      if (stopped) return
      warnings.warn({ maxMessageBytes }, 'left out a message of the upstream that is too large')
      const id = idIn(head.toString('latin1'), tail.toString('latin1')) ?? rpc.onlyOpen()
      const text = `The answer of upstream ${name} is larger than its limit of ${maxMessageBytes} bytes.`
      if (id !== undefined) rpc.fail(id, uncertainError(name, 'upstream_protocol', text))
      countStray()
    }
  )

  return {
    push,
    /** Nothing is read after this. */
    stop(): void {
      stopped = true
    }
  }
}

const maxLineBytes = 4_096
const maxLineLength = 1_000
const linesPerSecond = 20
const lineBurst = 200

/** Logs the standard error, which is never an error signal. A flood costs the child its lines, not us our log. */
export function createStderrLog(upstream: string, mask: (text: string) => string, { clock, log }: LinkContext) {
  const bucket = createTokenBucket(clock, linesPerSecond, lineBurst)
  let dropped = 0

  function note(bytes: Buffer): void {
    if (!bucket.take()) {
      dropped++
      return
    }
    report()
    log.info({ upstream, stderr: printable(mask(bytes.toString()), maxLineLength) }, 'upstream stderr')
  }

  function report(): void {
    if (dropped > 0) log.warn({ upstream, lines: dropped }, "left out lines of the upstream's stderr: too many at once")
    dropped = 0
  }

  const lines = createLineReader(maxLineBytes, note, note)
  return {
    push: lines.push,
    end(): void {
      // A last line without its end is often the reason why the child gave up.
      if (lines.held > 0) lines.push(Buffer.from('\n'))
      report()
    }
  }
}

/**
 * A child may print its own environment or command line: masks the definition's variables and arguments, and of
 * `--name=value` the value too.
 */
export function createMask({ args, env }: Pick<StdioDefinition, 'args' | 'env'>): (text: string) => string {
  const secrets = secretParts([...Object.values(env), ...args, ...args.map((arg) => arg.slice(arg.indexOf('=') + 1))])
  return (text) => maskParts(text, secrets)
}
