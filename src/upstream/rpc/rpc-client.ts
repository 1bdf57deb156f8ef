// JSON-RPC as a client, the same over all transports: mints ids, keeps the open calls, maps progress tokens. It never
// sends a request twice and knows nothing of bytes.

import {
  metaOf,
  notificationMessage,
  requestMessage,
  type Notification,
  type Request,
  type Result
} from '../../protocol/messages.ts'
import { createAbandonedRequests } from './abandoned-calls.ts'
import { createCallNotifications, withProgressToken, type CallNotifications } from './notifications.ts'
import { cancelledError, endedError, reasonText, timeoutError, unansweredError } from './errors.ts'
import { createReceiver, type OpenCall } from './receiver.ts'
import { createServerRequests } from './server-requests.ts'
import { createTaskListeners } from './task-progress.ts'
import type { Client } from '../../protocol/seams.ts'
import type { RpcClientOptions } from './transport.ts'

export interface RpcClient {
  /** See `Upstream.request`. */
  request(request: Request, client: Client, signal: AbortSignal): Promise<Result>
  notify(notification: Notification): void
  /** See `Upstream.abandonedCalls`. */
  abandonedCalls(): Promise<void> | undefined
  /** Takes a decoded message of the server. `from`: the call on whose own stream it came. Never throws. */
  receive(message: unknown, from?: number): void
  /** The server gave a sign of life for this call which is no message. */
  refreshTimeout(id: number): void
  fail(id: number, error: Error): void
  /** Is the call still waiting for its answer? */
  isOpen(id: number): boolean
  /** The only open call, if there is exactly one. */
  onlyOpen(): number | undefined
  /** The server has forgotten its requests: they are withdrawn. */
  withdrawServerRequests(reason: string): void
  /** Ends all calls, and refuses new ones. */
  end(reason: Error): void
}

/** Limited by connectMs instead of timeoutMs. A server may stumble over a cancellation ahead of its handshake. */
const handshakes: ReadonlySet<string> = new Set(['initialize', 'server/discover'])

const once = { once: true }

export function createRpcClient(options: RpcClientOptions): RpcClient {
  const { definition, link, transport } = options
  const { name, timeoutMs } = definition
  const { clock, warnings } = link
  const calls = new Map<number, OpenCall>()
  const taskListeners = createTaskListeners(clock)
  const abandoned = createAbandonedRequests()
  // A call whose server refuses the answer to its own request would wait until its timeout.
  const serverRequests = createServerRequests(link, (message, call) =>
    transport.post(
      JSON.stringify(message),
      call === undefined ? undefined : () => calls.get(call)?.settle(unansweredError(name))
    )
  )
  let lastId = 0
  let ended: Error | undefined

  function request(request: Request, client: Client, signal: AbortSignal): Promise<Result> {
    if (signal.aborted) return Promise.reject(cancelledError(name))
    if (ended !== undefined) return Promise.reject(endedError(name, ended))
    const id = ++lastId
    const token = metaOf(request.params)['progressToken']
    const codec = options.codec?.()
    const mapped = token === undefined ? request : withProgressToken(request, id)
    const outgoing = codec?.encode(mapped, client) ?? mapped
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    let notifications: CallNotifications | undefined
    // A call may take as long as a person thinks: these functions must not hold on to what was sent.
    const giveUp = (reason: string, error: Error): void => {
      abandon(call, reason)
      call.settle(error)
    }
    const onAbort = (): void => giveUp(reasonText(signal.reason), cancelledError(name))
    const call: OpenCall = {
      id,
      method: request.method,
      client,
      token,
      asTask: request.params?.['task'] !== undefined,
      codec,
      filter: codec?.notificationFilter(id, outgoing),
      timer: clock.timer(timeoutMs, () => {
        if (call.openServerRequests > 0 || handshakes.has(call.method) || call.filter?.endless === true)
          call.timer.refresh()
        else giveUp('timeout', timeoutError(name, timeoutMs))
      }),
      openServerRequests: 0,
      get notifications() {
        return (notifications ??= createCallNotifications(client, clock, warnings))
      },
      settle(outcome) {
        if (!calls.delete(id)) return
        call.timer.close()
        signal.removeEventListener('abort', onAbort)
        serverRequests.ended(id)
        notifications?.end()
        const checked = outcome instanceof Error ? outcome : resultFor(call, outcome)
        if (checked instanceof Error) reject(checked)
        else resolve(checked)
      }
    }
    calls.set(id, call)
    signal.addEventListener('abort', onAbort, once)
    try {
      transport.request(id, JSON.stringify(requestMessage(id, outgoing)), outgoing)
    } catch (error) {
      call.settle(error as Error)
    }
    return promise
  }

  function resultFor(call: OpenCall, result: Result): Result | Error {
    if (call.codec !== undefined) return call.codec.checkResult(result, call.method, call.client)
    if (call.asTask && call.token !== undefined)
      taskListeners.keep(call.id, { token: call.token, notifications: call.notifications }, result)
    return result
  }

  /** 2025-11-25 basic/utilities/cancellation: initialize is never cancelled. */
  function abandon({ id, method, filter, codec }: OpenCall, reason: string): void {
    if (!handshakes.has(method)) post({ method: 'notifications/cancelled', params: { requestId: id, reason } })
    if (filter?.logs === true) codec?.abandoned()
    transport.drop(id)
    abandoned.add(id)
    serverRequests.abandoned(id)
  }

  const post = (notification: Notification): void => transport.post(JSON.stringify(notificationMessage(notification)))

  return {
    request,
    notify(notification) {
      if (ended === undefined) post(notification)
    },
    abandonedCalls: abandoned.drained,
    receive: createReceiver(options, { calls, abandoned, serverRequests, taskListeners }),
    refreshTimeout(id) {
      calls.get(id)?.timer.refresh()
    },
    fail(id, error) {
      abandoned.answered(id)
      calls.get(id)?.settle(error)
    },
    isOpen: (id) => calls.has(id),
    onlyOpen: () => (calls.size === 1 ? calls.keys().next().value : undefined),
    withdrawServerRequests: serverRequests.withdrawAll,
    end(reason) {
      if (ended !== undefined) return
      ended = reason
      serverRequests.end('the connection has ended')
      warnings.end()
      taskListeners.end()
      abandoned.end()
      for (const call of [...calls.values()]) {
        transport.drop(call.id)
        call.settle(reason)
      }
    }
  }
}
