// Questions to the client of a session, on their way: each goes out under an id of ours and is settled by the answer that the client
// posts, by the server that withdraws it, by time, or by the end of the session.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isObject, metaOf, notificationMessage, requestMessage } from '../protocol/messages.ts'
import type { JsonObject, Message, Notification, ServerRequest } from '../protocol/messages.ts'
import type { AskOptions } from '../protocol/seams.ts'

export interface Asks {
  /**
   * @param routes ways to write one message to the client, the best first
   * @returns the client's result
   * @throws RpcError the client's own error, or that no way reaches it; GatewayError cancelled, upstream_timeout, too_many
   */
  ask (request: ServerRequest, routes: readonly Send[], options?: AskOptions): Promise<unknown>
  /** A response that the client posted. @returns whether somebody waited for it */
  settle (message: Message & { kind: 'response' | 'error' }): boolean
  /** Progress that the client reports about a question. @returns whether it was about one */
  progress (notification: Notification): boolean
  /** Nobody will answer any more: what is open is withdrawn, what comes is refused. */
  end (reason: Error): void
  readonly size: number
}

/** @returns whether the message was taken */
export type Send = (message: JsonObject) => boolean

export interface AsksOptions {
  readonly timer: (ms: number, run: () => void) => { close (): unknown }
  /** Unique among the processes that may serve the session. */
  readonly prefix: string
  readonly timeoutMs?: number
  readonly max?: number
}

interface Open {
  readonly answer: (error: Error | undefined, result?: unknown) => void
  /** The client is told that nobody waits for its answer any more. */
  readonly withdraw: (error: Error, reason: string) => void
  readonly token: unknown
  readonly progress: AskOptions['progress']
}

export function createAsks ({ timer, prefix, timeoutMs = 10 * 60_000, max = 64 }: AsksOptions): Asks {
  const open = new Map<string, Open>()
  let count = 0
  let ended: Error | undefined

  return {
    ask (request, routes, { signal, progress } = {}) {
      if (ended !== undefined) return Promise.reject(ended)
      if (signal?.aborted === true) return Promise.reject(withdrawn())
      if (open.size >= max) return Promise.reject(new GatewayError('too_many', `More than ${max} questions to this client are open. Ask less often.`))
      const id = `${prefix}-${++count}`
      const token = metaOf(request.params)['progressToken']
      // The servers behind an endpoint may choose equal tokens; ours is the id, which is unique.
      const outgoing = token === undefined ? request : { ...request, params: { ...request.params, _meta: { ...metaOf(request.params), progressToken: id } } }
      return new Promise((resolve, reject) => {
        // Known from the start: sending may end the session, and so withdraw the question while it is on its way.
        let used: Send | undefined
        const onAbort = (): void => entry.withdraw(withdrawn(), typeof signal?.reason === 'string' ? signal.reason : 'the server withdrew its request')
        const late = timer(timeoutMs, () => {
          entry.withdraw(new GatewayError('upstream_timeout', `The client did not answer within ${timeoutMs / 1000} s.`), 'timeout')
        })
        const entry: Open = {
          token,
          progress,
          answer (error, result) {
            if (!open.delete(id)) return
            late.close()
            signal?.removeEventListener('abort', onAbort)
            if (error === undefined) resolve(result)
            else reject(error)
          },
          withdraw (error, reason) {
            entry.answer(error)
            const message = notificationMessage({ method: 'notifications/cancelled', params: { requestId: id, reason } })
            // Where the question went, if that is still open.
            if (used !== undefined) [used, ...routes].some((send) => send(message))
          }
        }
        open.set(id, entry)
        signal?.addEventListener('abort', onAbort, { once: true })
        const message = requestMessage(id, outgoing)
        used = routes.find((send) => send(message))
        if (used === undefined) entry.answer(new RpcError({ code: -32602, message: 'The client has no stream open on which it could be asked.', data: { reason: unreachable } }))
      })
    },

    settle (message) {
      const entry = typeof message.id === 'string' ? open.get(message.id) : undefined
      if (entry === undefined) return false
      if (message.kind === 'response') entry.answer(undefined, message.result)
      else entry.answer(new RpcError(message.error))
      return true
    },

    progress ({ params }) {
      const token = params?.['progressToken']
      const entry = typeof token === 'string' ? open.get(token) : undefined
      if (entry === undefined || !isObject(params)) return false
      if (entry.token !== undefined) entry.progress?.({ ...params, progressToken: entry.token })
      return true
    },

    end (reason) {
      ended = reason
      for (const entry of [...open.values()]) entry.withdraw(reason, reason.message)
    },
    get size () { return open.size }
  }
}

/** `data.reason` of the error where no way reaches the client. */
export const unreachable = 'client_unreachable'

const withdrawn = (): GatewayError => new GatewayError('cancelled', 'The server withdrew its request.')
