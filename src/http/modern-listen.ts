// The answer to `subscriptions/listen` (2026-07-28 basic/patterns/subscriptions): a stream from the acknowledgment to the end, in which
// every message carries the id of its request. Nothing can be resumed: whoever loses the stream asks for a new one.

import type { Log } from '../observe/log.ts'
import { subscriptionIdKey, withServerInfo } from '../protocol/envelope.ts'
import type { Envelope } from '../protocol/envelope.ts'
import { GatewayError, errorObject } from '../protocol/errors.ts'
import { errorMessage, metaOf, notificationMessage, responseMessage } from '../protocol/messages.ts'
import type { Implementation, JsonObject, Notification, Request, RequestId } from '../protocol/messages.ts'
import type { ModernRelay } from '../relay/modern/relay.ts'
import { readAccept } from './accept.ts'
import { tellUnread } from './listening.ts'
import { eventSink, streamHeaders } from './stream.ts'
import type { Visit } from './visit.ts'
import { validUntil } from './welcome.ts'
import type { Welcome } from './welcome.ts'

/** A filter of so many bytes names thousands of resources; more only fills memory. */
const maxRequestBytes = 256 * 1024

export interface ModernListenOptions {
  readonly relay: Pick<ModernRelay, 'listen'>
  readonly welcome: Welcome
  /** The time of day. */
  readonly clock: { now (): number }
  readonly log: Log
  readonly serverInfo: Implementation
}

export interface ModernListen {
  /**
   * Answers the request of a visit, and resolves when its stream has ended.
   * @param request without its envelope
   * @throws GatewayError before anything was written: too_large, not_acceptable, invalid_params, missing_capability, too_many, shutting_down
   */
  listen (visit: Visit, id: RequestId, request: Request, envelope: Envelope): Promise<void>
  /** The gateway stops: ends every stream, and says so on it. */
  leave (): void
}

export function createModernListen ({ relay, welcome, clock, log, serverInfo }: ModernListenOptions): ModernListen {
  const open = new Set<AbortController>()
  let left = false

  return {
    async listen (visit, id, request, { capabilities }) {
      const { raw, snapshot, tenant, endpoint, principal } = visit
      if (visit.bodyBytes > maxRequestBytes) throw new GatewayError('too_large', `A subscriptions/listen may have ${maxRequestBytes / 1024} KiB; open several streams instead.`)
      if (!readAccept(visit.incoming.headers.accept).stream) throw new GatewayError('not_acceptable', 'The answer to subscriptions/listen is a stream; it needs text/event-stream in Accept.')
      if (left) throw stopping()
      // Gone while we looked: its end was told already, and would not be told again.
      if (raw.destroyed) return
      const stop = new AbortController()
      const stream = openStream(visit, id)
      const gone = (): void => stop.abort()
      raw.once('close', gone)
      const unwelcome = (): void => stop.abort(new GatewayError('unauthenticated', 'The token or key of this request is no longer accepted. Listen again with a newer one.'))
      const quiet = welcome.attend({
        recheck: visit.recheck,
        alive: () => Promise.resolve(true),
        validUntil: () => validUntil(visit),
        beat: stream.beat,
        onWelcome () {},
        onUnwelcome: unwelcome
      })
      open.add(stop)
      const over = relay.listen({
        snapshot,
        tenant,
        endpoint,
        principal,
        request,
        signal: stop.signal,
        client: {
          era: 'modern',
          capabilities,
          notify (notification) {
            // A stream outlives the check of its token: nothing is sent on it after the token has expired.
            if (clock.now() >= validUntil(visit)) unwelcome()
            if (!stop.signal.aborted) stream.notify(notification)
          },
          ask: () => Promise.reject(new GatewayError('method_not_found', 'Nobody can be asked on a listen stream.'))
        }
      }).finally(() => {
        quiet()
        open.delete(stop)
        raw.off('close', gone)
      })
      // Waited for elsewhere: nothing of the request is held for as long as the stream is open.
      return conclude(visit, over, stop.signal, stream)
    },

    leave () {
      left = true
      for (const stop of open) stop.abort(stopping())
    }
  }

  async function conclude (visit: Visit, over: Promise<unknown>, signal: AbortSignal, stream: ReturnType<typeof openStream>): Promise<void> {
    try {
      await over
    } catch (error) {
      if (!stream.begun && !signal.aborted) throw error
      if (!signal.aborted) {
        log.error({ err: error, requestId: visit.requestId }, 'a listen stream failed by a fault of the gateway')
        return stream.fail(error)
      }
    }
    if (visit.raw.destroyed) return
    const { reason } = signal as { reason: unknown }
    if (!stream.begun) throw reason instanceof GatewayError ? reason : stopping()
    stream.finish(reason instanceof GatewayError ? reason.message : 'The endpoint has changed. Listen again.')
  }

  function openStream (visit: Visit, id: RequestId) {
    const { raw } = visit
    const sink = eventSink(raw, () => tellUnread(visit, log))
    const tagged = (holder: JsonObject | undefined): JsonObject => ({ ...holder, _meta: { ...metaOf(holder), [subscriptionIdKey]: id } })
    let begun = false
    let full = false

    function write (message: JsonObject): void {
      if (!begun) raw.writeHead(200, { ...visit.headers, ...streamHeaders })
      begun = true
      if (sink.plain('message', JSON.stringify(message)) || full) return
      // Whoever reads nothing at all is given up, however little waits.
      full = true
      void sink.drained().then(() => { full = false })
    }
    const notify = ({ method, params }: Notification): void => write(notificationMessage({ method, params: tagged(params) }))

    return {
      get begun () { return begun },
      notify,
      beat () {
        if (begun) sink.comment('keep-alive')
      },
      /** basic/patterns/cancellation: the client is told by notifications/cancelled; "Graceful Closure": and by the result. */
      finish (reason: string) {
        notify({ method: 'notifications/cancelled', params: { requestId: id, reason } })
        write(responseMessage(id, withServerInfo(tagged({ resultType: 'complete' }), serverInfo)))
        sink.end()
      },
      fail (error: unknown) {
        write(errorMessage(id, errorObject(error, visit.requestId)))
        sink.end()
      }
    }
  }
}

const stopping = (): GatewayError => new GatewayError('shutting_down', 'The gateway is stopping. Listen again; another process will answer.')
