// The answer to `subscriptions/listen` (2026-07-28 basic/patterns/subscriptions): a stream from the acknowledgment to
// the end, in which every message carries the id of its request. Nothing can be resumed: a client that loses the stream
// listens again.

import { subscriptionIdKey, withServerInfo, type ModernRequest } from '../../protocol/envelope.ts'
import {
  errorMessage,
  GatewayError,
  latestModern,
  metaOf,
  notificationMessage,
  responseMessage,
  type JsonObject,
  type Notification,
  type RequestId
} from '../../protocol/messages.ts'
import { errorObject } from '../../protocol/translate/error-object.ts'
import type { Client } from '../../protocol/seams.ts'
import { type RequestContext } from '../admission.ts'
import { callRecordOf } from '../calls-in-flight.ts'
import { readAccept } from '../headers.ts'
import { createSseWriter, sseHeaders } from '../reply.ts'
import type { ModernHandlerOptions } from './modern.ts'

/** A filter of so many bytes names thousands of resources; more only fills memory. */
const maxRequestBytes = 256 * 1024

/** @param clock the time of day */
export function createModernListen({ relay, revalidator, clock, calls, observers, serverInfo }: ModernHandlerOptions) {
  const { log } = observers
  const open = new Set<AbortController>()
  let left = false

  return {
    /**
     * Answers the request, and resolves when its stream has ended.
     * @param request without its envelope
     * @throws GatewayError before anything was written: too_large, not_acceptable, invalid_params, missing_capability,
     * too_many, shutting_down
     */
    async listen(context: RequestContext, { id, request, envelope }: ModernRequest): Promise<void> {
      const { raw, snapshot, tenant, endpoint, principal } = context
      const { capabilities, software } = envelope
      if (context.bodyBytes > maxRequestBytes)
        throw new GatewayError(
          'too_large',
          `A subscriptions/listen may have ${maxRequestBytes / 1024} KiB; open several streams instead.`
        )
      if (!readAccept(context.incoming.headers).stream)
        throw new GatewayError(
          'not_acceptable',
          'The answer to subscriptions/listen is a stream; it needs text/event-stream in Accept.'
        )
      if (left) throw stopping()
      // 'close' has been emitted already where the client left during the checks, and would not be emitted again.
      if (raw.destroyed) return
      calls.listen(context)
      const stop = new AbortController()
      const stream = openStream(context, id)
      const onClose = (): void => stop.abort()
      raw.once('close', onClose)
      const onInvalid = (): void =>
        stop.abort(
          new GatewayError(
            'unauthenticated',
            'The token or key of this request is no longer accepted. Listen again with a newer one.'
          )
        )
      const unwatch = revalidator.watch({ credential: context, beat: stream.beat, onInvalid })
      open.add(stop)
      const client: Client = {
        era: 'modern',
        capabilities,
        notify(notification) {
          // A stream outlives the check of its token: nothing is sent on it after the token has expired.
          if (clock.now() >= context.validUntil) onInvalid()
          if (!stop.signal.aborted) stream.notify(notification)
        },
        ask: () => Promise.reject(new GatewayError('method_not_found', 'A listen stream takes no server requests.'))
      }
      const record = callRecordOf(context, { revision: latestModern, software, session: undefined })
      const listening = { snapshot, tenant, endpoint, principal, request, record, signal: stop.signal, client }
      const over = relay.listen(listening).finally(() => {
        unwatch()
        open.delete(stop)
        raw.off('close', onClose)
      })
      // Awaited in a function of its own, which holds nothing of the request for as long as the stream is open.
      return conclude(context, over, stop.signal, stream)
    },

    /** The gateway stops: ends every stream, and says so on it. */
    endStreams(): void {
      left = true
      for (const stop of open) stop.abort(stopping())
    }
  }

  async function conclude(
    context: RequestContext,
    over: Promise<unknown>,
    signal: AbortSignal,
    stream: ReturnType<typeof openStream>
  ): Promise<void> {
    try {
      await over
    } catch (error) {
      if (!stream.hasBegun() && !signal.aborted) throw error
      if (!signal.aborted) {
        log.error({ err: error, requestId: context.requestId }, 'a listen stream failed by a fault of the gateway')
        return stream.fail(error)
      }
    }
    if (context.raw.destroyed) return
    const { reason } = signal as { reason: unknown }
    if (!stream.hasBegun()) throw reason instanceof GatewayError ? reason : stopping()
    stream.finish(reason instanceof GatewayError ? reason.message : 'The endpoint has changed. Listen again.')
  }

  function openStream(context: RequestContext, id: RequestId) {
    const { raw, memory } = context
    const requestBytes = memory.bytes
    const writer = createSseWriter(context, log)
    const tagged = (holder: JsonObject | undefined): JsonObject => ({
      ...holder,
      _meta: { ...metaOf(holder), [subscriptionIdKey]: id }
    })
    let begun = false
    let full = false

    function write(message: JsonObject): void {
      if (!begun) raw.writeHead(200, { ...context.headers, ...sseHeaders })
      begun = true
      const text = JSON.stringify(message)
      if (!memory.fit(requestBytes + raw.writableLength + text.length)) return writer.overflow()
      if (writer.eventWithoutId(text) || full) return
      // `drained` gives up a client that reads nothing at all, however little waits.
      full = true
      void writer.drained().then(() => {
        full = false
        memory.set(requestBytes + raw.writableLength)
      })
    }
    const notify = ({ method, params }: Notification): void =>
      write(notificationMessage({ method, params: tagged(params) }))

    return {
      hasBegun: (): boolean => begun,
      notify,
      beat() {
        if (begun) writer.beat()
      },
      /**
       * basic/patterns/cancellation: the client is told by notifications/cancelled; "Graceful Closure": and by the
       * result.
       */
      finish(reason: string) {
        notify({ method: 'notifications/cancelled', params: { requestId: id, reason } })
        write(responseMessage(id, withServerInfo(tagged({ resultType: 'complete' }), serverInfo)))
        writer.end()
      },
      fail(error: unknown) {
        write(errorMessage(id, errorObject(error, context.requestId)))
        writer.end()
      }
    }
  }
}

const stopping = (): GatewayError =>
  new GatewayError('shutting_down', 'The gateway is stopping. Listen again; another process will answer.')
