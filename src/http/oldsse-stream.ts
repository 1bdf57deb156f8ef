// The one stream of a client of HTTP+SSE: answers, questions and notifications all ride on it. It has no ids and cannot be resumed.

import type { ServerResponse } from 'node:http'
import type { Outlet } from '../session/live.ts'
import { eventSink, streamHeaders } from './stream.ts'
import type { Headers } from './reply.ts'
import { maxUnreadBytes } from './unread.ts'

/** What lets a caller in, and for how long. */
export interface Pass {
  /** Rejects as a request with this token would be refused now. */
  recheck (): Promise<void>
  /** Epoch ms, leeway included. */
  readonly validUntil: number
}

export interface OldSseStream extends Outlet {
  /** @returns false where the stream has ended, or may no longer be written to. Never throws */
  push (message: unknown): boolean
  beat (): void
  /** Something is still to be said: `finish` waits until the returned function was called. */
  hold (): () => void
  /** At once, whatever is still to be said. */
  end (): void
  /** A newer token of the same caller takes over. */
  renew (pass: Pass): void
  readonly pass: Pass
  /** What the client still has to take, in bytes (characters count as one). */
  unread (): number
  /** Takes new requests. */
  readonly open: boolean
}

export interface OldSseStreamOptions {
  readonly raw: ServerResponse
  readonly headers: Headers
  /** Where the client is to post, for the first event. */
  readonly messagesPath: string
  readonly pass: Pass
  readonly clock: { now (): number }
  readonly onOverflow: () => void
  /** Once, whoever ended it. */
  readonly onEnd: () => void
}

/** Requests are refused long before; this is for servers that talk without end, in characters. */
const maxWaiting = 2 * maxUnreadBytes

export function openOldSseStream ({ raw, headers, messagesPath, pass, clock, onOverflow, onEnd }: OldSseStreamOptions): OldSseStream {
  const sink = eventSink(raw, onOverflow)
  let current = pass
  let held = 0
  let finishing = false
  let ended = false
  // Written as fast as the connection takes it: large answers wait for a reader that reads, and one that does not is given up by `drained`.
  const waiting: string[] = []
  let waitingLength = 0
  let full = false

  // Not left to 'close' alone: that never comes while a client does not read what it was sent.
  const end = (): void => {
    if (ended) return
    ended = true
    waiting.length = waitingLength = 0
    sink.end()
    onEnd()
  }
  const flow = (): void => {
    while (!full && waiting.length > 0) {
      const text = waiting.shift() ?? ''
      waitingLength -= text.length
      if (sink.plain('message', text)) continue
      full = true
      void sink.drained().then(() => {
        full = false
        flow()
      })
    }
    if (finishing && held === 0 && waiting.length === 0) end()
  }
  const finish = (): void => {
    finishing = true
    flow()
  }
  const push = (message: unknown): boolean => {
    // A stream outlives the check of its token: nothing is sent on it after the token has expired.
    if (clock.now() >= current.validUntil) end()
    if (ended) return false
    const text = JSON.stringify(message)
    waiting.push(text)
    waitingLength += text.length
    flow()
    if (waitingLength > maxWaiting) sink.overflow()
    return true
  }

  raw.writeHead(200, { ...headers, ...streamHeaders })
  raw.once('close', end)
  sink.plain('endpoint', messagesPath)
  return {
    push,
    send: push,
    beat: () => sink.comment('keep-alive'),
    hold () {
      held++
      return () => {
        held--
        flow()
      }
    },
    finish,
    end,
    renew (next) {
      if (next.validUntil > current.validUntil) current = next
    },
    get pass () { return current },
    unread: () => waitingLength + raw.writableLength,
    get attached () { return !ended },
    get open () { return !ended && !finishing }
  }
}
