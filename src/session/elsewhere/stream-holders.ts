// Which process holds a stream: asked by another one, to which its client has come back.

import type { Bus } from '../bus/bus.ts'
import { isLost, ProcessGone } from '../bus/bus-errors.ts'
import type { HeldStream, StreamHolders } from '../replay.ts'

export function createStreamHolders(bus: Bus): StreamHolders {
  return {
    node: bus.node,
    /** Waits two seconds at most for a process that hangs. */
    async isHeld(node, stream, whose) {
      // What this process holds it would have found.
      if (node === bus.node) return false
      try {
        return (await bus.request(node, 'held', whose, stream)) === true
      } catch (error) {
        // Or it hung while it was asked.
        if (error instanceof ProcessGone || isLost(error)) return false
        throw error
      }
    }
  }
}

/** Answers the other processes. */
export function serveHeldStreams(bus: Bus, streams: { has(stream: HeldStream): boolean }): void {
  bus.serve('held', (question) => Promise.resolve(streams.has(question as HeldStream)))
}
