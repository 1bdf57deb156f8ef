// What the tests of the store share.

import pino from 'pino'
import type { Log } from '../../src/observe/log.ts'
import type { Store } from '../../src/store/port.ts'
import { until as untilTrue } from '../kit/until.ts'

export const quiet: Log = pino({ level: 'silent' })

/** A log that is kept: one object per line. */
export function recorded(): { log: Log; lines: Array<Record<string, unknown>>; text: () => string } {
  const texts: string[] = []
  const lines: Array<Record<string, unknown>> = []
  const log = pino(
    { level: 'trace', serializers: { err: pino.stdSerializers.err } },
    {
      write(line: string) {
        texts.push(line)
        lines.push(JSON.parse(line) as Record<string, unknown>)
      }
    }
  )
  return { log, lines, text: () => texts.join('') }
}

/** Resolves when the condition holds. @throws Error after the deadline */
export async function until(condition: () => boolean | Promise<boolean>, deadlineMs = 120_000): Promise<void> {
  await untilTrue(String(condition), condition, deadlineMs)
}

/** A busy machine connects late; each key may be at a node of its own. */
export async function untilServed(store: Store): Promise<void> {
  const keys = Array.from({ length: 30 }, (_, at) => `test:served ${at}`)
  await until(async () => {
    const written = await Promise.allSettled(keys.map((key) => store.set(key, 'v', { ttlMs: 1_000 })))
    return store.live && written.every(({ status }) => status === 'fulfilled')
  })
}
