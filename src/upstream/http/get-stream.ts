// The standalone stream of a Streamable HTTP session: opened by GET, opened again when it ends, for as long as the
// session lives (2025-11-25 basic/transports "Listening for Messages from the Server").

import { backoffMs } from '../../time/clock.ts'
import type { HttpOutcome } from './outcome.ts'
import { type HttpResponseSink, type OpenRequest, sendRequest } from './request.ts'
import { type HttpTarget, streamHeaders } from './target.ts'
import type { LinkContext } from '../rpc/transport.ts'

interface GetStreamEvents {
  message(value: unknown): void
  /** The stream was cut and is open again: notifications may have been missed. */
  reconnected(): void
  /** The server no longer knows the session. */
  sessionLost(): void
}

const firstMs = 1_000
const maxMs = 60_000
/** The longest `retry` that is respected, in milliseconds. */
const maxRetryMs = 3_600_000
/** The shortest delay, in milliseconds: `retry: 0` must not make a tight loop. */
const minDelayMs = 50

/** @returns `answered` resolves when the server has answered the first GET, with a stream or an error */
export function openGetStream(
  target: HttpTarget,
  sessionHeaders: string,
  { random, log }: LinkContext,
  events: GetStreamEvents
): { readonly answered: Promise<void>; stop(): void } {
  const { name: upstream } = target
  const { promise: answered, resolve } = Promise.withResolvers<void>()
  let request: OpenRequest | undefined
  const reconnect = target.reconnects.stream()
  let timer: ReturnType<typeof reconnect> | undefined
  let stopped = false
  let wasOpen = false
  let cut = false
  let failures = 0
  let lastEventId: string | undefined
  let retryMs: number | undefined

  const sink: HttpResponseSink = {
    begin(_sessionId, streamed) {
      resolve()
      if (!streamed) return
      if (cut) events.reconnected()
      wasOpen = true
      cut = false
    },
    message(value) {
      failures = 0
      events.message(value)
    },
    eventId(id) {
      failures = 0
      lastEventId = id
    },
    retry(ms) {
      retryMs = ms
    },
    end(outcome) {
      resolve()
      if (!stopped) ended(outcome)
    }
  }

  function open(): void {
    const headers = streamHeaders + sessionHeaders
    request = sendRequest(target, { method: 'GET', use: 'streams', headers, lastEventId, body: null }, sink)
  }

  function ended(outcome: HttpOutcome): void {
    if (outcome.kind === 'refused') {
      const { status } = outcome
      // 405: the server has no such stream. Many say 404 or 400 instead; once it was open, these mean a lost session.
      if (wasOpen && (status === 404 || status === 400)) return events.sessionLost()
      // 409: another stream is open, perhaps one of the process that had the session before and is gone.
      if (status < 500 && status !== 429 && status !== 409)
        return log.debug({ upstream, status }, 'the upstream has no GET stream')
    }
    if (!wasOpen && (outcome.kind === 'garbled' || (outcome.kind === 'answered' && !outcome.streamed))) {
      return log.debug({ upstream }, 'the upstream answers GET with something else than a stream')
    }
    if (outcome.kind !== 'answered') cut = wasOpen
    const backoff = backoffMs(failures, { firstMs, maxMs, random })
    failures++
    // 2025-11-25: the client MUST respect `retry`. A longer wait, after several failures, respects it too.
    const delay = failures > 5 ? Math.max(backoff, retryMs ?? 0) : (retryMs ?? backoff)
    timer = reconnect(Math.max(minDelayMs, Math.min(delay, maxRetryMs)), open)
    timer.unref()
  }

  open()
  return {
    answered,
    stop() {
      stopped = true
      timer?.close()
      request?.abort()
      resolve()
    }
  }
}
