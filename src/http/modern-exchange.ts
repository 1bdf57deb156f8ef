// One request of 2026-07-28 while it runs. It ends with its result, with an error, or with its connection: closing that is how a client
// cancels (basic/patterns/cancellation), and nothing more is sent then. Its caller is looked at again for as long as it takes.

import type { Log } from '../observe/log.ts'
import { withServerInfo } from '../protocol/envelope.ts'
import { GatewayError, RpcError, errorObject, errorTable } from '../protocol/errors.ts'
import { errorMessage, notificationMessage, responseMessage } from '../protocol/messages.ts'
import type { Implementation, Notification, RequestId, Result } from '../protocol/messages.ts'
import { readAccept } from './accept.ts'
import { tellUnread } from './listening.ts'
import { createModernReply } from './modern-reply.ts'
import type { KeepAlive } from './stream.ts'
import type { Visit } from './visit.ts'
import { noLongerWelcome, validUntil } from './welcome.ts'
import type { Welcome } from './welcome.ts'

export interface ExchangeOptions {
  readonly keepAlive: KeepAlive
  readonly welcome: Welcome
  readonly log: Log
  readonly serverInfo: Implementation
  /** Calls in flight, for the drain. */
  readonly calls: Set<AbortController>
}

export interface Exchange {
  /** Sends a notification ahead of the result. @returns false where it was left out: the caller takes only JSON, has gone, or does not keep up */
  push (notification: Notification): boolean
  /** Aborted when the caller closes the connection, is no longer welcome, or the gateway has waited long enough to stop. */
  readonly signal: AbortSignal
}

/** Runs `perform` and answers with what it resolves with, or with its error. Never rejects. */
export type Exchanges = (visit: Visit, id: RequestId, perform: (exchange: Exchange) => Promise<Result>) => Promise<void>

export function createExchanges ({ keepAlive, welcome, log, serverInfo, calls }: ExchangeOptions): Exchanges {
  // A third of the longest silence afterwards: until then the status can still say what went wrong.
  const quietMs = keepAlive.intervalMs / 3

  return async (visit, id, perform) => {
    const { raw, requestId } = visit
    if (raw.destroyed) return
    const controller = new AbortController()
    const { signal } = controller
    let over = false
    const reply = createModernReply({ raw, accepts: readAccept(visit.incoming.headers.accept), headers: visit.headers, onOverflow: () => tellUnread(visit, log) })
    raw.once('close', () => {
      if (!over) controller.abort(new GatewayError('cancelled', 'The caller closed the connection.'))
    })
    calls.add(controller)
    const stop = welcome.attend({
      recheck: visit.recheck,
      alive: async () => true,
      validUntil: () => validUntil(visit),
      beat () { if (reply.started) reply.beat() },
      onWelcome () {},
      onUnwelcome: () => controller.abort(noLongerWelcome())
    })
    const quiet = setTimeout(() => reply.beat(), quietMs)
    try {
      const result = await perform({ push: (notification) => reply.push(notificationMessage(notification)), signal })
      // Whoever is no longer let in gets nothing, however near it was.
      if (signal.aborted) throw signal.reason
      over = true
      reply.end(responseMessage(id, withServerInfo(result, serverInfo)))
    } catch (error) {
      over = true
      fail(error)
    } finally {
      clearTimeout(quiet)
      stop()
      calls.delete(controller)
    }

    function fail (error: unknown): void {
      if (raw.destroyed) return
      // Aborted by us: the reason says why. It is an ordinary answer, for a status such as 503 invites to send again what may have been done.
      if (signal.aborted) return reply.end(errorMessage(id, errorObject(signal.reason, requestId)))
      const message = errorMessage(id, errorObject(error, requestId))
      if (error instanceof RpcError) {
        // The one error of an upstream that has a status of its own (2026-07-28 basic/index "Error Codes").
        return reply.end(message, error.error.code === errorTable.missing_capability.rpcCode ? errorTable.missing_capability.status : 200)
      }
      if (!(error instanceof GatewayError)) log.error({ err: error, requestId }, 'a request failed by a fault of the gateway')
      else if (error.row.status === 200) return reply.end(message)
      reply.refuse(error, requestId, id, message)
    }
  }
}
