// The JSON-RPC client of all transports: creates ids, keeps the open calls, maps progress tokens. It never sends a
// request twice and does not deal with bytes.

import { metaOf, type Notification, notificationMessage, type Request, type Result } from '../../protocol/messages.ts'
import { withProgressToken } from '../../protocol/envelope.ts'
import { printable } from './decode-json.ts'
import { cancelledError, endedError, noIdsError, refusedAnswerError, timeoutError, tooLongError } from './errors.ts'
import { type CallNotifications, createCallNotifications, createTaskListeners } from './notifications.ts'
import { createReceiver, type OpenCall } from './receiver.ts'
import { createRequestIds } from './request-ids.ts'
import { createTextSender } from './send-text.ts'
import { createServerRequests } from './server-requests.ts'
import { createOpenTable } from '../../limits/open-table.ts'
import { type Client, noClient, type SentAgain } from '../../protocol/seams.ts'
import type { RpcClientOptions } from './transport.ts'

export type RpcClient = ReturnType<typeof createRpcClient>

/** Methods limited by connectMs instead of timeoutMs. They are not cancelled: a server may fail on it at this point. */
const handshakes: ReadonlySet<string> = new Set(['initialize', 'server/discover'])
/**
 * A server may leave cancelled requests unanswered (2025-11-25 basic/utilities/cancellation): the oldest are dropped.
 */
const maxAbandoned = 64

const once = { once: true }

export function createRpcClient(options: RpcClientOptions) {
  const { link, transport } = options
  const [{ name, timeoutMs, maxTimeoutMs }, { clock, warnings }] = [options.definition, link]
  const calls = createOpenTable<OpenCall>()
  const taskListeners = createTaskListeners(clock)
  const sender = createTextSender(options, calls)
  /** Cancelled requests that the server has not answered: it may still execute them. */
  const abandoned = new Set<number>()
  let drained: PromiseWithResolvers<void> | undefined
  const serverRequests = createServerRequests(link, (message, call) => {
    // The server did not accept an answer. Its call would wait until the timeout, so it fails at once.
    const refused = (): void => call?.settle(refusedAnswerError(name))
    sender.post(message, call === undefined ? undefined : refused)
  })
  const nextId = options.nextId ?? createRequestIds(link.random)
  let ended: Error | undefined

  /** See `Upstream.request`. */
  function request(request: Request, client: Client, signal: AbortSignal): Promise<Result> {
    if (signal.aborted) return Promise.reject(cancelledError(name))
    if (ended !== undefined) return Promise.reject(endedError(name, ended))
    const id = nextId()
    if (id === undefined) return Promise.reject(noIdsError(name))
    const { method, params } = request
    const isHandshake = handshakes.has(method)
    const asTask = params?.['task'] !== undefined
    const token = metaOf(params)['progressToken']
    const codec = options.codec?.()
    const mapped = token === undefined ? request : withProgressToken(request, id)
    const outgoing = codec?.encode(mapped, client) ?? mapped
    const endsAt = clock.now() + maxTimeoutMs
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    let notifications: CallNotifications | undefined
    // A call may wait long for a person: these closures must not keep the sent request alive.
    const giveUp = (reason: string, error: Error): void => {
      if (sender.isUnsent(id)) return call.settle(error)
      // 2025-11-25 basic/utilities/cancellation: initialize is never cancelled.
      if (!isHandshake) post({ method: 'notifications/cancelled', params: { requestId: id, reason } })
      if (call.filter?.logs === true) codec?.abandoned()
      transport.drop(id)
      const [oldest] = abandoned.add(id)
      if (abandoned.size > maxAbandoned && oldest !== undefined) abandoned.delete(oldest)
      serverRequests.abandoned(call)
      call.settle(error)
    }
    const onAbort = (): void => {
      const reason: unknown = signal.reason
      giveUp(typeof reason === 'string' ? printable(reason, 200) : 'cancelled by the caller', cancelledError(name))
    }
    // While server requests are open the timeout starts again: the server waits for the client.
    const timer = clock.timer(timeoutMs, () => {
      if (call.openServerRequests > 0 || isHandshake || call.filter?.endless === true) call.heard()
      else giveUp('timeout', timeoutError(name, timeoutMs))
    })
    const call: OpenCall = {
      id,
      client,
      token,
      filter: codec?.notificationFilter(id, outgoing),
      openServerRequests: 0,
      serverRequestTally: undefined,
      // A method, not a getter: V8 makes a hidden class for each object literal with a getter, in the old generation,
      // and it keeps the call alive until the next major garbage collection.
      notifications: () => (notifications ??= createCallNotifications(client, clock, warnings)),
      heard() {
        if (clock.now() < endsAt || isHandshake || call.filter?.endless === true) timer.refresh()
        else giveUp('timeout', tooLongError(name, maxTimeoutMs))
      },
      settle(outcome) {
        if (!calls.delete(id)) return
        timer.close()
        signal.removeEventListener('abort', onAbort)
        if (call.serverRequestTally !== undefined) serverRequests.ended(call)
        notifications?.end()
        const checked = outcome instanceof Error ? outcome : (codec?.checkResult(outcome, method, client) ?? outcome)
        if (checked instanceof Error) return reject(checked)
        if (codec === undefined && asTask && token !== undefined) taskListeners.keep(call, checked)
        resolve(checked)
      }
    }
    calls.set(id, call)
    signal.addEventListener('abort', onAbort, once)
    try {
      sender.request(id, outgoing, client, fail)
    } catch (error) {
      call.settle(error as Error)
    }
    return promise
  }

  function resolveDrained(): void {
    drained?.resolve()
    drained = undefined
  }

  /** @returns false if no call waits for it */
  function settle(id: number, outcomeOf: () => Result | Error): boolean {
    if (abandoned.delete(id) && abandoned.size === 0) resolveDrained()
    const call = calls.get(id)
    call?.settle(outcomeOf())
    return call !== undefined
  }

  const fail = (id: number, error: Error): void => void settle(id, () => error)
  const post = (notification: Notification): void => transport.post(JSON.stringify(notificationMessage(notification)))

  return {
    request,
    notify(notification: Notification): void {
      if (ended === undefined) post(notification)
    },
    /** See `Upstream.abandonedCalls`. */
    abandonedCalls(): Promise<void> | undefined {
      if (abandoned.size === 0) return undefined
      drained ??= Promise.withResolvers()
      return drained.promise
    },
    receive: createReceiver(options, calls, settle, serverRequests, taskListeners),
    /** Bytes came on the stream of a call that are no message. */
    heard: (id: number): void => calls.get(id)?.heard(),
    /** The request was sent. @param keptBytes of it stay in memory until the server begins to answer */
    written: (id: number, keptBytes = 0): void => calls.get(id)?.client.sent?.(keptBytes),
    /** The transport sends the request once more, or resumes the stream of its response. */
    again: (id: number, why: SentAgain): void => calls.get(id)?.client.again?.(why),
    fail,
    isOpen: (id: number): boolean => calls.has(id),
    isBusy: (): boolean => [...calls].some(({ client }) => client !== noClient),
    onlyOpen: (): number | undefined => (calls.size === 1 ? [...calls][0]?.id : undefined),
    /** Withdraws all server requests, because the server has forgotten them. */
    withdrawServerRequests: serverRequests.withdrawAll,
    /** Ends all calls, and refuses new ones. */
    end(reason: Error): void {
      if (ended !== undefined) return
      ended = reason
      serverRequests.end('the connection has ended')
      warnings.end()
      taskListeners.end()
      abandoned.clear()
      resolveDrained()
      for (const call of [...calls]) {
        transport.drop(call.id)
        call.settle(reason)
      }
    }
  }
}
