// Lines as an answer that is as long as it has to be: read as fast as its reader takes it, and given up on where that
// takes nothing any more.

import { Readable } from 'node:stream'
import { type Clock, createDelay, steadyClock } from '../../time/clock.ts'
import { AdminReply } from '../route.ts'

/** For so long a reader may take nothing, in milliseconds. */
const stalledMs = 60_000
/** Taken at a time, in bytes: how fast a reader has to be follows from both. */
const pieceBytes = 65_536

/** @param free called once when the answer is over, however it ends */
export function exported(
  lines: AsyncIterable<string>,
  fileName: string,
  free: () => void,
  clock: Pick<Clock, 'timer'> = steadyClock
): AdminReply {
  const stalled = createDelay(clock)
  async function* read(): AsyncGenerator<Buffer, void, undefined> {
    for await (const text of lines) {
      const bytes = Buffer.from(text)
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
  const name = encodeURIComponent(fileName)
  return new AdminReply(body, {
    'Content-Type': 'application/jsonl; charset=utf-8',
    'Content-Disposition': `attachment; filename*=UTF-8''${name}`
  })
}
