// The stream of an HTTP+SSE session (2024-11-05 basic/transports "HTTP with SSE"): its first event says where to post,
// every later one brings a message. It is opened once; what it says before its first event tells whether this transport
// is spoken at the URL at all.

import { GatewayError } from '../../protocol/messages.ts'
import { abortable } from '../../time/clock.ts'
import { printable } from '../rpc/decode-json.ts'
import { failureError, lostError } from '../rpc/errors.ts'
import { type HttpOutcome, type OpenRequest, sendRequest } from './request.ts'
import type { Log } from '../../observe/log.ts'
import type { UnusableEvent } from './sse-reader.ts'
import type { HttpTarget } from './target.ts'

export interface HttpSseStreamOptions {
  readonly target: HttpTarget
  readonly log: Log
  message(value: unknown): void
  unusable(event: UnusableEvent): void
  /** The stream ended, or must not be used. */
  ended(reason: Error): void
}

export interface HttpSseStream {
  /** Where messages are posted; empty until the server has said it. */
  readonly postPath: string
  /** See `HttpSseLink.openStream`. */
  open(signal: AbortSignal): Promise<GatewayError | undefined>
  close(reason: Error): void
}

/** Statuses of 4xx that say nothing about the transport. */
const neutralStatuses: ReadonlySet<number> = new Set([401, 403, 408, 429])

export function createHttpSseStream(options: HttpSseStreamOptions): HttpSseStream {
  const { target, log } = options
  const { name, origin } = target
  const base = origin + target.path
  const first = Promise.withResolvers<GatewayError | undefined>()
  first.promise.catch(() => {}) // The stream may be closed while nobody waits for its first event.
  let request: OpenRequest | undefined
  let closed = false
  let streaming = false
  let postPath = ''

  function endpoint(uri: string): void {
    if (postPath !== '') {
      return log.debug({ upstream: name }, 'the upstream named another address for messages, which is not used')
    }
    const url = URL.canParse(uri, base) ? new URL(uri, base) : undefined
    if (url?.origin === origin) {
      postPath = url.pathname + url.search
      return first.resolve(undefined)
    }
    // A server that names another origin would have the credentials of the definition sent there.
    const where = url === undefined ? 'a place that is no URL' : printable(url.origin, 200)
    options.ended(
      new GatewayError(
        'upstream_protocol',
        `Upstream ${name} wants its messages at ${where}, which is not the origin of its url; they would carry its ` +
          'credentials there. Set its url to where the server itself says it is.',
        { data: { upstream: name } }
      )
    )
  }

  /** There is something at the URL, but it is not this transport. */
  function absent(reason: string): void {
    first.resolve(
      new GatewayError(
        'upstream_protocol',
        `Upstream ${name} does not speak HTTP+SSE at ${origin}: ${reason}. Check its url and type.`,
        { data: { upstream: name } }
      )
    )
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
      return options.ended(failureError(name, origin, outcome))
    }
    if (kind === 'garbled') return options.ended(failureError(name, origin, outcome))
    options.ended(lostError(name, 'ended', kind === 'broken' ? outcome.cause : undefined))
  }

  function stop(): void {
    closed = true
    request?.abort()
  }

  function start(): void {
    const headers = ['accept', 'text/event-stream', ...target.headers]
    request = sendRequest(
      target,
      { method: 'GET', headers, body: null },
      {
        begin(_sessionId, streamed) {
          streaming = streamed
        },
        endpoint,
        message(value) {
          if (!streaming || postPath === '') return absent('it does not begin with the event "endpoint"')
          options.message(value)
        },
        unusable(event) {
          if (postPath === '') absent(event.reason)
          else options.unusable(event)
        },
        end: ended
      }
    )
    if (closed) request.abort()
  }

  return {
    get postPath() {
      return postPath
    },
    open(signal) {
      if (request === undefined && !closed) start()
      return abortable(
        first.promise,
        signal,
        () => new GatewayError('cancelled', `Connecting to upstream ${name} was given up.`)
      )
    },
    close(reason) {
      first.reject(reason)
      stop()
    }
  }
}
