// What is sent to a process again: a request, where that hung, or could not reach the store, for a moment; and what it
// has to hear, until it hears. One that is not known, whose name may be of a client's invention, costs one attempt.

import { createQuota } from '../../limits/limits.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { Bus } from './bus.ts'
import { isLost, ProcessGone } from './bus-errors.ts'
import { type BusCaller, type BusKind, takePlace } from './bus-places.ts'

/** Between two attempts. */
const retryMs = 250
/** For so long, which is how long what the process says on a call is said again, too. */
const maxRetryMs = 15_000
/** Times that the process counts as gone: one that hung, or was cut off from the store, is often there again. */
const maxGone = 3
/** Between two attempts to tell it something. */
const tellMs = 5_000
/** For so long: then what it asked a client has ended by time. */
const maxTellMs = 10 * 60_000
/** Things that are to be told: at most a quarter of them of one tenant, and a sixteenth of one caller. */
const maxTold = 1_024

export type BusRetries = ReturnType<typeof createBusRetries>

export function createBusRetries(bus: Pick<Bus, 'request' | 'tell' | 'peers'>, clock: Clock, isClosing: () => boolean) {
  const telling = createQuota()
  return {
    /**
     * @param isRepeatable whether it counts once, however often it comes; otherwise what was begun is not sent again
     * @throws ProcessGone; GatewayError upstream_lost where nobody can say whether it was done; as the other side threw
     */
    async request(
      to: string,
      kind: BusKind,
      whose: BusCaller,
      question: unknown,
      isRepeatable: boolean
    ): Promise<unknown> {
      const until = clock.now() + maxRetryMs
      let lost: unknown
      for (let gone = 0; ; await pause(clock, retryMs)) {
        try {
          return await bus.request(to, kind, whose, question)
        } catch (error) {
          if (error instanceof ProcessGone) gone += bus.peers.knows(to) ? 1 : maxGone
          else if (!isRepeatable) throw error
          else if (isLost(error)) lost = error
          else if (!(error instanceof GatewayError && error.code === 'unavailable')) throw error
          if (gone >= maxGone || clock.now() >= until) throw lost ?? error
        }
      }
    },
    /** Never rejects. */
    async tell(to: string, kind: BusKind, whose: BusCaller, said: unknown): Promise<void> {
      if (!bus.peers.knows(to)) return
      const giveBack = takePlace(telling, maxTold, whose)
      if (giveBack === undefined) return
      const until = clock.now() + maxTellMs
      while (!(await bus.tell(to, kind, said, { whose, about: kind })) && clock.now() < until && !isClosing())
        await pause(clock, tellMs)
      giveBack()
    }
  }
}
