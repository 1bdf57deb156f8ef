// The audit records of one tenant in this process, on their way to where they are kept: collected for a moment, written
// together, and written again where that failed.

import type { JsonObject } from '../protocol/messages.ts'
import type { Log } from '../observe/log.ts'
import { backoffMs, type Clock, createDelay, settledWithin } from '../time/clock.ts'
import { type Chain, recordsPerSignature, type SignedKind } from './chain.ts'
import type { createSegments } from './segments.ts'

/** Milliseconds for which records are collected, and characters beyond which they are written at once. */
const collectMs = 100
const batchChars = 65_536
/** What waits while it cannot be written, in characters. Beyond it records are lost, and their number is recorded. */
const maxWaitingOfTenant = 1024 * 1024
const maxWaitingOfProcess = 32 * 1024 * 1024
/** Nobody waits longer for a write: a file may be on a disk that hangs. In milliseconds. */
const maxWriteMs = 10_000
const firstRetryMs = 500
const maxRetryMs = 30_000

export type Trail = ReturnType<typeof createTrail>

export type WriteLines = (lines: string) => Promise<void>

export interface TrailOptions {
  readonly chain: Chain
  /** Undefined: not kept in the store. */
  readonly segments: ReturnType<typeof createSegments> | undefined
  /** Undefined: none. */
  readonly file: WriteLines | undefined
  /** Of all trails of the process, in characters. */
  readonly waiting: { chars: number }
  readonly clock: Clock
  readonly log: Log
}

/** What is written together, and where it still has to be. */
interface Batch {
  lines: string
  readonly missing: Set<WriteLines>
}

export function createTrail({ chain, segments, file, waiting, clock, log }: TrailOptions) {
  const sinks = [segments?.append, file].filter((sink) => sink !== undefined)
  const batches: Batch[] = []
  const timer = createDelay(clock)
  let waitingChars = 0
  let unsigned = 0
  let lost = 0
  let failures = 0
  let hasEnded = false
  let writing: Promise<void> | undefined
  let writingSince = Infinity

  const isFull = (): boolean => waitingChars > maxWaitingOfTenant || waiting.chars > maxWaitingOfProcess

  function push(line: string): void {
    const last = batches.at(-1)
    waitingChars += line.length + 1
    waiting.chars += line.length + 1
    // The first may be under way.
    if (last === undefined || batches.length === 1 || last.lines.length > batchChars)
      batches.push({ lines: `${line}\n`, missing: new Set(sinks) })
    else last.lines += `${line}\n`
  }

  function sign(kind: SignedKind, members: JsonObject): void {
    recordLost()
    unsigned = 0
    push(chain.signedRecord(kind, members))
  }

  function recordLost(): void {
    if (lost === 0 || hasEnded) return
    push(chain.record('lost', { records: lost }))
    lost = 0
  }

  async function write(): Promise<void> {
    for (let batch = batches[0]; batch !== undefined; batch = batches[0]) {
      for (const sink of batch.missing) {
        writingSince = clock.now()
        await sink(batch.lines)
        batch.missing.delete(sink)
      }
      batches.shift()
      waitingChars -= batch.lines.length
      waiting.chars -= batch.lines.length
      if (failures > 0) log.info('audit records are written again')
      failures = 0
      recordLost()
    }
  }

  /** Never rejects. */
  function flush(): Promise<void> {
    timer.close()
    return (writing ??= write()
      .catch((err: unknown) => {
        if (failures === 0) log.error({ err }, 'audit records cannot be written')
        timer.start(backoffMs(failures++, { firstMs: firstRetryMs, maxMs: maxRetryMs }), () => void flush())
      })
      .finally(() => {
        writing = undefined
        writingSince = Infinity
      }))
  }

  /** Never rejects. @returns false where it takes too long */
  const written = (): Promise<boolean> => settledWithin(clock, maxWriteMs, writeAll())

  /** Never rejects. */
  async function writeAll(): Promise<void> {
    // What came while others were written is written after them.
    while (batches.length > 0 && failures === 0) await flush()
  }

  /** Signs, writes, and keeps how far the chain is, so that what is gone later is missed. Never rejects. */
  async function writeSigned(kind: SignedKind, members: JsonObject): Promise<void> {
    sign(kind, members)
    const { head } = chain
    // Where the last attempt failed, it is tried once more.
    if (failures > 0) await settledWithin(clock, maxWriteMs, flush())
    if (!(await written()) || failures > 0) return
    await segments?.keepHead(head).catch((err: unknown) => log.debug({ err }, 'the head of a chain is not kept'))
  }

  function addRequired(kind: string, members: JsonObject): void {
    if (hasEnded) return void lost++
    push(chain.record(kind, members))
    if (++unsigned >= recordsPerSignature) sign('checkpoint', {})
    if (failures > 0) return
    if (waitingChars > batchChars) void flush()
    else if (!timer.pending) timer.start(collectMs, () => void flush())
  }

  return {
    /** The first record. */
    begin: (members: JsonObject): Promise<void> => writeSigned('begin', members),
    /** A record, which is lost where too much waits already. */
    add: (kind: string, members: JsonObject): void => (isFull() ? void lost++ : addRequired(kind, members)),
    /** A record that is never lost while the process lives: whoever adds it asks `isFull` before. */
    addRequired,
    /** No record would be taken now. */
    get isFull() {
      return isFull()
    },
    /** The last attempt to write failed, or takes too long. */
    get isFailing() {
      return failures > 0 || clock.now() - writingSince > maxWriteMs
    },
    /** It has its last record, and all are written. */
    get isOver() {
      return hasEnded && batches.length === 0
    },
    /** Resolves when all records so far are written, or could not be within some seconds. Never rejects. */
    written: async (): Promise<void> => void (await written()),
    /** Signs what is not signed yet, and names how far the other chains of the tenant were. Never rejects. */
    async checkpoint(kind: 'checkpoint' | 'end'): Promise<void> {
      if (kind === 'checkpoint' && unsigned === 0) return
      const others = await segments?.others().catch((err: unknown) => {
        log.debug({ err }, 'other chains are not known now')
        return undefined
      })
      if (hasEnded) return void (await written())
      const done = writeSigned(kind, { ...others })
      hasEnded = kind === 'end'
      await done
    },
    /** @returns how many records could not be written */
    close(): number {
      timer.close()
      waiting.chars -= waitingChars
      return lost + batches.reduce((sum, { lines }) => sum + lines.split('\n').length - 1, 0)
    }
  }
}
