// What a child writes on its standard error, as lines of our log: free text, never an error signal (2025-11-25
// basic/transports "stdio"). A flood costs the child its lines, not us our memory or our log.

import { createTokenBucket } from '../../limits/token-bucket.ts'
import { printable } from '../rpc/decode-json.ts'
import { createLineReader } from './line-reader.ts'
import type { Log } from '../../observe/log.ts'
import type { Clock } from '../../time/clock.ts'
import type { Mask } from './mask-secrets.ts'

export interface StderrLogOptions {
  readonly upstream: string
  readonly mask: Mask
  readonly clock: Clock
  readonly log: Log
}

export interface StderrLog {
  push(chunk: Buffer): void
  /** Says how much was left out, if anything was. */
  end(): void
}

const maxLineBytes = 4_096
const maxLineLength = 1_000
const linesPerSecond = 20
const lineBurst = 200

export function createStderrLog({ upstream, mask, clock, log }: StderrLogOptions): StderrLog {
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

  const lines = createLineReader({ maxBytes: maxLineBytes, line: note, tooLong: note })
  return {
    push: lines.push,
    end() {
      // A last line without its end is often the reason why the child gave up.
      if (lines.held > 0) lines.push(Buffer.from('\n'))
      report()
    }
  }
}
