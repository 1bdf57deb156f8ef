// Logs what a child writes to its standard error: secrets are masked, and the length and number of lines are limited.

import { createTokenBucket } from '../../limits/limits.ts'
import { finished } from '../../protocol/json-steps.ts'
import { StepQueue, type StepSource } from '../../time/turns.ts'
import { printable } from '../rpc/decode-json.ts'
import type { LinkContext } from '../rpc/transport.ts'
import { createLineReader } from './child-output.ts'

const maxLineBytes = 4_096
const maxLineLength = 1_000
const linesPerSecond = 20
const lineBurst = 200
/** The shortest time between two log lines that say how many lines were left out. */
const tellMs = 60_000
/** The most lines that are held back until the server has answered. */
const maxEarlyLines = 100

/**
 * Logs the lines; none of them counts as a failure of the server. Above `linesPerSecond`, lines are left out. If the
 * server does not start, its lines are logged at debug level, because the caller logs the reason in one line.
 */
export function createStderrLog(
  upstream: string,
  mask: (text: string) => string,
  { clock, events, log, memory }: LinkContext,
  source: StepSource
) {
  const bucket = createTokenBucket(clock, linesPerSecond, lineBurst)
  /** Lines left out since the last line that was logged, and since the last report of left-out lines. */
  let dropped = 0
  let untold = 0
  let toldAt = -Infinity
  /** The lines written before the server has answered; undefined once it has. */
  let early: string[] | undefined = []

  function note(bytes: Buffer): void {
    if (bytes.length === 0) return
    if (!bucket.take()) {
      dropped++
      untold++
      return
    }
    const leftOut = dropped
    dropped = 0
    if (clock.now() - toldAt >= tellMs) tell()
    const stderr = printable(mask(bytes.toString()), maxLineLength)
    // A server that cannot start writes the same lines at every attempt.
    const isOld = events.stderr?.(stderr, leftOut) === true
    if (early === undefined) return write(isOld ? 'debug' : 'info', [stderr])
    early.push(stderr)
    if (early.length > maxEarlyLines) write('debug', early.splice(0, 1))
  }

  function write(level: 'debug' | 'info', written: readonly string[]): void {
    for (const stderr of written) log[level]({ upstream, stderr }, 'upstream stderr')
  }

  function tell(): void {
    if (untold === 0) return
    log.warn({ upstream, lines: untold }, "left out lines of the upstream's stderr: too many at once")
    untold = 0
    toldAt = clock.now()
  }

  const lines = createLineReader(maxLineBytes, note, note)
  const work = new StepQueue(source, memory)
  return {
    push: (chunk: Buffer): void => work.push(lines.push(chunk), chunk.length),
    /** The server has answered. */
    started(): void {
      write('info', early ?? [])
      early = undefined
    },
    /** @param read gets the lines, once all are read, if the server has not answered; otherwise an empty list */
    end(read: (early: readonly string[]) => void): void {
      work.whenIdle(() => {
        // A last line without a line feed often says why the child gave up.
        if (lines.held > 0) finished(lines.push(Buffer.from('\n')))
        tell()
        read(early ?? [])
        write('debug', early?.splice(0) ?? [])
      })
    }
  }
}
