// Long messages to a process leave while little is on its way, of tenants and callers by turns: Redis cuts off whoever
// reads more slowly than others write to it. Short ones do not wait for them, unless there are thousands. How far a
// process has read it says itself: it answers `alive` to a `beat` that was sent after them. Answers to earlier beats,
// by which is seen whether it is there, say nothing of them.

import { LRUCache } from 'lru-cache'
import { createFairQueue } from '../../../time/fair-queue.ts'
import type { Clock, Timer } from '../../../time/clock.ts'
import type { BusCaller } from '../bus-places.ts'

/** Up to so many bytes, a message does not wait for long ones. */
export const shortBytes = 4_096
/** That a process has not read, in bytes. Redis holds 8 MiB for a subscriber for a minute, and 32 MiB for none. */
const maxUnreadBytes = 4 * 1024 * 1024
/** With those that are short. */
const maxShortUnreadBytes = 2 * maxUnreadBytes
/** After it, a process that does not answer counts as having read: whether it is there, others find out. */
const confirmMs = 2_000
/** Processes whose beats are counted. */
const maxKnown = 256

interface Way {
  readonly waiting: ReturnType<typeof createFairQueue<{ readonly bytes: number; readonly leave: () => void }>>
  shortWaiting: number
  /** Sent, or being sent, and not read. */
  unread: number
  /** Of these, sent after the last `beat`. */
  unasked: number
  /** Until the process has answered. */
  asked: { readonly bytes: number; readonly beat: number; readonly late: Timer } | undefined
}

/** The numbers of the last `beat` that was sent to a process, and of the last that it has answered. */
interface Beats {
  sent: number
  answered: number
}

export type Flow = ReturnType<typeof createFlow>

/** @param sendBeat sends a `beat` of this number to the process, and says how many listen */
export function createFlow(clock: Pick<Clock, 'timer'>, sendBeat: (to: string, beat: number) => Promise<number>) {
  const ways = new Map<string, Way>()
  const known = new LRUCache<string, Beats>({ max: maxKnown })

  function beatsOf(node: string): Beats {
    const beats = known.get(node) ?? { sent: 0, answered: 0 }
    known.set(node, beats)
    return beats
  }

  /** Asks whether the process is there. @returns how many listen. Rejects as `sendBeat` does */
  const beat = (to: string): Promise<number> => sendBeat(to, ++beatsOf(to).sent)

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
    const beats = beatsOf(to)
    const late = clock.timer(confirmMs, () => {
      // What is not answered by now was lost.
      beats.answered = beats.sent
      read(to, way)
    })
    late.unref()
    way.asked = { bytes: way.unasked, beat: beats.sent + 1, late }
    way.unasked = 0
    beat(to).catch(() => {})
  }

  return {
    /** Sends it when its turn comes, at once where it is short. Settles as `send` does. */
    async pass<T>(to: string, whose: BusCaller, bytes: number, send: () => Promise<T>): Promise<T> {
      const way = ways.get(to) ?? {
        waiting: createFairQueue(),
        shortWaiting: 0,
        unread: 0,
        unasked: 0,
        asked: undefined
      }
      ways.set(to, way)
      const isShort = bytes <= shortBytes
      // Short ones of one caller do not overtake each other.
      if (isShort && way.unread < maxShortUnreadBytes && way.shortWaiting === 0) way.unread += bytes
      else {
        if (isShort) way.shortWaiting++
        await new Promise<void>((leave) => {
          way.waiting.add({ bytes, leave }, whose)
          goOn(to, way)
        })
        if (isShort) way.shortWaiting--
      }
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
    beat,
    /**
     * The process has answered a `beat`.
     * @param number of that; an earlier version does not say it, and answers in order
     */
    alive(from: string, number: unknown): void {
      const beats = beatsOf(from)
      beats.answered = Math.min(beats.sent, typeof number === 'number' ? number : beats.answered + 1)
      const way = ways.get(from)
      if (way?.asked !== undefined && beats.answered >= way.asked.beat) read(from, way)
    }
  }
}
