// The raw client of 2026-07-28: every request stands alone, server requests come as results, what belongs to no call
// comes on listen streams.

import type { IncomingMessage } from 'node:http'
import type { Id, Json } from '../kit/mcp-server.ts'
import { modernMessage, modernVersion } from '../kit/modern-client.ts'
import {
  answerTo,
  capabilitiesOf,
  recordNotifications,
  post,
  type MatrixClient,
  type Outcome,
  type RequestOptions,
  type Subscription
} from './client.ts'

const subscriptionId = 'io.modelcontextprotocol/subscriptionId'
const maxRounds = 4
const statuses: Readonly<Record<number, number>> = { [-32_601]: 404, [-32_020]: 400, [-32_021]: 400, [-32_022]: 400 }

export async function modernClient(url: string, key: string): Promise<MatrixClient> {
  const record = recordNotifications(modernVersion)
  const { validator, report } = record
  const capabilities = capabilitiesOf(modernVersion)
  let lastId = 0

  function check(method: string, message: Json, { statusCode, headers }: IncomingMessage): void {
    const json = headers['content-type']?.startsWith('application/json') === true
    if (message['error'] !== undefined) {
      const { code } = message['error'] as { code: number }
      report(...validator.error(message['error']))
      if (json && statuses[code] !== undefined && statusCode !== statuses[code])
        report(`${method}: error ${code} with status ${statusCode}`)
    } else report(...validator.result(method, message['result']))
  }

  /** One request, one answer. */
  async function once(
    method: string,
    params: Json,
    options: RequestOptions,
    notifications: Json[]
  ): Promise<Json | undefined> {
    const id = ++lastId
    const { _meta, ...bare } = params
    const { headers, body } = modernMessage(method, bare, {
      id,
      token: key,
      capabilities: options.plain === true ? { ...capabilities, extensions: {} } : capabilities,
      meta: {
        ...(_meta as Json | undefined),
        ...(options.log !== undefined && { 'io.modelcontextprotocol/logLevel': options.log })
      }
    })
    let last: Json | undefined
    const sent = post(
      url,
      headers,
      JSON.parse(body) as Json,
      (message, response) => {
        if (message['method'] === undefined) {
          if (message['id'] !== id) report(`an answer with another id: ${JSON.stringify(message).slice(0, 200)}`)
          check(method, message, response)
          last = message
          return
        }
        report(...validator.fromServer(message))
        if (message['id'] !== undefined) report(`a request of the server: ${String(message['method'])}`)
        if (!['notifications/progress', 'notifications/message'].includes(String(message['method'])))
          report(`${String(message['method'])} on the answer to ${method}`)
        notifications.push(message)
        options.notified?.(message)
      },
      options.signal
    )
    try {
      const { ended, status, response } = await sent
      if (response.headers['mcp-session-id'] !== undefined) report('a session id')
      await ended
      if (last === undefined && options.signal?.aborted !== true) report(`${method}: no answer, status ${status}`)
    } catch (error) {
      if (options.signal?.aborted !== true) throw error
    }
    return last
  }

  async function request(method: string, params: Json = {}, options: RequestOptions = {}): Promise<Outcome> {
    const notifications: Json[] = []
    const asked: Json[] = []
    let more: Json = {}
    for (let round = 0; round < maxRounds; round++) {
      const answer = await once(method, { ...params, ...more }, options, notifications)
      const common = { notifications, asked, askedBy: asked.length > 0 ? ('input_required' as const) : undefined }
      if (answer === undefined) return { ...common, cancelled: true }
      if (answer['error'] !== undefined) return { ...common, error: answer['error'] as NonNullable<Outcome['error']> }
      const result = answer['result'] as Json
      if (result['resultType'] !== 'input_required') return { ...common, result }
      const requests = Object.entries((result['inputRequests'] ?? {}) as Record<string, Json>)
      asked.push(...requests.map(([, { method, params }]) => ({ method, params })))
      more = {
        inputResponses: Object.fromEntries(requests.map(([name, question]) => [name, answerTo(question)])),
        ...('requestState' in result && { requestState: result['requestState'] })
      }
    }
    throw new Error(`${method}: asked for more than ${maxRounds} rounds`)
  }

  async function listen(notifications: Json, granted: (filter: Json) => boolean): Promise<Subscription> {
    const id: Id = ++lastId
    const stop = new AbortController()
    const { headers, body } = modernMessage('subscriptions/listen', { notifications }, { id, token: key, capabilities })
    const filter = await new Promise<Json>((resolve, reject) => {
      let acknowledged = false
      post(
        url,
        headers,
        JSON.parse(body) as Json,
        (message, response) => {
          if (message['method'] === undefined) {
            check('subscriptions/listen', message, response)
            return resolve({})
          }
          report(...validator.fromServer(message))
          const params = message['params'] as Json
          if ((params['_meta'] as Json | undefined)?.[subscriptionId] !== id)
            report(`${String(message['method'])} without the subscription's id`)
          if (acknowledged) return record.take(message)
          acknowledged = true
          if (message['method'] !== 'notifications/subscriptions/acknowledged')
            report(`first on the stream: ${String(message['method'])}`)
          resolve(params['notifications'] as Json)
        },
        stop.signal
      ).catch((error: unknown) => {
        if (!stop.signal.aborted) reject(error as Error)
      })
    })
    return { granted: granted(filter), close: async () => stop.abort() }
  }

  const { result } = await request('server/discover')
  if (result === undefined) throw new Error('server/discover failed')
  return {
    revision: modernVersion,
    server: result,
    violations: record.violations,
    request,
    watch: (kind) => listen({ [`${kind}ListChanged`]: true }, (filter) => filter[`${kind}ListChanged`] === true),
    subscribe: (uri) =>
      listen(
        { resourceSubscriptions: [uri] },
        ({ resourceSubscriptions }) => Array.isArray(resourceSubscriptions) && resourceSubscriptions.includes(uri)
      ),
    notified: record.notified,
    received: record.received,
    async close() {}
  }
}
