// Reads what a child writes to its standard output: one JSON-RPC message a line (2025-11-25 basic/transports "stdio").
// Memory and log lines are limited.

import { createTokenBucket } from '../../limits/limits.ts'
import { JsonLimitError } from '../../protocol/json-scan.ts'
import { IncomingMemory } from '../../limits/incoming-memory.ts'
import { isObject } from '../../protocol/messages.ts'
import { StepQueue, type StepSource, type Steps } from '../../time/turns.ts'
import { ByteChunks, decodeSteps, idIn, printable } from '../rpc/decode-json.ts'
import { uncertainError } from '../rpc/errors.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { StrayLines } from '../rpc/stray-lines.ts'

const LF = 0x0a
const CR = 0x0d
/** How much of the start and of the end of a line that is too long is kept, to find the call that it answers. */
const keptBytes = 256
/** The most lines that are read in one turn of the event loop. */
const linesPerStep = 16

/**
 * Cuts a stream into lines; the work is linear in the bytes, whatever the chunks.
 * @param maxBytes the longest line, without LF or CRLF
 * @param line gets each line without LF or CRLF; the buffer is valid only until the returned steps are done
 * @param tooLong gets the first and the last bytes of a line that is left out, once the line has ended; `noMemory` says
 * why there was no memory for it, if that is the reason
 * @param incoming counts the memory of the current line; default: it is not counted
 */
export function createLineReader(
  maxBytes: number,
  line: (line: Buffer) => Steps | void,
  tooLong: (head: Buffer, tail: Buffer, noMemory: string | undefined) => void,
  incoming?: IncomingMemory
) {
  const chunks = new ByteChunks()
  let noMemory: string | undefined
  let head: Buffer | undefined
  let tail: Buffer = Buffer.alloc(0)

  /** @returns whether a line of so many bytes may be held */
  function fits(bytes: number): boolean {
    if (bytes > maxBytes + 1) return false
    if (incoming?.fits(bytes) !== false) return true
    noMemory = incoming.reason(bytes)
    return false
  }

  /** Keeps only the first and the last bytes of a line that is too long. */
  function overflow(rest: Buffer): void {
    chunks.add(rest)
    const known = chunks.take()
    incoming?.fits(0)
    if (head === undefined || head.length < keptBytes)
      head = Buffer.concat([head ?? known.subarray(0, 0), known.subarray(0, keptBytes)]).subarray(0, keptBytes)
    // A copy, since a slice would keep the whole buffer in memory.
    tail = Buffer.from(Buffer.concat([tail, known.subarray(-keptBytes)]).subarray(-keptBytes))
  }

  function end(rest: Buffer): Steps | void {
    // A line may have one byte more than the limit here, which may be the CR of its CRLF.
    if (head === undefined && fits(chunks.size + rest.length)) {
      chunks.add(rest)
      const whole = chunks.take()
      const trimmed = whole.at(-1) === CR ? whole.subarray(0, -1) : whole
      if (trimmed.length > maxBytes) return tooLong(whole.subarray(0, keptBytes), whole.subarray(-keptBytes), undefined)
      return line(trimmed)
    }
    overflow(rest)
    const sample = [head ?? tail, tail, noMemory] as const
    head = undefined
    tail = Buffer.alloc(0)
    noMemory = undefined
    tooLong(...sample)
  }

  return {
    /** The number of bytes of the line that has not ended yet. */
    get held() {
      return chunks.size
    },
    /** Frees the memory of a line that has not ended. */
    end(): void {
      chunks.take()
      incoming?.fits(0)
    },
    *push(chunk: Buffer): Steps {
      let from = 0
      let lines = 0
      for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
        const steps = end(chunk.subarray(from, at))
        if (steps !== undefined) yield* steps
        incoming?.fits(0)
        from = at + 1
        if (++lines % linesPerStep === 0) yield
      }
      if (from === chunk.length) return
      const rest = chunk.subarray(from)
      if (head !== undefined || !fits(chunks.size + rest.length)) return overflow(rest)
      chunks.add(rest)
    }
  }
}

/**
 * The rate of lines that are no messages. A busy server with debug output stays below it; a server above it is ended,
 * because reading its lines would delay the messages of others.
 */
const strayPerSecond = 200
const strayBurst = 10_000
/** How much of such a line is searched for secrets, in bytes, and how much is logged, in characters. */
const sampleBytes = 4_096
const sampleLength = 200

/**
 * Passes the messages to `rpc`. Lines that are no messages, such as banners and debug output, break the specification
 * but are common: they are left out.
 * @param flooded called when too many lines are no messages
 */
export function createMessageReader(
  definition: StdioDefinition,
  { clock, warnings, memory, log }: LinkContext,
  { mask, strayLines }: { readonly mask: (text: string) => string; readonly strayLines: StrayLines },
  rpc: RpcClient,
  source: StepSource,
  flooded: (reason: Error) => void
) {
  const { name, maxMessageBytes } = definition
  const bucket = createTokenBucket(clock, strayPerSecond, strayBurst)
  let hasAnswered = false

  /** Logs the line itself only until the server has answered: later lines may contain the data of a call. */
  function tellStray(line: Buffer, reason: string): void {
    strayLines.note(definition, log, () => ({
      bytes: line.length,
      reason,
      ...(!hasAnswered && { line: printable(mask(line.toString('utf8', 0, sampleBytes)), sampleLength) })
    }))
    countStray()
  }

  function countStray(): void {
    if (bucket.take()) return
    const text =
      `Upstream ${name} floods its standard output with lines that are no messages, so its process was ended: ` +
      'it has to write its log to standard error.'
    flooded(uncertainError(name, 'upstream_protocol', text))
  }

  /** Fails the call whose answer is left out, if the sample of the answer shows which call it is. */
  function failCall(
    head: Buffer,
    tail: Buffer,
    reason: string,
    code: 'upstream_protocol' | 'too_many' = 'upstream_protocol'
  ): void {
    const id = idIn(head.toString('latin1'), tail.toString('latin1')) ?? rpc.onlyOpen()
    if (id !== undefined) rpc.fail(id, uncertainError(name, code, `The answer of upstream ${name} ${reason}.`))
  }

  function* message(line: Buffer): Steps {
    let message: unknown
    try {
      message = yield* decodeSteps(line, (values) => incoming.reserveValues(values))
    } catch (error) {
      const { message: reason } = error as Error
      if (error instanceof JsonLimitError) failCall(line.subarray(0, keptBytes), line.subarray(-keptBytes), reason)
      return tellStray(line, reason)
    }
    if (!isObject(message) && !Array.isArray(message)) return tellStray(line, 'is not a JSON object')
    hasAnswered = true
    rpc.receive(message)
  }

  const incoming = new IncomingMemory(memory)
  const lines = createLineReader(
    maxMessageBytes,
    (line) => (line.length === 0 ? countStray() : message(line)),
    (head, tail, noMemory) => {
      warnings.warn({ maxMessageBytes, noMemory }, 'left out a message of the upstream that is too large')
      if (noMemory === undefined) failCall(head, tail, `is larger than its limit of ${maxMessageBytes} bytes`)
      else failCall(head, tail, `is lost: ${noMemory}`, 'too_many')
      countStray()
    },
    incoming
  )
  const work = new StepQueue(source, memory)

  return {
    push: (chunk: Buffer): void => work.push(lines.push(chunk), lines.held + chunk.length),
    /** Runs a callback once all received output is read. */
    whenIdle: work.whenIdle,
    /** Reads nothing more. */
    stop(): void {
      work.close()
      lines.end()
    }
  }
}
