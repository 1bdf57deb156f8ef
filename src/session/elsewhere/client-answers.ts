// Answers of clients to server requests of another process: one that does not get there is refused, and that process
// told.

import { type Message, type RequestId, rpcCodes } from '../../protocol/messages.ts'
import { isLost, ProcessGone } from '../bus/bus-errors.ts'
import type { BusRetries } from '../bus/bus-retries.ts'
import type { BusCaller } from '../bus/bus-places.ts'

export type ClientResponse = Message & { readonly kind: 'response' | 'error' }

/**
 * The answer of a client to a server request of another process.
 * @param key of the session
 * @returns whether it was asked; false also where the process that asked is gone
 * @throws GatewayError upstream_lost where nobody can say whether that took it; unavailable, too_many
 */
export async function answerElsewhere(
  { request, tell }: BusRetries,
  asker: string,
  whose: BusCaller,
  key: string,
  said: ClientResponse,
  id: RequestId
): Promise<boolean> {
  try {
    return (await request(asker, 'response', whose, { key, said }, true)) === true
  } catch (error) {
    const isGone = error instanceof ProcessGone
    // It would wait for an answer that its client does not give again.
    if (isGone || isLost(error)) void tell(asker, 'response', whose, { key, said: refusedAnswer(id) })
    if (isGone) return false
    throw error
  }
}

/** What the server hears in place of an answer that did not reach the process of its call. */
const refusedAnswer = (id: RequestId): ClientResponse => ({
  kind: 'error',
  id,
  error: {
    code: rpcCodes.internalError,
    message: 'The client has answered, but its answer did not reach the process of the gateway that asked.'
  }
})
