// JSON-RPC as a client, common to all transports: mints ids, keeps the table of calls in flight, maps progress tokens, brings
// each message of the server to the call it belongs to. It never sends a request twice and knows nothing of bytes.

import { GatewayError } from '../protocol/errors.ts'
import { isObject, isRequestId, metaOf, notificationMessage, requestMessage } from '../protocol/messages.ts'
import { relatedTask } from '../protocol/tasks.ts'
import { createAsks } from './asks.ts'
import { printable } from './decode.ts'
import { cancelledError, endedError, outcomeOf, reasonText, timeoutError, unansweredError } from './endings.ts'
import { createHearing, withToken } from './hearing.ts'
import { createNotices } from './notices.ts'
import { createOwed } from './owed.ts'
import { patiently } from './patience.ts'
import { createTaskProgress } from './task-progress.ts'
import type { JsonObject, Notification, Request, RequestId, Result } from '../protocol/messages.ts'
import type { Client } from '../protocol/seams.ts'
import type { ExchangeOptions } from './carrier.ts'
import type { Hearing } from './hearing.ts'
import type { Dialect, Ear } from './modern/dialect.ts'
import type { Patient } from './patience.ts'

export interface Exchange {
  /** See `Upstream.request`. */
  request (request: Request, client: Client, signal: AbortSignal): Promise<Result>
  notify (notification: Notification): void
  /** See `Upstream.owed`. */
  owed (): Promise<void> | undefined
  /** One decoded message of the server. `from`: the call on whose own stream it came. Never throws. */
  receive (message: unknown, from?: number): void
  /** The server gave a sign of life for this call which is no message. */
  heard (id: number): void
  fail (id: number, error: Error): void
  /** Is somebody still waiting for this answer? */
  waiting (id: number): boolean
  /** The only call in flight, if there is exactly one. */
  single (): number | undefined
  /** The server has forgotten its questions: they are withdrawn. */
  forget (reason: string): void
  /** Ends all calls, and refuses new ones. */
  end (reason: Error): void
}

interface Call extends Patient {
  readonly id: number
  readonly client: Client
  readonly token: unknown
  readonly hearing: Hearing
  readonly settle: (error: Error | undefined, result?: Result) => void
  /** How it hears what the server says, in 2026-07-28. */
  readonly ear: Ear | undefined
}

/** Stands behind calls that no client made, such as listings: it hears nothing and can be asked nothing. */
export const nobody: Client = {
  era: 'legacy',
  capabilities: {},
  notify () {},
  ask: () => Promise.reject(new GatewayError('method_not_found', 'No client stands behind this call.'))
}

export function createExchange (options: ExchangeOptions): Exchange {
  const { name, timeoutMs, exclusive, carrier, events, clock, log, complaints } = options
  const calls = new Map<number, Call>()
  let lastId = 0
  let ended: Error | undefined

  const notice = createNotices(options)
  const taskProgress = createTaskProgress(clock)
  const owed = createOwed()
  const asks = createAsks({
    ...options,
    send (message, call) {
      // Its server will wait for the answer as long as we for its result.
      const lost = call === undefined ? undefined : (): void => calls.get(call)?.settle(unansweredError(name))
      carrier.post(JSON.stringify(message), lost)
    }
  })

  function request (request: Request, client: Client, signal: AbortSignal): Promise<Result> {
    if (signal.aborted) return Promise.reject(cancelledError(name))
    if (ended !== undefined) return Promise.reject(endedError(name, ended))
    const id = ++lastId
    const token = metaOf(request.params)['progressToken']
    const { method } = request
    const asTask = request.params?.['task'] !== undefined
    const dialect = options.dialect?.()
    const mapped = token === undefined ? request : withToken(request, id)
    const outgoing = dialect?.dress(mapped, client) ?? mapped
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    // A call may take as long as a person thinks: none of what follows holds on to what was sent.
    const onAbort = (): void => {
      abandon(id, method, reasonText(signal.reason))
      call.settle(cancelledError(name))
    }
    const call: Call = {
      id,
      client,
      token,
      asking: 0,
      ear: dialect?.ear(id, outgoing),
      hearing: createHearing(client, clock, () => complaints.warn({}, 'the upstream floods a call with notifications; only some are passed on')),
      timer: clock.timer(timeoutMs, () => {
        // The handshake has a limit of its own, which is about how long a server takes to start.
        if (call.asking > 0 || handshakes.has(method) || call.ear?.endless === true) return call.timer.refresh()
        abandon(id, method, 'timeout')
        call.settle(timeoutError(name, timeoutMs))
      }),
      settle (error, result) {
        if (!calls.delete(id)) return
        call.timer.close()
        signal.removeEventListener('abort', onAbort)
        asks.ended(id)
        call.hearing.end()
        if (error !== undefined || result === undefined) return reject(error)
        if (dialect === undefined && asTask) taskProgress.keep(id, call, result)
        const judged = dialect?.judge(result, method, client) ?? result
        if (judged instanceof GatewayError) reject(judged)
        else resolve(judged)
      }
    }
    calls.set(id, call)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      carrier.request(id, JSON.stringify(requestMessage(id, outgoing)), outgoing)
    } catch (error) {
      call.settle(error as Error)
    }
    return promise
  }

  /** Tells the server that an answer is no longer wanted. 2025-11-25 basic/utilities/cancellation: never for initialize. */
  function abandon (id: number, method: string, reason: string): void {
    if (!handshakes.has(method)) {
      carrier.post(JSON.stringify(notificationMessage({ method: 'notifications/cancelled', params: { requestId: id, reason } })))
    }
    if (calls.get(id)?.ear?.logs === true) options.dialect?.()?.abandoned()
    carrier.drop(id)
    owed.add(id)
    asks.abandoned(id)
  }

  function receive (message: unknown, from?: number): void {
    if (Array.isArray(message)) {
      if (!options.batches()) return complaints.warn({}, 'left out a batch of the upstream: its revision has none')
      for (const each of message) if (!Array.isArray(each)) receive(each, from)
      return
    }
    if (!isObject(message)) return complaints.warn({}, 'the upstream sent a message that is not a JSON object')
    const { id, method, params } = message
    if (typeof method !== 'string') return answer(message)
    const body: Request = isObject(params) ? { method, params } : { method }
    if (id === undefined) return notification(body, from)
    if (options.dialect?.() !== undefined) return complaints.warn({}, 'the upstream sent a request, of which its revision has none')
    if (!isRequestId(id)) return complaints.warn({}, 'the upstream sent a request with an id that is none')
    question(id, body, from)
  }

  function question (id: RequestId, body: Request, from: number | undefined): void {
    // Nothing would withdraw it any more.
    if (ended !== undefined) return
    // On the stream of a call that is over, nobody is left to ask.
    if (from !== undefined && !calls.has(from)) return asks.receive(id, body, () => nobody.ask(body))
    const call = owner(from)
    // A call that no client made, such as a listing: whoever the connection belongs to is meant.
    const waiting = call !== undefined ? [call] : from === undefined ? [...calls.values()] : [calls.get(from) as Call]
    // 2025-11-25 basic/utilities/tasks: a task goes on when the call has ended that brought the question, and needs its answer.
    const origin = metaOf(body.params)[relatedTask] === undefined ? from ?? call?.id : undefined
    asks.receive(id, body, (request, options) => {
      const answer = call === undefined ? events.ask(request, options) : call.client.ask(request, { ...options, outlives: from === undefined })
      return patiently(waiting, (call) => calls.has(call.id), options.signal, answer)
    }, origin === undefined ? undefined : { call: origin, certain: from !== undefined })
  }

  function answer (message: JsonObject): void {
    const id = message['id'] as number
    const call = calls.get(id)
    owed.paid(id)
    // Late, doubled or invented: whoever it was for has gone.
    if (call === undefined) return log.debug({ upstream: name }, 'dropped an answer that nobody waits for')
    const outcome = outcomeOf(name, message)
    if (outcome instanceof Error) call.settle(outcome)
    else call.settle(undefined, outcome)
  }

  function notification (notification: Notification, from: number | undefined): void {
    const { method, params } = notification
    if (method === 'notifications/progress') return progress(notification)
    const dialect = options.dialect?.()
    if (dialect !== undefined) return overheard(dialect, notification, from)
    if (method === 'notifications/cancelled') {
      const withdrawn = params?.['requestId']
      if (isRequestId(withdrawn)) asks.cancelled(withdrawn, typeof params?.['reason'] === 'string' ? printable(params['reason'], 200) : undefined)
      return
    }
    if (method !== 'notifications/message' && method !== 'notifications/elicitation/complete') return notice(notification)
    const call = owner(from)
    if (call !== undefined) return deliver(call, notification)
    // What comes on the stream of a finished call belongs to nobody.
    if (from === undefined || calls.has(from)) notice(notification)
  }

  function progress (notification: Notification): void {
    const id = notification.params?.['progressToken'] as number
    const call = calls.get(id)
    const listener = call ?? taskProgress.listener(id)
    if (listener?.token === undefined) return log.debug({ upstream: name }, 'dropped progress of a call that is not in flight')
    call?.timer.refresh()
    listener.hearing.notify({ ...notification, params: { ...notification.params, progressToken: listener.token } })
  }

  /** 2026-07-28: whatever a server says belongs to a request. */
  function overheard (dialect: Dialect, notification: Notification, from: number | undefined): void {
    const call = calls.get(from ?? dialect.addressee(notification, calls) ?? 0)
    const heard = call?.ear?.hear(notification)
    if (call === undefined || heard === undefined) return log.debug({ upstream: name }, 'dropped a notification of the upstream that nobody asked for')
    if (heard === 'end') return call.settle(undefined, { resultType: 'complete' })
    deliver(call, heard)
  }

  function deliver (call: Call, notification: Notification): void {
    call.timer.refresh()
    call.hearing.notify(notification)
  }

  /** Whose call is meant: the stream says it, or there is only one it can be. */
  function owner (from: number | undefined): Call | undefined {
    if (from !== undefined) {
      const call = calls.get(from)
      return call?.client === nobody ? undefined : call
    }
    if (!exclusive) return undefined
    let found: Call | undefined
    for (const call of calls.values()) {
      if (call.client === nobody) continue
      if (found !== undefined) return undefined
      found = call
    }
    return found
  }

  return {
    request,
    receive,
    notify (notification) {
      if (ended === undefined) carrier.post(JSON.stringify(notificationMessage(notification)))
    },
    heard: (id) => { calls.get(id)?.timer.refresh() },
    fail (id, error) {
      owed.paid(id)
      calls.get(id)?.settle(error)
    },
    owed: owed.left,
    waiting: (id) => calls.has(id),
    forget: asks.end,
    single: () => calls.size === 1 ? calls.keys().next().value : undefined,
    end (reason) {
      if (ended !== undefined) return
      ended = reason
      asks.end('the connection has ended')
      complaints.end()
      taskProgress.end()
      owed.end()
      for (const call of [...calls.values()]) {
        carrier.drop(call.id)
        call.settle(reason)
      }
    }
  }
}

/** How long a server takes to start is limited elsewhere; and one that has a handshake may stumble over whatever else comes ahead of it. */
const handshakes: ReadonlySet<string> = new Set(['initialize', 'server/discover'])
