// Requests whose answer says nothing but whether they were taken: notifications, answers, good-byes, and all that is posted over
// HTTP+SSE.

import { deliver } from './delivery.ts'
import type { Log } from '../observe/log.ts'
import type { DeliveryOptions, Outcome } from './delivery.ts'

/** One of them, sent once. Never rejects; what was given up counts as unsent. */
export function send (request: Omit<DeliveryOptions, 'wants'>, signal: AbortSignal): Promise<Outcome> {
  return new Promise((resolve) => {
    const done = (outcome: Outcome): void => {
      signal.removeEventListener('abort', giveUp)
      resolve(outcome)
    }
    const giveUp = (): void => {
      abort()
      done({ kind: 'unsent', cause: new Error('given up') })
    }
    const abort = deliver({ ...request, wants: 'status' }, { begin () {}, message () {}, id () {}, retry () {}, end: done })
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
  })
}

export interface OutboxOptions {
  readonly name: string
  readonly log: Log
  /** Sends one message. */
  send (body: string, signal: AbortSignal): Promise<Outcome>
  /** What it means that the server did not take it. */
  failed (outcome: Exclude<Outcome, { kind: 'answered' }>): Error
}

export interface Outbox {
  /** @throws what `failed` makes of it */
  post (body: string, signal: AbortSignal): Promise<void>
  /** The same for a message whose loss is noted. @param lost runs then */
  offer (body: string, signal: AbortSignal, lost?: () => void): void
  /** Nothing is on its way any more. Never rejects. */
  drained (): Promise<void>
}

/** Messages on their way at once; and how many more, and how long in all, wait for their turn before the rest is lost. */
const maxPosts = 64
const maxWaiting = 1_000
const maxWaitingLength = 16 * 1024 * 1024

export function createOutbox ({ name, log, send, failed }: OutboxOptions): Outbox {
  const waiting: Array<{ readonly body: string, readonly signal: AbortSignal, readonly lost: (() => void) | undefined }> = []
  let waitingLength = 0
  let posts = 0
  let empty: PromiseWithResolvers<void> | undefined
  let losing = false

  async function post (body: string, signal: AbortSignal): Promise<void> {
    const outcome = await send(body, signal)
    if (outcome.kind !== 'answered') throw failed(outcome)
  }

  function start (body: string, signal: AbortSignal, lost: (() => void) | undefined): void {
    posts++
    post(body, signal)
      .catch((err: unknown) => {
        log.debug({ err, upstream: name }, 'the upstream did not take a message')
        lost?.()
      })
      .finally(() => {
        posts--
        const next = waiting.shift()
        if (next === undefined) {
          if (posts > 0) return
          empty?.resolve()
          empty = undefined
          return
        }
        waitingLength -= next.body.length
        start(next.body, next.signal, next.lost)
      })
  }

  return {
    post,
    offer (body, signal, lost) {
      if (posts < maxPosts) return start(body, signal, lost)
      if (waiting.length < maxWaiting && waitingLength + body.length <= maxWaitingLength) {
        losing = false
        waitingLength += body.length
        waiting.push({ body, signal, lost })
        return
      }
      if (!losing) log.warn({ upstream: name }, 'messages are lost to an upstream that does not take them')
      losing = true
      lost?.()
    },
    drained () {
      if (posts === 0) return Promise.resolve()
      empty ??= Promise.withResolvers()
      return empty.promise
    }
  }
}
