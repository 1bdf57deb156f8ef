// Streams a response of any length as fast as the client reads, and ends it if the client stops reading.

import { Readable } from 'node:stream'
import { type Clock, createDelay, steadyClock } from '../../time/clock.ts'
import { AdminReply } from '../route.ts'

/** How long a client may read nothing, in milliseconds. */
const stalledMs = 60_000
/** The bytes of one write. With the time above it gives the lowest speed of a client. */
const pieceBytes = 65_536

/**
 * @param free called once when the answer is over, however it ends
 * @returns the body of a response
 */
export function streamed(
  texts: AsyncIterable<Buffer> | Iterable<Buffer>,
  free: () => void,
  clock: Pick<Clock, 'timer'> = steadyClock
): Readable {
  const stalled = createDelay(clock)
  async function* read(): AsyncGenerator<Buffer, void, undefined> {
    for await (const bytes of texts) {
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        stalled.start(stalledMs, () => body.destroy())
        yield bytes.subarray(at, at + pieceBytes)
        stalled.close()
      }
    }
  }
  const body = Readable.from(read(), { highWaterMark: 1 })
  body.once('close', () => {
    stalled.close()
    free()
  })
  return body
}

async function* bytesOf(lines: AsyncIterable<string>): AsyncGenerator<Buffer, void, undefined> {
  for await (const text of lines) yield Buffer.from(text)
}

/**
 * A file of JSON Lines.
 * @param free as of `streamed`
 */
export function exported(
  lines: AsyncIterable<string>,
  fileName: string,
  free: () => void,
  clock?: Pick<Clock, 'timer'>
): AdminReply {
  const name = encodeURIComponent(fileName)
  return new AdminReply(streamed(bytesOf(lines), free, clock), {
    'Content-Type': 'application/jsonl; charset=utf-8',
    'Content-Disposition': `attachment; filename*=UTF-8''${name}`
  })
}
