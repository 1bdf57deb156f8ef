// Raw clients of the revisions with handshake: over Streamable HTTP with a session and a listening stream, and over
// HTTP+SSE.

import type { OutgoingHttpHeaders } from 'node:http'
import { jsonHeaders, open } from '../kit/client.ts'
import { sseUrl } from '../kit/http-sse-client.ts'
import type { Id, Json } from '../kit/mcp-server.ts'
import type { LegacyRevision } from '../../src/protocol/messages.ts'
import {
  answerTo,
  capabilitiesOf,
  type MatrixClient,
  messagesOf,
  type Outcome,
  post,
  recordNotifications,
  type RequestOptions
} from './client.ts'

/** What carries the messages of one client. */
interface Wire {
  /** @param answered gets what comes on the answer to this very message, where there is one */
  send(message: Json, answered: (message: Json) => void): Promise<void>
  close(): void
}

interface Running {
  readonly method: string
  readonly token: unknown
  readonly notifications: Json[]
  readonly asked: Json[]
  readonly options: RequestOptions
  settle(outcome: Outcome): void
}

type Carry = (
  url: string,
  key: string,
  revision: LegacyRevision,
  hand: (message: Json) => void,
  report: (fault: string) => void
) => Promise<Wire & { ready?(): Promise<void> }>

async function legacyClient(carry: Carry, url: string, key: string, revision: LegacyRevision): Promise<MatrixClient> {
  const record = recordNotifications(revision)
  const { validator, report } = record
  const running = new Map<Id, Running>()
  let lastId = 0

  function hand(message: Json, on?: Running): void {
    const { id, method } = message as { id?: Id; method?: string }
    if (method === undefined) return finish(id as Id, message)
    report(...validator.fromServer(message))
    if (id !== undefined) return answer(message, on)
    const params = (message['params'] ?? {}) as Json
    const owner =
      on ??
      [...running.values()].find((each) =>
        method === 'notifications/progress'
          ? each.token === params['progressToken']
          : method === 'notifications/message' && each.options.log !== undefined
      )
    if (owner === undefined) return record.take(message)
    owner.notifications.push(message)
    owner.options.notified?.(message)
  }

  function answer(message: Json, on: Running | undefined): void {
    const { id, method } = message as { id: Id; method: string }
    if (method === 'ping') return void wire.send({ jsonrpc: '2.0', id, result: {} }, () => {})
    const owner =
      on ?? [...running.values()].find((each) => ['tools/call', 'prompts/get', 'resources/read'].includes(each.method))
    if (owner === undefined) report(`a server request of no call: ${method}`)
    owner?.asked.push({ method, params: message['params'] })
    void wire.send({ jsonrpc: '2.0', id, result: answerTo(message as { method: string }) }, () => {})
  }

  function finish(id: Id, message: Json): void {
    const found = running.get(id)
    if (found === undefined) return report(`an answer to nothing: ${JSON.stringify(message).slice(0, 200)}`)
    running.delete(id)
    const { method, notifications, asked } = found
    const common = { notifications, asked, askedBy: asked.length > 0 ? ('request' as const) : undefined }
    if (message['error'] !== undefined) {
      report(...validator.error(message['error']))
      return found.settle({ ...common, error: message['error'] as NonNullable<Outcome['error']> })
    }
    report(...validator.result(method, message['result']))
    found.settle({ ...common, result: message['result'] as Json })
  }

  const wire = await carry(
    url,
    key,
    revision,
    (message) => hand(message),
    (fault) => report(fault)
  )

  function request(method: string, params?: Json, options: RequestOptions = {}): Promise<Outcome> {
    const id = ++lastId
    return new Promise((settle, reject) => {
      const token = (params?.['_meta'] as Json | undefined)?.['progressToken']
      const current: Running = { method, token, notifications: [], asked: [], options, settle }
      running.set(id, current)
      options.signal?.addEventListener('abort', () => {
        running.delete(id)
        void wire.send(
          { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'no longer needed' } },
          () => {}
        )
        settle({ cancelled: true, notifications: current.notifications, asked: [], askedBy: undefined })
      })
      wire
        .send({ jsonrpc: '2.0', id, method, ...(params !== undefined && { params }) }, (message) =>
          hand(message, current)
        )
        .catch(reject)
    })
  }

  const { result } = await request('initialize', {
    protocolVersion: revision,
    capabilities: capabilitiesOf(revision),
    clientInfo: { name: 'matrix', version: '1' }
  })
  if (result === undefined) throw new Error('initialize failed')
  await wire.send({ jsonrpc: '2.0', method: 'notifications/initialized' }, () => {})
  await wire.ready?.()

  return {
    revision,
    server: result,
    violations: record.violations,
    async request(method, params, options = {}) {
      if (options.log !== undefined) await request('logging/setLevel', { level: options.log })
      return await request(method, params, options)
    },
    async watch(kind) {
      const granted = ((result['capabilities'] as Json)[kind] as Json | undefined)?.['listChanged'] === true
      return { granted, close: async () => {} }
    },
    async subscribe(uri) {
      const { error } = await request('resources/subscribe', { uri })
      return {
        granted: error === undefined,
        close: async () => {
          if (error === undefined) await request('resources/unsubscribe', { uri })
        }
      }
    },
    notified: record.notified,
    received: record.received,
    async close() {
      wire.close()
    }
  }
}

const overHttp: Carry = async (url, key, revision, hand, report) => {
  const headers: OutgoingHttpHeaders = { ...jsonHeaders, authorization: `Bearer ${key}` }
  const stop = new AbortController()
  return {
    async send(message, answered) {
      const { status, response, ended } = await post(url, headers, message, answered)
      if (message['method'] === 'initialize') {
        headers['mcp-session-id'] = String(response.headers['mcp-session-id'])
        // A header that came with 2025-06-18.
        if (revision >= '2025-06-18') headers['mcp-protocol-version'] = revision
      }
      const expected = message['id'] === undefined || message['method'] === undefined ? 202 : 200
      if (status !== expected) report(`${String(message['method'] ?? 'an answer')} was answered ${status}`)
      await ended
    },
    async ready() {
      const response = await open(url, { headers: { ...headers, accept: 'text/event-stream' }, signal: stop.signal })
      if (response.statusCode !== 200) throw new Error(`GET: ${response.statusCode}`)
      void messagesOf(response, hand)
    },
    close: () => stop.abort()
  }
}

const overSse: Carry = async (url, key, _revision, hand, report) => {
  const stop = new AbortController()
  const headers = { authorization: `Bearer ${key}` }
  const response = await open(sseUrl(url), {
    headers: { ...headers, accept: 'text/event-stream' },
    signal: stop.signal
  })
  if (response.statusCode !== 200) throw new Error(`GET: ${response.statusCode}`)
  const messagesUrl = await new Promise<string>((resolve) => {
    void messagesOf(response, hand, (event, data) => {
      if (event === 'endpoint') resolve(new URL(data, url).href)
    })
  })
  return {
    async send(message) {
      const { status, ended } = await post(
        messagesUrl,
        { ...headers, 'content-type': 'application/json' },
        message,
        () => report('an answer beside the stream')
      )
      if (status !== 202) report(`${String(message['method'] ?? 'an answer')} was answered ${status}`)
      await ended
    },
    close: () => stop.abort()
  }
}

export const httpClient = (url: string, key: string, revision: LegacyRevision): Promise<MatrixClient> =>
  legacyClient(overHttp, url, key, revision)
export const sseClient = (url: string, key: string, revision: LegacyRevision): Promise<MatrixClient> =>
  legacyClient(overSse, url, key, revision)
