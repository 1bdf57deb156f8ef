// The MCP client of the command line: Streamable HTTP of 2025-11-25, one request at a time. It declares no
// capabilities, so that servers send it no requests.

import { cellText } from '../../observe/text-log.ts'
import { createParser } from 'eventsource-parser'
import { finished } from '../../protocol/json-steps.ts'
import { createOperatorFetch } from '../../egress/fetch.ts'
import { isObject, latestLegacy, rpcCodes, type JsonObject } from '../../protocol/messages.ts'
import { decodeSteps } from '../../upstream/rpc/decode-json.ts'

export interface McpAnswer {
  readonly status: number
  readonly headers: Headers
  /** The message with the id of the request; undefined where there is none. */
  readonly message: JsonObject | undefined
  /** Beginning of a body that is no such message. */
  readonly text: string
}

/** The endpoint refused, or answered with an error; the message says what it said. */
export class McpRefusal extends Error {
  override readonly name = 'McpRefusal'
  readonly answer: McpAnswer
  /** Advice that is printed after the message. */
  advice: string | undefined

  constructor(answer: McpAnswer) {
    super(saidBy(answer))
    this.answer = answer
  }
}

export interface McpClientOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly version: string
  /** In milliseconds, for one request. */
  readonly timeoutMs: number
  /** Progress and log messages. */
  notified?(method: string, params: JsonObject): void
}

export type McpClient = Awaited<ReturnType<typeof openMcpClient>>

const maxShownChars = 2_000

/** @throws McpRefusal where initialize is refused; Error where there is no connection */
export async function openMcpClient(options: McpClientOptions) {
  const { url, headers, version, timeoutMs, notified } = options
  const fetch = createOperatorFetch()
  let session: string | undefined
  let revision: string | undefined
  let lastId = 0

  async function post(message: JsonObject): Promise<McpAnswer> {
    const answer = await fetch(url, {
      method: 'POST',
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        ...headers,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...(session !== undefined && { 'Mcp-Session-Id': session }),
        ...(revision !== undefined && { 'MCP-Protocol-Version': revision })
      },
      body: JSON.stringify(message)
    })
    const found = answer.headers.get('content-type')?.startsWith('text/event-stream')
      ? await messageOfStream(answer, message['id'])
      : messageOfText(await answer.text())
    return { status: answer.status, headers: answer.headers, ...found }
  }

  async function messageOfStream(answer: Response, id: unknown): Promise<Pick<McpAnswer, 'message' | 'text'>> {
    let found: JsonObject | undefined
    const parser = createParser({
      onEvent({ data }) {
        const { message } = messageOfText(data)
        if (message === undefined) return
        const { method, params } = message
        if (typeof method !== 'string') found = message['id'] === id ? message : found
        else if (message['id'] === undefined) notified?.(method, isObject(params) ? params : {})
        else void refuse(message['id'])
      }
    })
    const decoder = new TextDecoder()
    for await (const chunk of answer.body ?? []) {
      parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }))
      if (found !== undefined) break
    }
    return { message: found, text: '' }
  }

  /** Refuses a server request during a call. */
  const refuse = (id: unknown): Promise<unknown> =>
    post({
      jsonrpc: '2.0',
      id,
      error: { code: rpcCodes.methodNotFound, message: 'This client answers no requests.' }
    }).catch(() => {})

  /** @throws McpRefusal */
  async function request(method: string, params: JsonObject = {}): Promise<JsonObject> {
    const answer = await post({ jsonrpc: '2.0', id: ++lastId, method, params })
    if (session === undefined && method === 'initialize') session = answer.headers.get('mcp-session-id') ?? undefined
    const result = answer.message?.['result']
    if (!isObject(result)) throw new McpRefusal(answer)
    return result
  }

  const initialized = await request('initialize', {
    protocolVersion: latestLegacy,
    capabilities: {},
    clientInfo: { name: 'gatehouse-cli', version }
  })
  const agreed = String(initialized['protocolVersion'])
  revision = agreed
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' })

  return {
    initialized,
    request,
    /** All pages of a list. @throws McpRefusal */
    async list(method: string, member: string): Promise<JsonObject[]> {
      const all: JsonObject[] = []
      let cursor: unknown
      do {
        const page = await request(method, cursor === undefined ? {} : { cursor })
        all.push(...(Array.isArray(page[member]) ? page[member] : []).filter(isObject))
        cursor = page['nextCursor']
      } while (typeof cursor === 'string')
      return all
    },
    /** Ends the session. */
    async close(): Promise<void> {
      if (session === undefined) return
      const ended = { ...headers, 'Mcp-Session-Id': session, 'MCP-Protocol-Version': agreed }
      await fetch(url, { method: 'DELETE', headers: ended, signal: AbortSignal.timeout(timeoutMs) }).catch(() => {})
    }
  }
}

function messageOfText(text: string): Pick<McpAnswer, 'message' | 'text'> {
  try {
    // The gateway's own decoder: long numbers keep their digits, and its limits are those for upstreams.
    const value = finished(decodeSteps(text))
    return { message: isObject(value) ? value : undefined, text: text.slice(0, maxShownChars) }
  } catch {
    return { message: undefined, text: text.slice(0, maxShownChars) }
  }
}

function saidBy({ status, headers, message, text }: McpAnswer): string {
  const error = message?.['error']
  if (!isObject(error)) {
    const said = text.replaceAll(/\s+/g, ' ').trim().slice(0, 200)
    return `HTTP ${status}, without an MCP message${said === '' ? '' : `: ${said}`}`
  }
  const data = isObject(error['data']) ? error['data'] : {}
  const named = data['reason'] === undefined ? '' : ` (${cellText(data['reason'])})`
  const id = headers.get('x-request-id')
  const request = id === null ? '' : `, request ${id}`
  return `${String(error['message'])} [${String(error['code'])}${named}, HTTP ${status}${request}]`
}
