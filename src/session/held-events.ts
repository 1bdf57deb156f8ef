// The last events of a stream, for a client that comes back for those it missed.

import { bytesPerChar, type HeldMemory } from '../limits/memory.ts'
import type { JsonText } from '../protocol/json-text.ts'
import { eventsKept } from '../store/keys.ts'

/** The most characters of events that one stream holds; the newest event is held even if it is longer. */
const maxHeld = 4 * 1024 * 1024
/**
 * What events leave free of the memory of their caller, in bytes: requests with which a client comes back for them, or
 * ends its session, must be let in.
 */
const freeForRequests = 8 * 32_768

/** As far as `maxHeld`, `eventsKept` and the memory of the caller allow. */
export function createHeldEvents(memory: HeldMemory) {
  const events: Array<JsonText | undefined> = []
  let chars = 0
  const fits = (isReserved = false): boolean =>
    memory.fit(chars * bytesPerChar) && (isReserved || chars === 0 || memory.share.has(freeForRequests))
  const isTooMuch = (): boolean => events.length > eventsKept || (events.length > 1 && (chars > maxHeld || !fits()))
  function clear(): void {
    events.length = 0
    chars = 0
    memory.set(0)
  }

  return {
    clear,
    count: (): number => events.length,
    /** @param at 0 is the oldest event */
    get: (at: number): JsonText | undefined => events[at],
    /** The number of characters of this event and later ones. */
    charsFrom: (at: number): number =>
      events.slice(Math.max(0, at)).reduce((sum, data) => sum + (data?.length ?? 0), 0),
    /** @returns false if there is no memory for the event; then no event is held */
    add(data: JsonText | undefined, isReserved: boolean): boolean {
      events.push(data)
      chars += data?.length ?? 0
      while (isTooMuch()) chars -= events.shift()?.length ?? 0
      if (isReserved) memory.set(chars * bytesPerChar)
      if (fits(isReserved)) return true
      clear()
      return false
    }
  }
}
