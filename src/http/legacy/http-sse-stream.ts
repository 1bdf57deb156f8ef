// The one stream of a client of HTTP+SSE: answers, server requests and notifications all ride on it. It has no ids and
// cannot be resumed.

import type { ServerResponse } from 'node:http'
import type { SessionStream } from '../../session/live-sessions.ts'
import { createSseWriter, sseHeaders } from '../sse-writer.ts'
import type { ReplyHeaders } from '../reply.ts'
import { maxBacklogBytes } from '../backpressure.ts'
import type { Credential } from '../request-context.ts'
import type { Clock } from '../../time/clock.ts'

export interface HttpSseServerStream extends SessionStream {
  /** @returns false where the stream has ended, or may no longer be written to. Never throws */
  push(message: unknown): boolean
  beat(): void
  /** A message is still to come: `finish` waits until the returned function was called. */
  hold(): () => void
  /** At once, whatever is still to come. */
  end(): void
  /** A newer token of the same caller takes over. */
  renew(credential: Credential): void
  readonly credential: Credential
  /** What the client has not read yet, in bytes (characters count as one). */
  backlogBytes(): number
  /** Whether new requests are taken. */
  readonly open: boolean
}

export interface HttpSseServerStreamOptions {
  readonly raw: ServerResponse
  readonly headers: ReplyHeaders
  /** Where the client is to post, for the first event. */
  readonly messagesPath: string
  readonly credential: Credential
  /** The time of day. */
  readonly clock: Clock
  readonly onOverflow: () => void
  /** Once, whoever ended it. */
  readonly onEnd: () => void
}

/** Requests are refused long before; this is for servers that send without end. */
const maxQueuedChars = 2 * maxBacklogBytes

export function openHttpSseStream({
  raw,
  headers,
  messagesPath,
  credential,
  clock,
  onOverflow,
  onEnd
}: HttpSseServerStreamOptions): HttpSseServerStream {
  const writer = createSseWriter(raw, onOverflow)
  let current = credential
  let held = 0
  let finishing = false
  let ended = false
  // Written as fast as the connection takes it: large answers wait for a slow reader, and `drained` gives up one that
  // reads nothing.
  const queue: string[] = []
  let queuedChars = 0
  let full = false

  // 'close' alone does not do: it never comes while a client does not read what it was sent.
  const end = (): void => {
    if (ended) return
    ended = true
    queue.length = queuedChars = 0
    writer.end()
    onEnd()
  }
  const flow = (): void => {
    while (!full && queue.length > 0) {
      const text = queue.shift() ?? ''
      queuedChars -= text.length
      if (writer.eventWithoutId('message', text)) continue
      full = true
      void writer.drained().then(() => {
        full = false
        flow()
      })
    }
    if (finishing && held === 0 && queue.length === 0) end()
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
    queue.push(text)
    queuedChars += text.length
    flow()
    if (queuedChars > maxQueuedChars) writer.overflow()
    return true
  }

  raw.writeHead(200, { ...headers, ...sseHeaders })
  raw.once('close', end)
  writer.eventWithoutId('endpoint', messagesPath)
  return {
    push,
    send: push,
    beat: writer.beat,
    hold() {
      held++
      return () => {
        held--
        flow()
      }
    },
    finish,
    end,
    renew(next) {
      if (next.validUntil > current.validUntil) current = next
    },
    get credential() {
      return current
    },
    backlogBytes: () => queuedChars + raw.writableLength,
    get attached() {
      return !ended
    },
    get open() {
      return !ended && !finishing
    }
  }
}
