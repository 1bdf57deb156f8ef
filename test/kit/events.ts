// Event streams as a client of the protocol sees them: every event with its id, its data and its `retry`, comments
// beside them.

import type { OutgoingHttpHeaders } from 'node:http'
import { open, type LegacyClient } from './client.ts'
import { until } from './until.ts'

export interface StreamEvent {
  readonly id: string | undefined
  readonly retry: number | undefined
  /** Undefined: an event without data. */
  readonly message: any // eslint-disable-line typescript/no-explicit-any
}

/**
 * The events of a text that are complete: one without the empty line at its end was never dispatched (HTML,
 * "Server-sent events").
 */
export function readEvents(text: string): StreamEvent[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .flatMap((block) => {
      const field = (name: string): string | undefined =>
        block
          .split('\n')
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).replace(/^ /, ''))[0]
      if (block.split('\n').every((line) => line.startsWith(':'))) return []
      const data = field('data')
      const retry = field('retry')
      return [
        {
          id: field('id'),
          retry: retry === undefined ? undefined : Number(retry),
          message: data === undefined || data === '' ? undefined : (JSON.parse(data) as unknown)
        }
      ]
    })
}

export interface EventStream {
  readonly status: number
  readonly type: string | undefined
  text(): string
  events(): StreamEvent[]
  /** What its events say, primes left out. */
  messages(): any[] // eslint-disable-line typescript/no-explicit-any
  lastId(): string | undefined
  /** Resolves with the first message, past or future, that fits; rejects where the stream ends without it. */
  next(what: string, fits: (message: any) => boolean): Promise<any> // eslint-disable-line typescript/no-explicit-any
  readonly ended: Promise<void>
  readonly closed: boolean
  /** Breaks the connection. */
  cut(): void
}

export interface Opening {
  readonly method?: string
  readonly headers: OutgoingHttpHeaders
  readonly body?: string
}

export async function openEvents(url: string, opening: Opening): Promise<EventStream> {
  const response = await open(url, opening)
  let text = ''
  let closed = false
  response.setEncoding('utf8')
  response.on('data', (part: string) => {
    text += part
  })
  response.on('error', () => {}) // Our own cut, or the server's.
  const ended = new Promise<void>((resolve) => {
    response.once('close', () => {
      closed = true
      resolve()
    })
  })
  const made: EventStream = {
    status: response.statusCode ?? 0,
    type: response.headers['content-type'],
    text: () => text,
    events: () => readEvents(text),
    messages: () =>
      made
        .events()
        .map(({ message }) => message as unknown)
        .filter((message) => message !== undefined),
    lastId: () => made.events().findLast(({ id }) => id !== undefined)?.id,
    next: (what, fits) =>
      until(what, () => {
        const isOver = closed
        const found = made.messages().find(fits) as unknown
        if (found === undefined && isOver)
          throw new Error(`the stream ended without ${what}: ${made.status} ${text.slice(-1_000)}`)
        return found
      }),
    ended,
    get closed() {
      return closed
    },
    cut: () => response.destroy()
  }
  return made
}

/** The GET stream of a session; `lastEventId` resumes another one. */
export function listenEvents(
  url: string,
  client: Pick<LegacyClient, 'headers'>,
  lastEventId?: string
): Promise<EventStream> {
  return openEvents(url, {
    method: 'GET',
    headers: {
      ...client.headers,
      accept: 'text/event-stream',
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId })
    }
  })
}

/** One request whose answer is read while it comes. */
export function postEvents(
  url: string,
  client: Pick<LegacyClient, 'headers'>,
  id: string | number,
  method: string,
  params?: unknown,
  headers: OutgoingHttpHeaders = {}
): Promise<EventStream> {
  return openEvents(url, {
    method: 'POST',
    headers: { ...client.headers, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params })
  })
}
