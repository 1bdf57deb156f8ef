// A raw listen stream of 2026-07-28: every byte of it, and the messages in them as they come.

import type { IncomingHttpHeaders } from 'node:http'
import { eventsOf, open } from './client.ts'
import type { Json } from './mcp-server.ts'
import { modernMessage, type ModernOptions } from './modern-client.ts'
import { until } from './until.ts'

export interface ModernStream {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly messages: any[] // eslint-disable-line typescript/no-explicit-any
  /** Resolves with the first message, past or future, that fits. */
  next(fits: (message: any) => boolean): Promise<any> // eslint-disable-line typescript/no-explicit-any
  /** Methods after the acknowledgment, with the URI or the task that they are about. */
  said(): string[]
  /** Was it ended, or cut, from the other side? */
  readonly closed: boolean
  readonly ended: Promise<void>
  pause(): void
  close(): void
}

/** Sends `subscriptions/listen` and resolves with the head of the answer. */
export async function modernListen(
  url: string,
  notifications: unknown,
  options: ModernOptions = {}
): Promise<ModernStream> {
  const stop = new AbortController()
  options.signal?.addEventListener('abort', () => stop.abort(), { once: true })
  const response = await open(url, {
    method: 'POST',
    signal: stop.signal,
    ...modernMessage('subscriptions/listen', { notifications } as Json, options)
  })
  let text = ''
  let closed = false
  response.setEncoding('utf8')
  response.on('data', (part: string) => {
    text += part
  })
  response.on('error', () => {}) // Our own abort, or a cut that the test looks for.
  const ended = new Promise<void>((resolve) => {
    response.once('close', () => {
      closed = true
      resolve()
    })
  })
  // eslint-disable-next-line typescript/no-explicit-any
  const messages = (): any[] =>
    response.headers['content-type']?.startsWith('text/event-stream') === true
      ? eventsOf(text.slice(0, text.lastIndexOf('\n\n') + 2))
      : text === ''
        ? []
        : [JSON.parse(text)]
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    get text() {
      return text
    },
    get messages() {
      return messages()
    },
    next: (fits) => until('a message that fits', () => messages().find(fits)),
    said: () =>
      messages()
        .slice(1)
        .map(({ method, params }) =>
          [method, params?.uri ?? params?.taskId].filter((part) => part !== undefined).join(' ')
        ),
    get closed() {
      return closed
    },
    ended,
    pause: () => {
      response.pause()
    },
    close: () => stop.abort()
  }
}
