// One request of 2026-07-28 to this gateway's own listener, with the credential of whoever wants it, as a host on this
// machine would send it: it has no rights of its own, and leads nowhere else.

import type { IncomingMessage } from 'node:http'
import { createParser } from 'eventsource-parser'
import { openRequest } from '../egress/requests.ts'
import { capabilitiesKey, clientInfoKey, versionKey } from '../protocol/envelope.ts'
import { isObject, latestModern, type JsonObject } from '../protocol/messages.ts'
import { encodeHeader, headersFor, paramHeadersOf } from '../protocol/translate/param-headers.ts'

/** The most characters of an answer that are kept: it is shown on a page. */
const maxShownChars = 900_000

export interface OwnListener {
  /** The URL on which the gateway listens. */
  readonly url: string
  readonly publicUrl: string
}

export interface OwnCall {
  readonly listener: OwnListener
  /** The path of the endpoint. */
  readonly path: string
  readonly credential: string | undefined
  readonly clientInfo: { readonly name: string; readonly version: string }
  readonly capabilities: JsonObject
  /** The address of the person for whom the request is made, as a proxy gives it. */
  readonly address: string
  readonly signal: AbortSignal
  /** Progress and log messages. */
  notified(method: string, params: JsonObject): void
}

export interface OwnAnswer {
  readonly status: number
  readonly requestId: string | undefined
  /** The message; undefined where the answer has none. */
  readonly message: JsonObject | undefined
  /** Beginning of a body that is no message. */
  readonly text: string
}

/** An answer that is longer than is shown; its call was made. */
export class AnswerTooLong extends Error {
  override readonly name = 'AnswerTooLong'
}

/** @throws AnswerTooLong; Error where there is no answer */
export async function ownToolCall(call: OwnCall, params: JsonObject & { readonly name: string }): Promise<OwnAnswer> {
  const send = (more: Record<string, string> = {}): Promise<OwnAnswer> =>
    ownRequest(
      call,
      'tools/call',
      { ...params, _meta: { progressToken: 1 } },
      { 'Mcp-Name': encodeHeader(params.name), ...more }
    )
  const first = await send()
  if (reasonOf(first) !== 'header_mismatch') return first
  // The tool wants arguments repeated in headers: its schema says which. It was not called.
  const tool = await ownTool(call, params.name)
  const annotations = isObject(tool?.['inputSchema']) ? paramHeadersOf(tool['inputSchema']) : []
  return typeof annotations === 'string' ? first : await send(headersFor(annotations, params['arguments']))
}

async function ownTool(call: OwnCall, name: string): Promise<JsonObject | undefined> {
  let cursor: unknown
  do {
    const { message } = await ownRequest(call, 'tools/list', cursor === undefined ? {} : { cursor })
    const result = isObject(message?.['result']) ? message['result'] : {}
    const tools: unknown[] = Array.isArray(result['tools']) ? result['tools'] : []
    const found = tools.filter(isObject).find((tool) => tool['name'] === name)
    if (found !== undefined) return found
    cursor = result['nextCursor']
  } while (typeof cursor === 'string')
  return undefined
}

function ownRequest(
  call: OwnCall,
  method: string,
  params: JsonObject,
  more: Readonly<Record<string, string>> = {}
): Promise<OwnAnswer> {
  const { listener, path, credential, address, signal, clientInfo, capabilities } = call
  const { promise, resolve, reject } = Promise.withResolvers<OwnAnswer>()
  const _meta = {
    ...(isObject(params['_meta']) ? params['_meta'] : {}),
    [versionKey]: latestModern,
    [clientInfoKey]: clientInfo,
    [capabilitiesKey]: capabilities
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } })
  const url = new URL(path, listener.url)
  // A socket that listens on all addresses is reached on this machine.
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  const outgoing = openRequest(url, {
    method: 'POST',
    signal,
    headers: {
      Host: new URL(listener.publicUrl).host,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': latestModern,
      'Mcp-Method': method,
      'X-Forwarded-For': address,
      ...(credential !== undefined && { Authorization: `Bearer ${credential}` }),
      ...more
    }
  })
  outgoing.on('error', reject)
  outgoing.on('response', (answer) => void readAnswer(answer, call).then(resolve, reject))
  outgoing.end(body)
  return promise
}

async function readAnswer(answer: IncomingMessage, { notified }: OwnCall): Promise<OwnAnswer> {
  const { statusCode: status = 0, headers } = answer
  const requestId = headers['x-request-id']?.toString()
  let text = ''
  let chars = 0
  let message: JsonObject | undefined
  const parser = createParser({
    onEvent({ data }) {
      const said = messageIn(data)
      if (said === undefined) return
      if (typeof said['method'] !== 'string') message = said
      else if (said['id'] === undefined) notified(said['method'], isObject(said['params']) ? said['params'] : {})
    }
  })
  const isStream = headers['content-type']?.startsWith('text/event-stream') === true
  answer.setEncoding('utf8')
  for await (const part of answer as AsyncIterable<string>) {
    chars += part.length
    if (chars > maxShownChars) throw new AnswerTooLong()
    if (isStream) parser.feed(part)
    else text += part
  }
  return { status, requestId, message: message ?? messageIn(text), text: isStream ? '' : text.slice(0, 2_000) }
}

function messageIn(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function reasonOf({ message }: OwnAnswer): unknown {
  const error = isObject(message?.['error']) ? message['error'] : {}
  return isObject(error['data']) ? error['data']['reason'] : undefined
}
