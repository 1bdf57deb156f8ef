// What a cell of the matrix asks of a client, whatever its revision; and what all the raw clients have in common.

import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { open } from '../kit/client.ts'
import type { Json } from '../kit/mcp-server.ts'
import type { Revision } from '../../src/protocol/messages.ts'
import { revisionValidator, type RevisionValidator } from './revision-validator.ts'

export interface Outcome {
  readonly result?: Json
  readonly error?: { code: number; message: string; data?: Json }
  readonly cancelled?: true
  /** What came ahead of the answer, in order. */
  readonly notifications: Json[]
  /** What the client was asked meanwhile: `{ method, params }`. */
  readonly asked: Json[]
  /** How: by requests of the server, or by results that ask for input. */
  readonly askedBy: 'request' | 'input_required' | undefined
}

export interface RequestOptions {
  readonly notified?: (notification: Json) => void
  /** The client cancels in the way of its revision. */
  readonly signal?: AbortSignal
  /** It does without extensions and tasks. */
  readonly plain?: true
  /** It wants log messages of this level. */
  readonly log?: string
}

export interface Subscription {
  /** Does the server promise to tell? */
  readonly granted: boolean
  close(): Promise<void>
}

export interface MatrixClient {
  readonly revision: Revision
  /** What the server said of itself in the handshake, or in answer to discovery. */
  readonly server: Json
  /** What the client got and should not have. */
  readonly violations: string[]
  request(method: string, params?: Json, options?: RequestOptions): Promise<Outcome>
  /** From now on it wants to know of changes of this list. */
  watch(kind: 'tools' | 'prompts' | 'resources'): Promise<Subscription>
  subscribe(uri: string): Promise<Subscription>
  /** Resolves with the first notification that came on no call's answer since `mark` and fits. */
  notified(fits: (notification: Json) => boolean, mark: number): Promise<Json>
  /** How many such notifications came so far. */
  received(): number
  close(): Promise<void>
}

/** All that a client of the revision can declare. */
export function capabilitiesOf(revision: Revision): Json {
  if (revision === '2026-07-28') {
    return {
      elicitation: { form: {}, url: {} },
      sampling: {},
      roots: {},
      extensions: { 'io.modelcontextprotocol/tasks': {} }
    }
  }
  return {
    roots: { listChanged: true },
    sampling: {},
    ...(revision === '2025-06-18' && { elicitation: {} }),
    ...(revision === '2025-11-25' && { elicitation: { form: {}, url: {} } })
  }
}

export const answers = {
  'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'a frog jumps in' }, model: 'm' },
  'elicitation/create': { action: 'accept', content: { name: 'Ada' } },
  'roots/list': { roots: [{ uri: 'file:///home/ada', name: 'home' }] }
} as const

/** What the person, the model or the program behind the client says. */
export function answerTo({ method, params }: { method?: unknown; params?: unknown }): Json {
  if (method === 'elicitation/create' && (params as Json)['mode'] === 'url') return { action: 'accept' }
  return answers[method as keyof typeof answers]
}

export interface Hearing {
  readonly validator: RevisionValidator
  readonly violations: string[]
  report(...faults: string[]): void
  /** A notification that belongs to no call. */
  take(notification: Json): void
  notified: MatrixClient['notified']
  received: MatrixClient['received']
}

/** Shorter than that for the whole cell, so that the reason is told. */
const patienceMs = 60_000

export function recordNotifications(revision: Revision): Hearing {
  const violations: string[] = []
  const all: Json[] = []
  const waiting = new Set<() => void>()
  return {
    validator: revisionValidator(revision),
    violations,
    report: (...faults) => {
      violations.push(...faults)
    },
    take(notification) {
      all.push(notification)
      for (const look of waiting) look()
    },
    received: () => all.length,
    notified: (fits, mark) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = all.slice(mark).find(fits)
          if (found === undefined) return
          clearTimeout(late)
          waiting.delete(look)
          resolve(found)
        }
        const late = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`the client never received of it, but of ${JSON.stringify(all.slice(mark))}`))
        }, patienceMs)
        waiting.add(look)
        look()
      })
  }
}

export interface Posted {
  readonly status: number
  /** Of the answer's end. */
  readonly ended: Promise<void>
  readonly response: IncomingMessage
}

/** Posts one message and hands out those of the answer as they come, JSON or SSE. */
export async function post(
  url: string,
  headers: OutgoingHttpHeaders,
  message: Json,
  hand: (message: Json, response: IncomingMessage) => void,
  signal?: AbortSignal
): Promise<Posted> {
  const response = await open(url, {
    method: 'POST',
    headers,
    body: JSON.stringify(message),
    ...(signal !== undefined && { signal })
  })
  return { status: response.statusCode ?? 0, response, ended: messagesOf(response, (part) => hand(part, response)) }
}

/** Resolves when the answer is over, however it ends. */
export function messagesOf(
  response: IncomingMessage,
  hand: (message: Json) => void,
  other?: (event: string, data: string) => void
): Promise<void> {
  const stream = response.headers['content-type']?.startsWith('text/event-stream') === true
  let rest = ''
  response.setEncoding('utf8')
  response.on('data', (part: string) => {
    rest += part
    if (!stream) return
    const events = rest.split('\n\n')
    rest = events.pop() ?? ''
    for (const block of events) {
      const field = (name: string): string =>
        block
          .split('\n')
          .filter((line) => line.startsWith(`${name}: `))
          .map((line) => line.slice(name.length + 2))
          .join('\n')
      const data = field('data')
      if (data === '') continue // A comment, or an event that only primes.
      if (field('event') !== '' && field('event') !== 'message') other?.(field('event'), data)
      else hand(JSON.parse(data) as Json)
    }
  })
  response.on('error', () => {}) // Cut by us, or by the other side; either way it is over.
  return new Promise((resolve) => {
    response.once('close', () => {
      if (!stream && rest !== '' && response.complete) hand(JSON.parse(rest) as Json)
      resolve()
    })
  })
}
