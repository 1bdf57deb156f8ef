// What a child writes to its standard error: free text for our log, in which secrets are masked, and which is bounded.

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
/** Between two lines of the log about those that are left out. */
const tellMs = 60_000
/** That are held until the server has answered. */
const maxEarlyLines = 100

/**
 * Logs the standard error, which is never an error signal. A flood costs the child its lines, not us our log. Where the
 * server does not come up, its lines are at debug: whoever wanted it says in one line why it did not.
 */
export function createStderrLog(
  upstream: string,
  mask: (text: string) => string,
  { clock, events, log, memory }: LinkContext,
  source: StepSource
) {
  const bucket = createTokenBucket(clock, linesPerSecond, lineBurst)
  /** Since the last line that was not; and of these, how many the log does not know of. */
  let dropped = 0
  let untold = 0
  let toldAt = -Infinity
  /** undefined: the server has answered. */
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
    // While it is away it says the same at every attempt.
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
    /** @param read what it wrote to it if its server has not answered, as soon as that is read */
    end(read: (early: readonly string[]) => void): void {
      work.whenIdle(() => {
        // A last line without its end is often the reason why the child gave up.
        if (lines.held > 0) finished(lines.push(Buffer.from('\n')))
        tell()
        read(early ?? [])
        write('debug', early?.splice(0) ?? [])
      })
    }
  }
}
