// The answer of a client to a server request, on its way to the process that asked. It counts once, however often it
// comes, so it is sent again until that process has taken it. Where it is refused, the process is told as soon as it
// hears: it would wait for an answer that its client does not give again.

import { createQuota } from '../../limits/limits.ts'
import { GatewayError, type Message, type RequestId, rpcCodes } from '../../protocol/messages.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { Bus } from './bus.ts'
import { ProcessGone } from './bus-messages.ts'
import type { BusCaller } from './bus-server.ts'

export type ClientResponse = Message & { readonly kind: 'response' | 'error' }

export interface AnswerOfSession {
  /** Of the session. */
  readonly key: string
  readonly said: ClientResponse
}

/** Between two attempts. */
const retryMs = 250
/** For so long, which is how long what the process says on a call is said again, too. */
const maxRetryMs = 15_000
/** Times that the process counts as gone: one that hung, or was cut off from the store, is often there again. */
const maxGone = 3
/** Between two attempts to tell a process that an answer was refused. */
const tellMs = 5_000
/** For so long: then what it asked has ended by time. */
const maxTellMs = 10 * 60_000
/** Refusals that are to be told: at most a quarter of them of one tenant, and a sixteenth of one caller. */
const maxRefusals = 1_024

export function createClientAnswers(
  { request, tell }: Pick<Bus, 'request' | 'tell'>,
  clock: Clock,
  isClosing: () => boolean
) {
  const refusals = createQuota()

  async function tellRefused(asker: string, { tenant, caller }: BusCaller, key: string, id: RequestId): Promise<void> {
    const giveBack = refusals.take(1, [
      ['all', maxRefusals],
      [`tenant ${tenant}`, maxRefusals / 4],
      [`caller ${tenant} ${caller}`, maxRefusals / 16]
    ])
    if (giveBack === undefined) return
    const message = 'The client has answered, but its answer did not reach the process of the gateway that asked.'
    const said: ClientResponse = { kind: 'error', id, error: { code: rpcCodes.internalError, message } }
    const until = clock.now() + maxTellMs
    while (!(await tell(asker, 'response', { key, said } satisfies AnswerOfSession))) {
      if (isClosing() || clock.now() >= until) break
      await pause(clock, tellMs)
    }
    giveBack()
  }

  /**
   * @param id of the server request
   * @returns whether it was asked; false also where the process that asked is gone
   * @throws GatewayError upstream_lost where nobody can say whether that took it; unavailable, too_many
   */
  return async (asker: string, whose: BusCaller, id: RequestId, answer: AnswerOfSession): Promise<boolean> => {
    const until = clock.now() + maxRetryMs
    let lost: Error | undefined
    for (let gone = 0; ; await pause(clock, retryMs)) {
      try {
        return (await request(asker, 'response', whose, answer)) === true
      } catch (error) {
        if (!mayPass(error)) throw error
        if (error instanceof ProcessGone) gone++
        else if (error.code === 'upstream_lost') lost = error
        if (gone < maxGone && clock.now() < until) continue
        // The client is to try again.
        if (error.code === 'unavailable') throw error
        void tellRefused(asker, whose, answer.key, id)
        if (lost !== undefined) throw lost
        return false
      }
    }
  }
}

const mayPass = (error: unknown): error is GatewayError =>
  error instanceof ProcessGone ||
  (error instanceof GatewayError && (error.code === 'upstream_lost' || error.code === 'unavailable'))
