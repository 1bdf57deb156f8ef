// A raw legacy client that answers server requests, over either of the transports that such clients have.

import { legacyClient, type LegacyClient } from './client.ts'
import { isServerRequest, post, type Json } from './server-request.ts'
import { postEvents, type EventStream } from './events.ts'
import { httpSseClient } from './http-sse-client.ts'
import { until } from './until.ts'

export const legacyRevisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
export const legacyTransports = ['Streamable HTTP', 'HTTP+SSE'] as const
export type LegacyTransport = (typeof legacyTransports)[number]

export interface RunningCall {
  readonly id: string
  /** The next `count` server requests that nobody here has seen yet. */
  serverRequests(count?: number): Promise<Json[]>
  /** The response to the request. */
  final(): Promise<Json>
  /** All that the client heard since. */
  messages(): Json[]
  /** The stream of the request, as soon as there is one; undefined over HTTP+SSE. */
  readonly stream: EventStream | undefined
}

export interface AnsweringClient {
  readonly capabilities: Json
  start(method: string, params?: Json): Promise<RunningCall>
  /** Starts and waits for the end. */
  request(method: string, params?: Json): Promise<Json>
  /** Answers a server request. */
  answer(serverRequest: Json, result: Json): Promise<void>
  refuse(serverRequest: Json, error: Json): Promise<void>
  notify(method: string, params?: Json): Promise<unknown>
  /** Streamable HTTP only. */
  readonly client: LegacyClient | undefined
  close(): void
}

/** @param url of the endpoint, `…/mcp` */
export async function answeringClient(
  url: string,
  token: string,
  door: LegacyTransport,
  revision: string,
  capabilities: Json = {}
): Promise<AnsweringClient> {
  let lastId = 0
  const streamable = door === 'Streamable HTTP' ? await legacyClient(url, token, revision, capabilities) : undefined
  const old = streamable === undefined ? await httpSseClient(url, token, revision, capabilities) : undefined
  const initialized =
    streamable === undefined
      ? (old?.messages.find(({ id }) => id === 'init') as Json)
      : (streamable.initialized.json as Json)
  const seen = new Set<unknown>()

  const say = async (message: Json): Promise<void> => {
    const answer =
      streamable === undefined ? await old?.post({ jsonrpc: '2.0', ...message }) : await post(url, streamable, message)
    if (answer?.status !== 202) throw new Error(`${JSON.stringify(message)}: ${answer?.status} ${answer?.text}`)
  }

  async function start(method: string, params: Json = {}): Promise<RunningCall> {
    const id = `call ${++lastId}`
    const from = old?.messages.length ?? 0
    let stream: EventStream | undefined
    if (streamable === undefined) await say({ id, method, params })
    // There is no answer, not even its head, until there is something to say.
    else
      void postEvents(url, streamable, id, method, params).then((opened) => {
        stream = opened
      })
    const messages = (): Json[] => {
      if (streamable === undefined) return (old?.messages ?? []).slice(from) as Json[]
      if (stream === undefined) return []
      // A plain answer is no stream.
      return stream.type === 'application/json'
        ? stream.closed
          ? [JSON.parse(stream.text()) as Json]
          : []
        : (stream.messages() as Json[])
    }
    return {
      id,
      get stream() {
        return stream
      },
      messages,
      async serverRequests(count = 1) {
        const found = await until(`${count} serverRequests`, () => {
          const open = messages().filter((message) => isServerRequest(message) && !seen.has(message['id']))
          return open.length >= count ? open.slice(0, count) : undefined
        })
        for (const serverRequest of found) seen.add(serverRequest['id'])
        return found
      },
      final: () =>
        until(`the answer to ${method}`, () =>
          messages().find((message) => message['id'] === id && message['method'] === undefined)
        )
    }
  }

  return {
    capabilities: initialized['result'].capabilities as Json,
    client: streamable,
    start,
    request: async (method, params) => await (await start(method, params)).final(),
    answer: (serverRequest, result) => say({ id: serverRequest['id'], result }),
    refuse: (serverRequest, error) => say({ id: serverRequest['id'], error }),
    notify: (method, params = {}) => say({ method, params }),
    close() {
      old?.close()
    }
  }
}
