// Few requests are begun in one turn of the event loop, in which thousands of connections can be ready. Where more are,
// tenants and callers take turns.

import type { Socket } from 'node:net'
import { createFairQueue, type WorkOwner } from '../time/fair-queue.ts'

/** Requests, each of which takes a tenth of a millisecond or several, with what follows before the loop turns. */
const maxBegunPerTurn = 20

export type RequestTurns = ReturnType<typeof createRequestTurns>

/** @param ownerOf who was let in on the connection before: who sends a request now is not known until it is begun */
export function createRequestTurns(ownerOf: (socket: Socket) => WorkOwner) {
  const waiting = createFairQueue<() => void>()
  let begun = 0
  let isTurnAwaited = false

  function begin(run: () => void): void {
    begun++
    run()
  }

  function awaitTurn(): void {
    if (isTurnAwaited) return
    isTurnAwaited = true
    setImmediate(nextTurn)
  }

  function nextTurn(): void {
    isTurnAwaited = false
    begun = 0
    while (begun < maxBegunPerTurn) {
      const next = waiting.next()
      if (next === undefined) break
      begin(next)
    }
    if (begun > 0) awaitTurn()
  }

  return {
    /** Runs at once, or in a later turn. @param socket that the request came on */
    begin(socket: Socket, run: () => void): void {
      if (begun < maxBegunPerTurn) begin(run)
      else waiting.add(run, ownerOf(socket))
      awaitTurn()
    }
  }
}
