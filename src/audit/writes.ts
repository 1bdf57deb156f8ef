// Lines on their way to the places where they are kept: collected for a moment, written together, and written again
// where that failed. A place that fails or hangs holds up no other.

import type { Log } from '../observe/log.ts'
import { backoffMs, type Clock, createDelay, settledWithin } from '../time/clock.ts'

/** Milliseconds for which lines are collected, and characters beyond which they are written at once. */
const collectMs = 100
const batchChars = 65_536
/** The most characters of a tenant that wait while they cannot be written. */
const maxWaitingOfTenant = 1024 * 1024
const maxWaitingOfProcess = 32 * 1024 * 1024
/** Nobody waits longer for a write: a file may be on a disk that hangs. In milliseconds. */
const maxWriteMs = 10_000
const firstRetryMs = 500
const maxRetryMs = 30_000

/** @param lines each with its line break */
export type WriteLines = (lines: string) => Promise<void>

export interface WritesOptions {
  /** The places by their names in the log. Undefined: there is none. */
  readonly places: Readonly<Record<string, WriteLines | undefined>>
  /** The characters that wait in the whole process. */
  readonly waiting: { chars: number }
  readonly clock: Clock
  readonly log: Log
}

interface Place {
  readonly name: string
  readonly write: WriteLines
  readonly timer: ReturnType<typeof createDelay>
  writing: Promise<void> | undefined
  /** The time at which the present write began. */
  since: number
  /** The failures in a row. */
  failures: number
}

/** Lines that are written together, and the places where they still have to be written. */
interface Batch {
  lines: string
  /** Whether the batch may be under way. */
  isTaken: boolean
  readonly missing: Set<Place>
}

export function createWrites({ places, waiting, clock, log }: WritesOptions) {
  const all = Object.entries(places).flatMap(([name, write]): Place[] =>
    write === undefined
      ? []
      : [{ name, write, timer: createDelay(clock), writing: undefined, since: Infinity, failures: 0 }]
  )
  const batches: Batch[] = []
  let chars = 0
  /** Lines that one place had to miss. */
  let missed = 0

  const isFull = (): boolean => chars > maxWaitingOfTenant || waiting.chars > maxWaitingOfProcess
  const isFailing = ({ failures, since }: Place): boolean => failures > 0 || clock.now() - since > maxWriteMs
  const nextFor = (place: Place): Batch | undefined => batches.find(({ missing }) => missing.has(place))

  function count(by: number): void {
    chars += by
    waiting.chars += by
  }

  function remove(batch: Batch): void {
    const at = batches.indexOf(batch)
    if (at < 0) return
    batches.splice(at, 1)
    count(-batch.lines.length)
  }

  async function write(place: Place): Promise<void> {
    for (let batch = nextFor(place); batch !== undefined; batch = nextFor(place)) {
      batch.isTaken = true
      place.since = clock.now()
      await place.write(batch.lines)
      batch.missing.delete(place)
      if (batch.missing.size === 0) remove(batch)
      if (place.failures > 0) log.info({ place: place.name }, 'audit records are written again')
      place.failures = 0
    }
  }

  /** Never rejects. */
  function flush(place: Place): Promise<void> {
    place.timer.close()
    return (place.writing ??= write(place)
      .catch((err: unknown) => {
        if (place.failures === 0) log.error({ err, place: place.name }, 'audit records cannot be written')
        const waitMs = backoffMs(place.failures++, { firstMs: firstRetryMs, maxMs: maxRetryMs })
        place.timer.start(waitMs, () => void flush(place))
      })
      .finally(() => {
        place.writing = undefined
        place.since = Infinity
        schedule(place)
      }))
  }

  function schedule(place: Place): void {
    if (place.failures > 0 || place.timer.pending || nextFor(place) === undefined) return
    place.timer.start(collectMs, () => void flush(place))
  }

  /** Never rejects. */
  async function writeAll(place: Place): Promise<void> {
    // What came while others were written is written after them.
    while (nextFor(place) !== undefined && place.failures === 0) await flush(place)
  }

  /** Drops what one place does not take, where another one has it. */
  function makeRoom(): void {
    for (const batch of [...batches]) {
      if (!isFull()) return
      if (batch.missing.size === all.length || ![...batch.missing].every(isFailing)) continue
      if (missed === 0) log.error({ places: [...batch.missing].map(({ name }) => name) }, 'audit records are left out')
      missed += linesOf(batch)
      remove(batch)
    }
  }

  return {
    /** A line without its line break, which will be written. */
    push(line: string): void {
      const last = batches.at(-1)
      if (last === undefined || last.isTaken || last.lines.length > batchChars) {
        if (all.length === 0) return
        batches.push({ lines: `${line}\n`, isTaken: false, missing: new Set(all) })
      } else last.lines += `${line}\n`
      count(line.length + 1)
      for (const place of all) {
        if (chars > batchChars && place.failures === 0) void flush(place)
        else schedule(place)
      }
    },
    /** Whether another line may be added. */
    hasRoom(): boolean {
      if (isFull()) makeRoom()
      return !isFull()
    },
    /** The last write to a place failed, or takes too long. */
    get isFailing() {
      return all.some(isFailing)
    },
    get isEmpty() {
      return batches.length === 0
    },
    /** Whether this place has every line. */
    isComplete: (name: string): boolean =>
      !batches.some(({ missing }) => [...missing].some((each) => each.name === name)),
    /** Resolves when all lines so far are written, or could not be within some seconds. Never rejects. */
    async written(): Promise<void> {
      await settledWithin(clock, maxWriteMs, Promise.all(all.map(writeAll)))
    },
    /** Tries once more where the last write failed. Resolves as `written`. */
    async retry(): Promise<void> {
      const failing = all.filter(({ failures }) => failures > 0)
      await settledWithin(clock, maxWriteMs, Promise.all(failing.map(flush)))
    },
    /** @returns how many lines are missing where they should be */
    close(): number {
      for (const { timer } of all) timer.close()
      waiting.chars -= chars
      return batches.reduce((sum, batch) => sum + linesOf(batch), missed)
    }
  }
}

const linesOf = ({ lines }: Batch): number => lines.split('\n').length - 1
