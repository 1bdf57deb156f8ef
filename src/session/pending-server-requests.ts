// Server requests that the client of a session has not answered yet. Each is sent under an id of the gateway, and ends
// with the client's response, by the server that withdraws it, by time, or with the session.

import { withProgressToken } from '../protocol/envelope.ts'
import {
  GatewayError,
  isObject,
  type JsonObject,
  type Message,
  metaOf,
  type Notification,
  notificationMessage,
  requestMessage,
  rpcCodes,
  RpcError,
  type ServerRequest
} from '../protocol/messages.ts'
import type { ServerRequestOptions } from '../protocol/seams.ts'

/** Writes a message to the client. @returns false where it cannot */
export type Send = (message: JsonObject) => boolean

interface OpenRequest {
  readonly settle: (error: Error | undefined, result?: unknown) => void
  readonly withdraw: (error: Error, reason: string) => void
  readonly token: unknown
  readonly progress: ServerRequestOptions['progress']
}

export type PendingServerRequests = ReturnType<typeof createPendingServerRequests>

/** @param prefix begins the ids; unique among the processes that may serve the session */
export function createPendingServerRequests(
  { timer }: { timer(ms: number, run: () => void): { close(): unknown } },
  prefix: string,
  { timeoutMs = 10 * 60_000, max = 64 } = {}
) {
  const open = new Map<string, OpenRequest>()
  let count = 0
  let ended: Error | undefined

  function wasSent(id: unknown): boolean {
    const number = typeof id === 'string' && id.startsWith(`${prefix}-`) ? id.slice(prefix.length + 1) : ''
    return /^[1-9]\d*$/.test(number) && Number(number) <= count
  }

  return {
    /**
     * @param routes the streams to try, the best first
     * @returns the client's result
     * @throws RpcError the client's own error, or `unreachable`; GatewayError cancelled, upstream_timeout, too_many
     */
    ask(
      request: ServerRequest,
      routes: readonly Send[],
      { signal, progress }: ServerRequestOptions = {}
    ): Promise<unknown> {
      if (ended !== undefined) return Promise.reject(ended)
      if (signal?.aborted === true) return Promise.reject(withdrawn())
      if (open.size >= max)
        return Promise.reject(
          new GatewayError('too_many', `More than ${max} questions to this client are open. Ask less often.`)
        )
      const id = `${prefix}-${++count}`
      const token = metaOf(request.params)['progressToken']
      // The upstreams of an endpoint may choose equal tokens; the id is unique.
      const outgoing = token === undefined ? request : withProgressToken(request, id)
      return new Promise((resolve, reject) => {
        // In the map before it is sent: sending may end the session, which withdraws the request.
        let sentOn: Send | undefined
        const onAbort = (): void =>
          entry.withdraw(
            withdrawn(),
            typeof signal?.reason === 'string' ? signal.reason : 'the server withdrew its request'
          )
        const late = timer(timeoutMs, () => {
          entry.withdraw(
            new GatewayError('upstream_timeout', `The client did not answer within ${timeoutMs / 1000} s.`),
            'timeout'
          )
        })
        const entry: OpenRequest = {
          token,
          progress,
          settle(error, result) {
            if (!open.delete(id)) return
            late.close()
            signal?.removeEventListener('abort', onAbort)
            if (error === undefined) resolve(result)
            else reject(error)
          },
          withdraw(error, reason) {
            entry.settle(error)
            const message = notificationMessage({
              method: 'notifications/cancelled',
              params: { requestId: id, reason }
            })
            // Preferably where the request went.
            if (sentOn !== undefined) [sentOn, ...routes].some((send) => send(message))
          }
        }
        open.set(id, entry)
        signal?.addEventListener('abort', onAbort, { once: true })
        const message = requestMessage(id, outgoing)
        sentOn = routes.find((send) => send(message))
        if (sentOn === undefined)
          entry.settle(
            new RpcError({
              code: rpcCodes.invalidParams,
              message: 'The client has no stream open on which it could be asked.',
              data: { reason: unreachable }
            })
          )
      })
    },

    /** @returns whether the response is to a request that was sent; one that is over hears nothing of it */
    settle(message: Message & { kind: 'response' | 'error' }): boolean {
      const entry = typeof message.id === 'string' ? open.get(message.id) : undefined
      if (entry === undefined) return wasSent(message.id)
      if (message.kind === 'response') entry.settle(undefined, message.result)
      else entry.settle(new RpcError(message.error))
      return true
    },

    /** @returns whether the client's progress belongs to an open request */
    progress({ params }: Notification): boolean {
      const token = params?.['progressToken']
      const entry = typeof token === 'string' ? open.get(token) : undefined
      if (entry === undefined || !isObject(params)) return false
      if (entry.token !== undefined) entry.progress?.({ ...params, progressToken: entry.token })
      return true
    },

    /** The client cannot answer any more. */
    end(reason: Error): void {
      ended = reason
      for (const entry of [...open.values()]) entry.withdraw(reason, reason.message)
    },
    get size() {
      return open.size
    }
  }
}

/** `data.reason` of the error where the client has no open stream. */
export const unreachable = 'client_unreachable'

const withdrawn = (): GatewayError => new GatewayError('cancelled', 'The server withdrew its request.')
