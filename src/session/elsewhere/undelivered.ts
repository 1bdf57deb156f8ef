// Messages for the stream of a session that are not on it yet: its process cannot be reached, or is gone, and its
// client comes back at another one. The newest are kept.

import { jsonSizeOf } from '../../limits/limits.ts'
import { type HeldMemory } from '../../limits/memory.ts'
import type { JsonObject } from '../../protocol/messages.ts'

const maxMessages = 1_000
/** As `jsonSizeOf` counts them. One message may have more. */
const maxBytes = 4 * 1024 * 1024

interface Kept {
  readonly message: JsonObject
  /** Grows by one from message to message. */
  readonly seq: number
  readonly bytes: number
}

export type Undelivered = ReturnType<typeof createUndelivered>

export function createUndelivered(memory: HeldMemory) {
  const kept: Kept[] = []
  let bytes = 0
  let last = 0
  function shift(): void {
    bytes -= kept.shift()?.bytes ?? 0
  }
  return {
    /** @returns whether it or another one was left out for it */
    add(message: JsonObject): boolean {
      const size = jsonSizeOf(message)
      kept.push({ message, seq: ++last, bytes: size })
      bytes += size
      const { length } = kept
      while (kept.length > maxMessages || (kept.length > 1 && bytes > maxBytes)) shift()
      while (!memory.fit(bytes) && kept.length > 0) shift()
      return kept.length < length
    },
    /** In their order. */
    all: (): readonly Pick<Kept, 'message' | 'seq'>[] => [...kept],
    /** Up to this one they are delivered. */
    dropTo(seq: number): void {
      while ((kept[0]?.seq ?? Infinity) <= seq) shift()
      memory.fit(bytes)
    },
    /** They are somebody else's now. */
    takeAll(): JsonObject[] {
      const messages = kept.map(({ message }) => message)
      kept.length = bytes = 0
      memory.set(0)
      return messages
    },
    get size() {
      return kept.length
    }
  }
}
