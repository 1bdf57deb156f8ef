// One `server/discover` over HTTP, outside of any connection, and what its answer says about the server's era.

import {
  type Implementation,
  type JsonObject,
  type ModernRevision,
  isObject,
  requestMessage
} from '../../protocol/messages.ts'
import { type DiscoverAnswer, discoverRequest } from '../modern/discover.ts'
import { boundedError, cancelledError, failureError, isRpcError } from '../rpc/errors.ts'
import { noResponse } from './outcome.ts'
import { sendRequest } from './request.ts'
import { type HttpTarget, modernHeaders } from './target.ts'

/** Statuses with which a server that does not know this era answers. Other errors prove nothing about it. */
export const foreignStatuses: ReadonlySet<number> = new Set([400, 404, 405])

/** @throws GatewayError where what came back proves nothing: the server is down, or lets us not in */
export function discoverOverHttp(
  target: HttpTarget,
  clientInfo: Implementation,
  revision: ModernRevision,
  signal: AbortSignal
): Promise<DiscoverAnswer> {
  const { name, origin } = target
  const request = discoverRequest(revision, clientInfo)
  const headers = modernHeaders(request, target.headers, undefined)
  const body = JSON.stringify(requestMessage(0, request))
  return new Promise((resolve, reject) => {
    let streaming = false
    const stopListening = (): void => signal.removeEventListener('abort', giveUp)
    const giveUp = (): void => {
      stopListening()
      open.abort()
      reject(cancelledError(name))
    }
    const answered = (answer: DiscoverAnswer): void => {
      stopListening()
      // A stream may go on after the answer.
      if (streaming) open.abort()
      resolve(answer)
    }
    const open = sendRequest(
      target,
      { method: 'POST', use: 'others', headers, body },
      {
        begin(_sessionId, streamed) {
          streaming = streamed
        },
        message(value) {
          if (!isObject(value) || value['id'] !== 0) return
          const { result } = value
          const answer: DiscoverAnswer | undefined = isObject(result)
            ? { kind: 'result', result }
            : errorIn(value, false)
          if (answer !== undefined) answered(answer)
        },
        end(outcome) {
          const failure = outcome.kind === 'answered' ? noResponse(outcome.status) : outcome
          const foreign = failure.kind === 'refused' ? foreignStatuses.has(failure.status) : failure.kind === 'garbled'
          if (foreign && failure.kind === 'refused' && isObject(failure.body)) {
            const answer = errorIn(failure.body, failure.status === 400)
            if (answer !== undefined) return answered(answer)
          }
          const reason = failureError(name, origin, failure)
          if (foreign) return answered({ kind: 'foreign', reason, silent: false })
          stopListening()
          reject(reason)
        }
      }
    )
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
  })
}

/** @param proper sent as this era sends errors */
function errorIn({ error }: JsonObject, proper: boolean): DiscoverAnswer | undefined {
  return isRpcError(error) ? { kind: 'error', error: boundedError(error), proper } : undefined
}
