// A raw MCP client over HTTP: every byte of the request is the test's, every byte of the answer is shown.

import { request, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { once } from 'node:events'
import { patienceMs } from './until.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as one JSON value, or the last message of the stream. */
  readonly json: any // eslint-disable-line typescript/no-explicit-any
  /** The messages of a stream in order; of a JSON answer, the one. */
  readonly messages: readonly any[] // eslint-disable-line typescript/no-explicit-any
}

export interface Sent {
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Buffer
  readonly signal?: AbortSignal
}

/** One HTTP exchange on a connection of its own. Follows nothing, adds nothing but Host. */
export async function send(url: string, { method = 'POST', headers = {}, body, signal }: Sent = {}): Promise<Answer> {
  const response = await open(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal })
  })
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return answerOf(response, Buffer.concat(chunks).toString())
}

/** Like send, but hands out the response as soon as its head is there. */
export async function open(
  url: string,
  { method = 'GET', headers = {}, body, signal }: Sent = {}
): Promise<IncomingMessage> {
  const outgoing = request(url, { method, headers, agent: false, ...(signal === undefined ? {} : { signal }) })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  outgoing.on('error', () => {}) // Answered and closed before it had the whole body: the answer is what counts.
  return response
}

function answerOf({ statusCode = 0, headers }: IncomingMessage, text: string): Answer {
  const messages =
    headers['content-type']?.startsWith('text/event-stream') === true
      ? eventsOf(text)
      : text === ''
        ? []
        : [parsed(text)]
  return { status: statusCode, headers, text, messages, json: messages.at(-1) }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // Not JSON: the test sees `text`.
  }
}

/** The messages in the text of an event stream; comments are left out. */
export function eventsOf(text: string): unknown[] {
  return text.split('\n\n').flatMap((event) => {
    const data = event
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => line.slice(6))
      .join('\n')
    return data === '' ? [] : [JSON.parse(data) as unknown]
  })
}

export interface LegacyClient {
  readonly sessionId: string
  readonly initialized: Answer
  /** Sends a request with the next id, or the given one. */
  request(
    method: string,
    params?: unknown,
    options?: { id?: string | number; headers?: OutgoingHttpHeaders; signal?: AbortSignal }
  ): Promise<Answer>
  notify(method: string, params?: unknown): Promise<Answer>
  /** The GET stream: messages as they come. */
  listen(): Promise<Listening>
  end(): Promise<Answer>
  readonly headers: OutgoingHttpHeaders
}

export interface Listening {
  readonly messages: any[] // eslint-disable-line typescript/no-explicit-any
  /** Resolves with the first message, past or future, that fits. */
  next(fits: (message: any) => boolean): Promise<any> // eslint-disable-line typescript/no-explicit-any
  readonly ended: Promise<void>
  close(): void
}

export const jsonHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** A session over Streamable HTTP: initialize and notifications/initialized are done. */
export async function legacyClient(
  url: string,
  token: string | undefined,
  revision = '2025-11-25',
  capabilities: unknown = {}
): Promise<LegacyClient> {
  const auth: OutgoingHttpHeaders = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const initialized = await send(url, {
    headers: { ...jsonHeaders, ...auth },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 'init',
      method: 'initialize',
      params: { protocolVersion: revision, capabilities, clientInfo: { name: 'raw', version: '1' } }
    })
  })
  if (initialized.status !== 200) throw new Error(`initialize: ${initialized.status} ${initialized.text}`)
  const sessionId = String(initialized.headers['mcp-session-id'])
  const headers = {
    ...jsonHeaders,
    ...auth,
    'mcp-session-id': sessionId,
    ...(revision >= '2025-06-18' ? { 'mcp-protocol-version': revision } : {})
  }
  let nextId = 0
  const client: LegacyClient = {
    sessionId,
    initialized,
    headers,
    request: (method, params, { id = ++nextId, headers: extra = {}, signal } = {}) =>
      send(url, {
        headers: { ...headers, ...extra },
        body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
        ...(signal === undefined ? {} : { signal })
      }),
    notify: (method, params) => send(url, { headers, body: JSON.stringify({ jsonrpc: '2.0', method, params }) }),
    listen: () => listen(url, headers),
    end: () => send(url, { method: 'DELETE', headers })
  }
  const done = await client.notify('notifications/initialized')
  if (done.status !== 202) throw new Error(`notifications/initialized: ${done.status} ${done.text}`)
  return client
}

async function listen(url: string, headers: OutgoingHttpHeaders): Promise<Listening> {
  const stop = new AbortController()
  const response = await open(url, {
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream' },
    signal: stop.signal
  })
  if (response.statusCode !== 200) throw new Error(`GET: ${response.statusCode}`)
  const messages: unknown[] = []
  const waiting = new Set<() => void>()
  let rest = ''
  response.setEncoding('utf8')
  response.on('data', (text: string) => {
    const events = (rest + text).split('\n\n')
    rest = events.pop() ?? ''
    messages.push(...eventsOf(events.join('\n\n')))
    for (const wake of waiting) wake()
  })
  const ended = new Promise<void>((resolve) => response.once('close', resolve))
  response.on('error', () => {}) // Our own abort.
  return {
    messages,
    next: (fits) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = messages.find(fits)
          if (found === undefined) return
          waiting.delete(look)
          clearTimeout(late)
          resolve(found)
        }
        const late = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`no such message within ${patienceMs} ms; there were: ${JSON.stringify(messages)}`))
        }, patienceMs)
        waiting.add(look)
        look()
      }),
    ended,
    close: () => stop.abort()
  }
}

/** What differs from one refusal to the next: the id of the request, in the body. */
export const withoutRequestId = (text: string): string => text.replace(/,"requestId":"[^"]*"/, '')
