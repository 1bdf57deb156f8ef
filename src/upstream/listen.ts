// The standalone stream of a Streamable HTTP session: opened by GET, opened again when it ends, for as long as the session lives
// (2025-11-25 basic/transports "Listening for Messages from the Server").

import { deliver } from './delivery.ts'
import type { Dispatcher } from 'undici'
import type { Log } from '../observe/log.ts'
import type { Clock } from './clock.ts'
import type { Outcome } from './delivery.ts'

export interface ListenOptions {
  readonly upstream: string
  readonly dispatcher: Dispatcher
  readonly path: string
  readonly headers: readonly string[]
  readonly maxBytes: number
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  message (value: unknown): void
  /** It was cut and is open again: something may have been missed. */
  missed (): void
  /** The server no longer knows the session. */
  gone (): void
}

const firstDelayMs = 1_000
const longestDelayMs = 60_000
/** What the server itself asks for is respected for longer, but not for ever. */
const longestRetryMs = 3_600_000
/** A server may ask us back at once, but not in a tight loop. */
const shortestDelayMs = 50

/** @returns how to stop listening */
export function listen (options: ListenOptions): () => void {
  const { upstream, dispatcher, path, headers, maxBytes, clock, random, log } = options
  let stop = (): void => {}
  let wasOpen = false
  let cut = false
  let failures = 0
  let lastEventId: string | undefined
  let retryMs: number | undefined

  function open (): void {
    const heads = ['accept', 'text/event-stream', ...headers]
    if (lastEventId !== undefined) heads.push('last-event-id', lastEventId)
    let over = false
    const abort = deliver({ dispatcher, path, method: 'GET', headers: heads, body: null, maxBytes }, {
      begin (_sessionId, streamed) {
        if (!streamed) return
        if (cut) options.missed()
        wasOpen = true
        cut = false
      },
      message (value) {
        failures = 0
        options.message(value)
      },
      id (id) {
        failures = 0
        lastEventId = id
      },
      retry (ms) { retryMs = ms },
      end (outcome) {
        over = true
        ended(outcome)
      }
    })
    if (!over) stop = abort
  }

  function ended (outcome: Outcome): void {
    if (outcome.kind === 'refused') {
      // 405: no such stream here, which is fine. Many servers say 404 or 400 instead; after it was open, these mean the session.
      if (wasOpen && (outcome.status === 404 || outcome.status === 400)) return options.gone()
      if (outcome.status < 500 && outcome.status !== 429) {
        return log.debug({ upstream, status: outcome.status }, 'the upstream has no stream of its own')
      }
    }
    if (outcome.kind === 'garbled' || (outcome.kind === 'answered' && !outcome.streamed)) {
      if (!wasOpen) return log.debug({ upstream }, 'the upstream answers GET with something else than a stream')
    }
    if (outcome.kind !== 'answered') cut = wasOpen
    const backoff = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(failures, 10) * (1 + random() * 0.25))
    failures++
    // 2025-11-25: the client MUST respect `retry`. Where nothing ever comes, waiting longer respects it too.
    const delay = failures > 5 ? Math.max(backoff, retryMs ?? 0) : retryMs ?? backoff
    const timer = clock.timer(Math.max(shortestDelayMs, Math.min(delay, longestRetryMs)), open)
    timer.unref()
    stop = () => { timer.close() }
  }

  open()
  return () => stop()
}
