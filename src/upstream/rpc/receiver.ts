// Dispatches each message of a server: a response ends its call; a request or a notification goes to the client of its
// call or to the owner of the connection. A message that belongs to neither is dropped and logged.

import {
  isObject,
  isRequestId,
  type JsonObject,
  metaOf,
  type Notification,
  type Request,
  type RequestId,
  type Result,
  RpcError
} from '../../protocol/messages.ts'
import type { OpenTable } from '../../limits/open-table.ts'
import { jsonSizeOf } from '../../limits/limits.ts'
import { type Client, noClient } from '../../protocol/seams.ts'
import { relatedTaskKey } from '../../protocol/translate/tasks.ts'
import { printable } from './decode-json.ts'
import { boundedError, isRpcError, uncertainError } from './errors.ts'
import { createConnectionNotifications, type ProgressListener, type TaskListeners } from './notifications.ts'
import type { ServerRequests, Tally } from './server-requests.ts'
import type { MessageCodec, NotificationFilter, RpcClientOptions } from './transport.ts'

export interface OpenCall extends ProgressListener {
  readonly id: number
  readonly client: Client
  readonly filter: NotificationFilter | undefined
  /** Restarts the timeout of the call, or gives the call up where it has run for the longest time. */
  heard(): void
  openServerRequests: number
  /** Counts the server requests that came on the stream of the call. */
  serverRequestTally: Tally | undefined
  settle(outcome: Result | Error): void
}

/** The longest notification, in bytes as `jsonSizeOf` counts them. */
const maxNotificationBytes = 1024 * 1024

/**
 * @param settle ends the call with this id; false if no call waits, and then `outcomeOf` was not called, because a
 * server may send such responses without end
 * @returns a function that takes one decoded message; `from`: the call on whose stream it came. Never throws.
 */
export function createReceiver(
  { definition, link, transport, streamPerCall = false, revision, codec: codecNow }: RpcClientOptions,
  calls: OpenTable<OpenCall>,
  settle: (id: number, outcomeOf: () => Result | Error) => boolean,
  serverRequests: ServerRequests,
  taskListeners: TaskListeners
): (message: unknown, from?: number) => void {
  const { events, log, warnings, handshake } = link
  const upstream = definition.name
  const exclusive = handshake.exclusive ?? definition.isolation === 'session'
  const notifyOwner = createConnectionNotifications(link)

  function receive(message: unknown, from?: number): void {
    if (Array.isArray(message)) {
      // Only 2025-03-26 has batches.
      if (revision?.() !== '2025-03-26')
        return warnings.warn({}, 'left out a batch of the upstream: its revision has none')
      for (const each of message) if (!Array.isArray(each)) receive(each, from)
      return
    }
    if (!isObject(message)) return warnings.warn({}, 'the upstream sent a message that is not a JSON object')
    const { id, method, params } = message
    if (typeof method !== 'string') return answer(message, from)
    const body: Request = isObject(params) ? { method, params } : { method }
    const codec = codecNow?.()
    if (id === undefined) return notification(body, codec, from)
    if (codec !== undefined) return warnings.warn({}, 'the upstream sent a request, of which its revision has none')
    if (!isRequestId(id)) return warnings.warn({}, 'the upstream sent a request with an id that is none')
    serverRequest(id, body, from)
  }

  function answer({ id, result, error }: JsonObject, from: number | undefined): void {
    // 2025-11-25 basic/transports "Sending Messages to the Server" 6: the stream of a POST holds the response to that
    // request alone, and the GET stream holds none. A connection may serve several callers: the stream of one caller's
    // call must not answer another caller.
    if ((streamPerCall || from !== undefined) && id !== from)
      return warnings.warn({}, 'left out an answer of the upstream that came on the stream of another request')
    const outcomeOf = (): Result | Error =>
      isObject(result) && error === undefined
        ? result
        : isRpcError(error)
          ? new RpcError(boundedError(error))
          : uncertainError(
              upstream,
              'upstream_protocol',
              `Upstream ${upstream} answered with neither a result object nor an error.`
            )
    // The response is late, repeated or invented.
    if (!settle(id as number, outcomeOf)) log.debug({ upstream }, 'dropped an answer that nobody waits for')
  }

  function serverRequest(id: RequestId, body: Request, from: number | undefined): void {
    const named = from === undefined ? undefined : calls.get(from)
    // The call of this stream is over: there is no client left to ask.
    if (from !== undefined && named === undefined) return serverRequests.receive(id, body, () => noClient.ask(body))
    // A call of the gateway itself, such as a listing, has no client: the owner of the connection is asked.
    const call = owner(from)
    const about = call ?? named
    // 2025-11-25 basic/utilities/tasks: a task outlives the call that brought the request, and needs its answer.
    const ofTask = metaOf(body.params)[relatedTaskKey] !== undefined
    serverRequests.receive(
      id,
      body,
      (request, options) => {
        if (call !== undefined && from === undefined) transport.asked?.(call.id)
        const answer =
          call === undefined
            ? events.ask(request, options)
            : call.client.ask(request, { ...options, outlivesCall: from === undefined })
        return pauseTimeouts(about === undefined ? [...calls] : [about], options.signal, answer)
      },
      about === undefined || ofTask ? undefined : { call: about, certain: from !== undefined }
    )
  }

  function notification(body: Notification, codec: MessageCodec | undefined, from: number | undefined): void {
    const { method, params } = body
    // A notification to the owner is written for all its clients at once, so its size is limited.
    if (jsonSizeOf(params, maxNotificationBytes) > maxNotificationBytes)
      return warnings.warn({ maxNotificationBytes }, 'left out a notification of the upstream that is too large')
    if (method === 'notifications/progress') return progress(body, from)
    if (codec !== undefined) return modernNotification(body, codec, from)
    if (method === 'notifications/cancelled') {
      const { requestId, reason } = params ?? {}
      if (!isRequestId(requestId)) return
      return serverRequests.cancelled(requestId, typeof reason === 'string' ? printable(reason, 200) : undefined)
    }
    if (method !== 'notifications/message' && method !== 'notifications/elicitation/complete') return notifyOwner(body)
    const call = owner(from)
    if (call !== undefined) return notifyClient(call, body)
    // A notification on the stream of a call that is over is dropped.
    if (from === undefined || calls.has(from)) notifyOwner(body)
  }

  function progress(body: Notification, from: number | undefined): void {
    const id = body.params?.['progressToken'] as number
    const call = calls.get(id)
    // Progress of a task may come on any stream, because the call that made the task is over.
    if (call !== undefined && from !== undefined && id !== from)
      return warnings.warn({}, 'left out progress of the upstream that came on the stream of another request')
    const listener = call ?? taskListeners.get(id)
    if (listener?.token === undefined)
      return log.debug({ upstream }, 'dropped progress of a call that is not in flight')
    listener.notifications().notify({ ...body, params: { ...body.params, progressToken: listener.token } })
    call?.heard()
  }

  /** In 2026-07-28 every notification belongs to a request. */
  function modernNotification(body: Notification, codec: MessageCodec, from: number | undefined): void {
    const call = calls.get(from ?? codec.requestIdOf(body, calls) ?? 0)
    const accepted = call?.filter?.accept(body)
    if (call === undefined || accepted === undefined)
      return log.debug({ upstream }, 'dropped a notification of the upstream that nobody asked for')
    if (accepted === 'end') return call.settle({ resultType: 'complete' })
    notifyClient(call, accepted)
  }

  function notifyClient(call: OpenCall, body: Notification): void {
    call.notifications().notify(body)
    call.heard()
  }

  /**
   * Finds the client's call that a message is about: the call of its stream, or the only one of an exclusive
   * connection.
   */
  function owner(from: number | undefined): OpenCall | undefined {
    const candidates = from !== undefined ? [calls.get(from)] : exclusive ? [...calls] : []
    const [only, ...others] = candidates.filter((call) => call?.client !== noClient)
    return others.length === 0 ? only : undefined
  }

  /** Pauses the timeouts of calls until the client has answered or the server has withdrawn its request. */
  function pauseTimeouts<Answer>(paused: readonly OpenCall[], withdrawn: AbortSignal, answer: Promise<Answer>) {
    let over = false
    for (const call of paused) call.openServerRequests++
    const resume = (): void => {
      if (over) return
      over = true
      for (const call of paused) {
        call.openServerRequests--
        if (calls.has(call.id)) call.heard()
      }
    }
    withdrawn.addEventListener('abort', resume, { once: true })
    return answer.finally(resume)
  }

  return receive
}
