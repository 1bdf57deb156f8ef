// The probes of a server's eras over HTTP, outside of any connection: a `server/discover`, and a GET.

import {
  type Implementation,
  type JsonObject,
  type ModernRevision,
  isObject,
  requestMessage,
  rpcCodes
} from '../../protocol/messages.ts'
import { type DiscoverAnswer, discoverRequest, modernCodes } from '../modern/discover.ts'
import { boundedError, cancelledError, failureError, isRpcError } from '../rpc/errors.ts'
import { noResponse } from './outcome.ts'
import { sendRequest } from './request.ts'
import { type HttpTarget, modernHeaders, streamHeaders } from './target.ts'

/** Statuses of a server that does not know 2026-07-28. Other errors prove nothing about the era. */
export const foreignStatuses: ReadonlySet<number> = new Set([400, 404, 405])

/** @throws GatewayError if the response proves nothing about the era: the server is down, or refuses the credential */
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
      // The server may keep the SSE stream open after its answer.
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

/** @param proper whether the transport carried the error as 2026-07-28 says */
function errorIn({ error }: JsonObject, proper: boolean): DiscoverAnswer | undefined {
  return isRpcError(error) ? { kind: 'error', error: boundedError(error), proper } : undefined
}

/**
 * Finds out by a GET whether a server of 2026-07-28 also keeps sessions of an older revision: then it answers 400,
 * since the session id is missing. A server without sessions answers 405, or opens a stream. No `initialize` is sent,
 * because a server that has only 2026-07-28 would report it as an error.
 * @throws GatewayError if the answer proves nothing: the server is down or busy
 */
export function missesSessionId(target: HttpTarget, signal: AbortSignal): Promise<boolean> {
  const { name, origin, headers } = target
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  const giveUp = (): void => reject(cancelledError(name))
  const open = sendRequest(
    target,
    { method: 'GET', use: 'others', headers: streamHeaders + headers, body: null },
    {
      begin: () => resolve(false),
      message() {},
      end(outcome) {
        if (outcome.kind === 'answered' || outcome.kind === 'garbled') return resolve(false)
        if (outcome.kind !== 'refused' || passingStatuses.has(outcome.status) || isDown(outcome.status))
          return reject(failureError(name, origin, outcome))
        const answer = isObject(outcome.body) ? errorIn(outcome.body, true) : undefined
        resolve(outcome.status === 400 && !(answer?.kind === 'error' && missesMessage.has(answer.error.code)))
      }
    }
  )
  if (signal.aborted) giveUp()
  else signal.addEventListener('abort', giveUp, { once: true })
  return promise.finally(() => {
    signal.removeEventListener('abort', giveUp)
    open.abort()
  })
}

/** Temporary failures: the same request may get another answer a moment later. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429])
/** 501 is excluded: some servers answer it to a GET that they do not support. */
const isDown = (status: number): boolean => status >= 500 && status !== 501

/** Error codes of servers that read a message from every request and report that a GET has none. */
const missesMessage: ReadonlySet<number> = new Set([...modernCodes, rpcCodes.parseError])
