// What a child writes on its standard error, as lines of our log: free text, never an error signal (2025-11-25 basic/transports
// "stdio"). A flood costs the child its lines, not us our memory or our log.

import { createBucket } from './bucket.ts'
import { printable } from './decode.ts'
import { createLines } from './lines.ts'
import type { Log } from '../observe/log.ts'
import type { Clock } from './clock.ts'

export interface StderrOptions {
  readonly upstream: string
  /** Values that must not be written to the log, should the child print its own environment. */
  readonly secrets: readonly string[]
  readonly clock: Clock
  readonly log: Log
}

export interface Stderr {
  push (chunk: Buffer): void
  /** Says how much was left out, if anything was. */
  end (): void
}

const maxLineBytes = 4_096
const maxLineLength = 1_000
const linesPerSecond = 20
const lineBurst = 200
/** A shorter value is no secret, and masking it would spoil ordinary words. */
const minSecretLength = 8

export function createStderr ({ upstream, secrets, clock, log }: StderrOptions): Stderr {
  const bucket = createBucket(clock, linesPerSecond, lineBurst)
  const masked = secrets.filter((secret) => secret.length >= minSecretLength).sort((a, b) => b.length - a.length)
  let dropped = 0

  function note (bytes: Buffer): void {
    if (!bucket.take()) {
      dropped++
      return
    }
    let text = bytes.toString()
    for (const secret of masked) text = text.replaceAll(secret, '***')
    report()
    log.info({ upstream, stderr: printable(text, maxLineLength) }, 'upstream stderr')
  }

  function report (): void {
    if (dropped > 0) log.warn({ upstream, lines: dropped }, 'left out lines of the upstream\'s stderr: too many at once')
    dropped = 0
  }

  const lines = createLines({ maxBytes: maxLineBytes, line: note, tooLong: note })
  return {
    push: lines.push,
    end () {
      // A last line without its end is often the reason why the child gave up.
      if (lines.held > 0) lines.push(Buffer.from('\n'))
      report()
    }
  }
}
