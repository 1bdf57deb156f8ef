// Long messages to a process leave while few of them are on their way, of tenants and callers by turns: Redis cuts off
// whoever reads more slowly than others write to it. How far a process has read it says itself: it answers `alive` to a
// `beat` that was sent after them.

import { createFairQueue } from '../../time/fair-queue.ts'
import type { Clock, Timer } from '../../time/clock.ts'
import type { BusCaller } from './bus-server.ts'

/** Shorter ones do not wait, in bytes. */
export const shortBytes = 4_096
/** That a process has not read, in bytes. Redis holds 8 MiB for a subscriber for a minute, and 32 MiB for none. */
const maxUnreadBytes = 4 * 1024 * 1024
/** After it, a process that does not answer counts as having read: whether it is there, others find out. */
const confirmMs = 2_000

interface Way {
  readonly waiting: ReturnType<typeof createFairQueue<{ readonly bytes: number; readonly leave: () => void }>>
  /** Sent, or being sent, and not read. */
  unread: number
  /** Of these, sent after the last `beat`. */
  unasked: number
  /** Until the process has answered. */
  asked: { readonly bytes: number; readonly late: Timer } | undefined
}

export type Flow = ReturnType<typeof createFlow>

/** @param ask sends a `beat` to the process. Never rejects */
export function createFlow(clock: Pick<Clock, 'timer'>, ask: (to: string) => void) {
  const ways = new Map<string, Way>()

  function goOn(to: string, way: Way): void {
    while (way.unread < maxUnreadBytes) {
      const next = way.waiting.next()
      if (next === undefined) break
      way.unread += next.bytes
      next.leave()
    }
    if (way.unread === 0) ways.delete(to)
  }

  function read(to: string, way: Way): void {
    if (way.asked === undefined) return
    way.asked.late.close()
    way.unread -= way.asked.bytes
    way.asked = undefined
    askIfMuch(to, way)
    goOn(to, way)
  }

  function askIfMuch(to: string, way: Way): void {
    if (way.asked !== undefined || way.unasked < maxUnreadBytes / 2) return
    const late = clock.timer(confirmMs, () => read(to, way))
    late.unref()
    way.asked = { bytes: way.unasked, late }
    way.unasked = 0
    ask(to)
  }

  return {
    /** Sends it when its turn comes, at once where it is short. Settles as `send` does. */
    async pass<T>(to: string, whose: BusCaller, bytes: number, send: () => Promise<T>): Promise<T> {
      if (bytes <= shortBytes) return await send()
      const way = ways.get(to) ?? { waiting: createFairQueue(), unread: 0, unasked: 0, asked: undefined }
      ways.set(to, way)
      await new Promise<void>((leave) => {
        way.waiting.add({ bytes, leave }, whose)
        goOn(to, way)
      })
      let sent = 0
      try {
        const answer = await send()
        sent = bytes
        return answer
      } finally {
        way.unread -= bytes - sent
        way.unasked += sent
        askIfMuch(to, way)
        goOn(to, way)
      }
    },
    /** The process has answered a `beat`. */
    alive(from: string): void {
      const way = ways.get(from)
      if (way !== undefined) read(from, way)
    }
  }
}
