// Reads a log of the embedded store in pages, in turns of the event loop of their own: as it was at one moment.

import { nextTurn } from '../../time/turns.ts'
import type { KeyOrder } from './key-order.ts'
import type { LogPage, Logs } from './logs.ts'
import type { Pieces } from './pieces.ts'
import { attempt, broken } from './turns.ts'

/** Readings that may fail because the log is trimmed meanwhile; the next one has others wait who write to it. */
const maxReadings = 3

/** @returns reads the entries of a log, oldest first; none where there is none. @throws GatewayError unavailable */
export function createLogReader(logs: Logs, pieces: Pieces, order: KeyOrder, clock: { now(): number }) {
  /** @returns undefined where it is no more the log that it was at first */
  async function read(key: string): Promise<string[] | undefined> {
    const next = (page?: LogPage): LogPage | undefined => attempt(() => logs.entries(key, clock.now(), page))
    let page = next()
    if (page === undefined) return []
    for (;;) {
      if (page.long !== undefined) {
        const long = await pieces.read(page.long)
        if (long === undefined) return undefined
        page.entries.push(long)
      }
      if (page.last >= page.end) return page.entries
      if (page.long === undefined) await nextTurn()
      page = next(page)
      if (page === undefined) return undefined
    }
  }

  return async (key: string): Promise<string[]> => {
    for (let readings = 0; readings < maxReadings; readings++) {
      const entries = await order.short(key, () => read(key))
      if (entries !== undefined) return entries
    }
    const entries = await order.long(key, () => read(key))
    // It has just expired, or is damaged.
    if (entries === undefined) throw broken(new Error('entries of a log are missing'))
    return entries
  }
}
