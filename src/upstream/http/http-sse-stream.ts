// The stream of an HTTP+SSE session (2024-11-05 basic/transports "HTTP with SSE"): its first event (`endpoint`) gives
// the path for POSTs, every later one holds a message. The response up to the first event tells whether the URL
// supports this transport.

import { GatewayError } from '../../protocol/messages.ts'
import { abortable } from '../../time/clock.ts'
import { printable } from '../rpc/decode-json.ts'
import { failureError, lostError, upstreamError } from '../rpc/errors.ts'
import type { HttpOutcome } from './outcome.ts'
import { type HttpResponseSink, type OpenRequest, sendRequest } from './request.ts'
import { type HttpTarget, streamHeaders } from './target.ts'
import type { Log } from '../../observe/log.ts'
import type { UnusableEvent } from './sse-reader.ts'

/** Statuses of 4xx that say nothing about the transport. */
const neutralStatuses: ReadonlySet<number> = new Set([401, 403, 408, 429])

/** The longest URI to post to, in characters: few servers take longer ones. */
const maxEndpointLength = 8_192

/** @param lost called when the stream has ended or broke the protocol */
export function createHttpSseStream(
  target: HttpTarget,
  log: Log,
  message: (value: unknown) => void,
  unusable: (event: UnusableEvent) => void,
  lost: (reason: Error) => void
) {
  const { name, origin } = target
  const base = origin + target.path
  const first = Promise.withResolvers<GatewayError | undefined>()
  first.promise.catch(() => {}) // No unhandled rejection where the stream is closed while nobody waits.
  let request: OpenRequest | undefined
  let closed = false
  let streaming = false
  let postPath = ''

  function endpoint(uri: string): void {
    if (postPath !== '') {
      return log.debug({ upstream: name }, 'the upstream named another address for messages, which is not used')
    }
    const url = uri.length <= maxEndpointLength && URL.canParse(uri, base) ? new URL(uri, base) : undefined
    if (url?.origin === origin) {
      postPath = url.pathname + url.search
      return first.resolve(undefined)
    }
    // An endpoint at another origin is refused: the credentials of the definition would be sent there.
    const where = url === undefined ? 'a place that is no URL, or too long a one' : printable(url.origin, 200)
    const text =
      `Upstream ${name} wants its messages at ${where}, which is not the origin of its url; they would carry its ` +
      'credentials there. Set its url to where the server itself says it is.'
    lost(upstreamError(name, 'upstream_protocol', text))
  }

  /** The server answered, but not with this transport. */
  function absent(reason: string): void {
    const text = `Upstream ${name} does not speak HTTP+SSE at ${origin}: ${reason}. Check its url and type.`
    first.resolve(upstreamError(name, 'upstream_protocol', text))
    stop()
  }

  function ended(outcome: HttpOutcome): void {
    const { kind } = outcome
    if (postPath === '') {
      if (kind === 'garbled') return absent(outcome.reason)
      if (kind === 'answered') {
        return absent(
          outcome.streamed
            ? 'its stream ended without the event "endpoint"'
            : 'GET is not answered with an event stream'
        )
      }
      const status = kind === 'refused' ? outcome.status : 0
      if (status >= 400 && status < 500 && !neutralStatuses.has(status))
        return absent(`GET is refused (HTTP ${status})`)
      return lost(failureError(name, origin, outcome))
    }
    if (kind === 'garbled') return lost(failureError(name, origin, outcome))
    lost(lostError(name, 'ended', kind === 'broken' ? outcome.cause : undefined))
  }

  function stop(): void {
    closed = true
    request?.abort()
  }

  const sink: HttpResponseSink = {
    begin(_sessionId, streamed) {
      streaming = streamed
    },
    endpoint,
    message(value) {
      if (!streaming || postPath === '') return absent('it does not begin with the event "endpoint"')
      message(value)
    },
    unusable(event) {
      if (postPath === '') absent(event.reason)
      else unusable(event)
    },
    end: ended
  }

  return {
    /** The path to which messages are posted; empty until the server has sent it. */
    get postPath() {
      return postPath
    },
    /** See `HttpSseLink.openStream`. */
    open(signal: AbortSignal): Promise<GatewayError | undefined> {
      if (request === undefined && !closed) {
        const headers = streamHeaders + target.headers
        request = sendRequest(target, { method: 'GET', use: 'streams', headers, body: null }, sink)
        if (closed) request.abort()
      }
      return abortable(
        first.promise,
        signal,
        () => new GatewayError('cancelled', `Connecting to upstream ${name} was given up.`)
      )
    },
    close(reason: Error): void {
      first.reject(reason)
      stop()
    }
  }
}
