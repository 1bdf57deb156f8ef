// A raw client of HTTP+SSE (2024-11-05): one stream to hear on, POSTs to speak by.

import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { open, send, type Answer } from './client.ts'
import { until } from './until.ts'

export interface HttpSseClient {
  /** Absolute; with the id of the session. */
  readonly messagesUrl: string
  readonly headers: OutgoingHttpHeaders
  readonly response: IncomingMessage
  /** All that came on the stream, as text. */
  text(): string
  readonly messages: any[] // eslint-disable-line typescript/no-explicit-any
  /** The HTTP answer to a POST of any body. */
  post(body: unknown, headers?: OutgoingHttpHeaders): Promise<Answer>
  /** Posts a request; resolves with the message that answers it on the stream. */
  request(method: string, params?: unknown, id?: string | number): Promise<any> // eslint-disable-line typescript/no-explicit-any
  notify(method: string, params?: unknown): Promise<Answer>
  /** The first message, past or future, that fits; rejects where the stream ends without it. */
  next(what: string, fits: (message: any) => boolean): Promise<any> // eslint-disable-line typescript/no-explicit-any
  readonly ended: Promise<void>
  readonly closed: boolean
  close(): void
}

/** `…/mcp` -> `…/sse`. */
export const sseUrl = (mcpUrl: string): string => mcpUrl.replace(/mcp$/, 'sse')

/** Opens the stream and waits for its first event; says nothing yet. */
export async function openSse(
  url: string,
  token: string | undefined,
  more: OutgoingHttpHeaders = {}
): Promise<HttpSseClient> {
  const auth: OutgoingHttpHeaders = { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...more }
  const stop = new AbortController()
  const response = await open(url, { headers: { ...auth, accept: 'text/event-stream' }, signal: stop.signal })
  if (response.statusCode !== 200) {
    response.resume()
    throw new Error(`GET ${url}: ${response.statusCode}`)
  }
  let text = ''
  let rest = ''
  const messages: unknown[] = []
  let endpoint: string | undefined
  response.setEncoding('utf8')
  response.on('data', (part: string) => {
    text += part
    // A long event comes in many parts, and would be looked through for each.
    if (!part.includes('\n')) return void (rest += part)
    const events = (rest + part).split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) {
      const [, name, data = ''] = /^event: (\w+)\ndata: ([^\n]*)$/.exec(event) ?? []
      if (name === 'endpoint') endpoint = data
      else if (name === 'message') messages.push(JSON.parse(data))
      else if (!event.startsWith(': ')) throw new Error(`neither event nor comment: ${event}`)
    }
  })
  response.on('error', () => {}) // Our own abort.
  let closed = false
  const ended = new Promise<void>((resolve) => {
    response.once('close', () => {
      closed = true
      resolve()
    })
  })
  const unlessClosed = <T>(what: string, find: () => T | undefined) =>
    until(what, () => {
      const isOver = closed
      const found = find()
      if (found === undefined && isOver) throw new Error(`the stream ended without ${what}`)
      return found
    })
  const messagesUrl = new URL(await unlessClosed('the endpoint event', () => endpoint), url).href
  const headers = { ...auth, 'content-type': 'application/json' }
  const next = (what: string, fits: (message: never) => boolean): Promise<unknown> =>
    unlessClosed(what, () => messages.find((message) => fits(message as never)))
  let lastId = 0
  const post = (body: unknown, extra: OutgoingHttpHeaders = {}): Promise<Answer> =>
    send(messagesUrl, { headers: { ...headers, ...extra }, body: JSON.stringify(body) })
  return {
    messagesUrl,
    headers,
    response,
    text: () => text,
    messages,
    post,
    async request(method, params, id = ++lastId) {
      const answer = await post({ jsonrpc: '2.0', id, method, params })
      if (answer.status !== 202) throw new Error(`${method}: ${answer.status} ${answer.text}`)
      return await next(
        `the answer to ${method}`,
        (message: { id?: unknown; method?: unknown }) => message.id === id && message.method === undefined
      )
    },
    notify: (method, params) => post({ jsonrpc: '2.0', method, params }),
    next,
    ended,
    get closed() {
      return closed
    },
    close: () => stop.abort()
  }
}

/** With the handshake done. */
export async function httpSseClient(
  mcpUrl: string,
  token: string | undefined,
  revision = '2024-11-05',
  capabilities: unknown = {}
): Promise<HttpSseClient> {
  const client = await openSse(sseUrl(mcpUrl), token)
  try {
    const clientInfo = { name: 'raw', version: '1' }
    const params = { protocolVersion: revision, capabilities, clientInfo }
    const { error } = await client.request('initialize', params, 'init')
    if (error !== undefined) throw new Error(`initialize: ${JSON.stringify(error)}`)
    await client.notify('notifications/initialized')
    return client
  } catch (error) {
    client.close()
    throw error
  }
}
