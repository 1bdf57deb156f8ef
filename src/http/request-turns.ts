// Few requests are begun in one turn of the event loop, in which thousands of connections can be ready. Where more are,
// tenants and callers take turns, and what waits is counted as theirs.

import type { Socket } from 'node:net'
import type { MemoryAccount } from '../limits/memory.ts'
import type { GatewayError } from '../protocol/messages.ts'
import { createFairQueue } from '../time/fair-queue.ts'
import type { Connections } from './connections.ts'

/** Requests, each of which takes a tenth of a millisecond or several, with what follows before the loop turns. */
const maxBegunPerTurn = 20

export interface ReadyRequest {
  readonly socket: Socket
  /** That it holds while it waits. */
  readonly bytes: number
  begin(): void
  /** There is no memory for it. */
  refuse(error: GatewayError): void
}

export type RequestTurns = ReturnType<typeof createRequestTurns>

/**
 * @param connections who was let in on one before: who sends a request now is not known until it is begun
 * @param memory what requests that wait may take
 */
export function createRequestTurns(connections: Pick<Connections, 'ownerOf'>, memory: MemoryAccount) {
  const waiting = createFairQueue<() => void>()
  let begun = 0
  let isTurnAwaited = false

  function awaitTurn(): void {
    if (isTurnAwaited) return
    isTurnAwaited = true
    setImmediate(nextTurn)
  }

  function nextTurn(): void {
    isTurnAwaited = false
    begun = 0
    for (let next = waiting.next(); next !== undefined; next = waiting.next()) {
      next()
      if (++begun >= maxBegunPerTurn) break
    }
    if (begun > 0) awaitTurn()
  }

  return {
    /** Begins it at once, or in a later turn. @returns whether it waits: nothing more may be read of its socket then */
    add({ socket, bytes, begin, refuse }: ReadyRequest): boolean {
      awaitTurn()
      if (begun < maxBegunPerTurn) {
        begun++
        begin()
        return false
      }
      const owner = connections.ownerOf(socket)
      const share = memory.share(owner.tenant, owner.caller)
      if (!share.take(bytes)) {
        refuse(share.refusal(bytes, 'The request'))
        return false
      }
      waiting.add(() => {
        share.move(-bytes)
        begin()
      }, owner)
      return true
    }
  }
}
