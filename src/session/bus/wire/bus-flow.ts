// Long messages to a process leave while little is on its way, of tenants and callers by turns: Redis cuts off whoever
// reads more slowly than others write to it. Short ones do not wait for them, unless there are thousands. How far a
// process has read it says itself: it answers `alive` to a `beat` that was sent after them. Answers to earlier beats,
// by which is seen whether it is there, say nothing of them.

import { LRUCache } from 'lru-cache'
import { createFairQueue } from '../../../time/fair-queue.ts'
import type { Clock, Timer } from '../../../time/clock.ts'
import type { BusCaller } from '../bus-places.ts'

/** Up to so many characters of its text, a message does not wait for long ones. */
const shortChars = 4_096
/**
 * That a process has not read of long messages, in characters, which are bytes in nearly all of them; and as much of
 * short ones. Redis holds 8 MiB for a subscriber for a minute, and 32 MiB for none.
 */
const maxUnreadChars = 4 * 1024 * 1024
/** What a message counts as while its text is written. */
const unwrittenChars = maxUnreadChars / 4
/** After it, a process that does not answer counts as having read: whether it is there, others find out. */
const confirmMs = 2_000
/** Processes whose beats are counted, and what they have not read. */
const maxKnown = 256

/** The text of a message, or what writes it when its turn comes, in steps: it is long. */
export type Draft = string | (() => Promise<string>)

export const isShort = (draft: Draft): draft is string => typeof draft === 'string' && draft.length <= shortChars

type Waiting = ReturnType<typeof createFairQueue<() => void>>

/** The long messages to one process, or the short ones; in characters. */
interface Lane {
  readonly waiting: Waiting
  /** Sent, or being sent, and not read. */
  unread: number
  /** Of these, sent after the last `beat`. */
  unasked: number
  /** Of these, sent before the `beat` that is not answered. */
  asked: number
}

interface Way {
  readonly short: Lane
  readonly long: Lane
  /** Long ones that have their text: few, since it is written when their turn comes. */
  readonly written: Waiting
  /** Messages that wait, or are being sent. */
  passing: number
  /** Until the process has answered. */
  asked: { readonly beat: number; readonly late: Timer } | undefined
}

const newLane = (): Lane => ({ waiting: createFairQueue(), unread: 0, unasked: 0, asked: 0 })
const newWay = (): Way => ({
  short: newLane(),
  long: newLane(),
  written: createFairQueue(),
  passing: 0,
  asked: undefined
})

/** The numbers of the last `beat` that was sent to a process, and of the last that it has answered. */
interface Beats {
  sent: number
  answered: number
}

export type Flow = ReturnType<typeof createFlow>

/** @param sendBeat sends a `beat` of this number to the process, and says how many listen */
export function createFlow(clock: Pick<Clock, 'timer'>, sendBeat: (to: string, beat: number) => Promise<number>) {
  /** The one that was used longest ago comes first. */
  const ways = new Map<string, Way>()
  const known = new LRUCache<string, Beats>({ max: maxKnown })

  function beatsOf(node: string): Beats {
    const beats = known.get(node) ?? { sent: 0, answered: 0 }
    known.set(node, beats)
    return beats
  }

  /** Asks whether the process is there. @returns how many listen. Rejects as `sendBeat` does */
  const beat = (to: string): Promise<number> => sendBeat(to, ++beatsOf(to).sent)

  function wayTo(to: string): Way {
    const way = ways.get(to) ?? newWay()
    ways.delete(to)
    ways.set(to, way)
    if (ways.size > maxKnown)
      for (const [name, { passing }] of ways) {
        if (passing > 0 || name === to) continue
        ways.delete(name)
        break
      }
    return way
  }

  /** No long message leaves ahead of a short one that waits: they may be of one stream. */
  function goOn(to: string, way: Way): void {
    const { short, long, written } = way
    for (const [waiting, lane] of [
      [short.waiting, short],
      [written, long],
      [long.waiting, long]
    ] as const) {
      while (lane.unread < maxUnreadChars && !waiting.isEmpty) waiting.next()?.()
      if (!waiting.isEmpty) break
    }
    if (way.passing + short.unread + long.unread === 0 && ways.get(to) === way) ways.delete(to)
  }

  function read(to: string, way: Way): void {
    if (way.asked === undefined) return
    way.asked.late.close()
    way.asked = undefined
    for (const lane of [way.short, way.long]) {
      lane.unread -= lane.asked
      lane.asked = 0
    }
    askIfMuch(to, way)
    goOn(to, way)
  }

  function askIfMuch(to: string, way: Way): void {
    const { short, long } = way
    if (way.asked !== undefined || Math.max(short.unasked, long.unasked) < maxUnreadChars / 2) return
    const beats = beatsOf(to)
    const late = clock.timer(confirmMs, () => {
      // What is not answered by now was lost.
      beats.answered = beats.sent
      read(to, way)
    })
    late.unref()
    way.asked = { beat: beats.sent + 1, late }
    for (const lane of [short, long]) {
      lane.asked = lane.unasked
      lane.unasked = 0
    }
    beat(to).catch(() => {})
  }

  return {
    /**
     * Sends it when its turn comes, at once where it is short.
     * @param send sends the text, and says how many listen
     * @returns how many listen. Rejects as `send` does, and as what writes the text
     */
    async pass(to: string, whose: BusCaller, draft: Draft, send: (text: string) => Promise<number>): Promise<number> {
      const way = wayTo(to)
      const lane = isShort(draft) ? way.short : way.long
      const inTurn = async <T>(waiting: Waiting, chars: number, run: () => Promise<T>): Promise<T> =>
        await new Promise((resolve, reject) => {
          waiting.add(() => {
            lane.unread += chars
            run().then(resolve, reject)
          }, whose)
          goOn(to, way)
        })
      let counted = 0
      let isSent = false
      way.passing++
      try {
        let text = draft
        if (typeof text !== 'string') {
          counted = unwrittenChars
          text = await inTurn(lane.waiting, counted, text)
          lane.unread -= counted
        }
        counted = text.length
        const waiting = text === draft ? lane.waiting : way.written
        const listening = await inTurn(waiting, counted, async () => await send(text))
        isSent = listening > 0
        return listening
      } finally {
        way.passing--
        // Where nobody listens, nobody has to read it.
        if (isSent) lane.unasked += counted
        else lane.unread -= counted
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
    },
    /** Processes of which is known what they have not read. */
    get size() {
      return ways.size
    }
  }
}
