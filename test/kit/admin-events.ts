// A reader of the event streams of the admin API.

import { request, type IncomingMessage } from 'node:http'
import { adminKeys } from './admin.ts'
import { until, type Teardown } from './until.ts'

export interface AdminEvent {
  readonly event: string
  readonly data: Record<string, unknown>
}

export interface AdminEvents {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** Those that have come. */
  readonly events: readonly AdminEvent[]
  readonly text: string
  /** The server has ended it. */
  readonly ended: boolean
  /** Stops reading, as a slow reader does. */
  pause(): void
  resume(): void
  close(): void
  next(what: string, isIt: (event: AdminEvent) => boolean): Promise<AdminEvent>
}

export async function adminEvents(
  t: Teardown,
  adminUrl: string,
  path: string,
  key: string = adminKeys.platform,
  /** Sent as JSON, by POST; not given: GET. */
  body?: object
): Promise<AdminEvents> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const outgoing = request(`${adminUrl}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    agent: false,
    headers: {
      Authorization: `Bearer ${key}`,
      Accept: 'text/event-stream',
      ...(body !== undefined && { 'Content-Type': 'application/json' })
    }
  })
  outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  outgoing.on('response', resolve).on('error', reject)
  t.teardown(() => outgoing.destroy())
  const answer = await promise
  let [text, ended] = ['', false]
  answer.setEncoding('utf8')
  answer.on('data', (part: string) => (text += part))
  answer.on('end', () => (ended = true))
  answer.on('close', () => (ended = true))
  answer.on('error', () => (ended = true))
  const events = (): AdminEvent[] =>
    text
      .split('\n\n')
      .slice(0, -1)
      .flatMap((block) => {
        const { event, data } = /^event: (?<event>.*)\ndata: (?<data>.*)$/.exec(block)?.groups ?? {}
        return event === undefined ? [] : [{ event, data: JSON.parse(data ?? '') as Record<string, unknown> }]
      })
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    get events() {
      return events()
    },
    get text() {
      return text
    },
    get ended() {
      return ended
    },
    pause: () => void answer.pause(),
    resume: () => void answer.resume(),
    close: () => void outgoing.destroy(),
    next: (what, isIt) => until(what, () => events().find(isIt))
  }
}
