// A call during which the server sends the client a request, step by step.

import { jsonHeaders, legacyClient, send, type Answer, type LegacyClient } from './client.ts'
import { postEvents, type EventStream } from './events.ts'

/** All that a client of 2025-11-25 can be asked. */
export const allCapabilities = {
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
  roots: { listChanged: true }
}

export const scriptedStdio = {
  command: process.execPath,
  args: [new URL('./stdio-server.ts', import.meta.url).pathname, '{}']
}

export type Json = Record<string, any> // eslint-disable-line typescript/no-explicit-any

export const isServerRequest = (message: Json): boolean =>
  typeof message['method'] === 'string' && message['id'] !== undefined

export interface CallWithServerRequest {
  readonly stream: EventStream
  readonly serverRequest: Json
  /** What the tool made of the answer: the kit's server gives back what it got. */
  result(): Promise<Json>
}

/** @param url of the client's endpoint */
export async function callUntilServerRequest(
  url: string,
  client: LegacyClient,
  name: string,
  args: Json = {},
  id: string | number = 'the call'
): Promise<CallWithServerRequest> {
  const stream = await postEvents(url, client, id, 'tools/call', { name, arguments: args })
  const serverRequest = (await stream.next('the server request', isServerRequest)) as Json
  return {
    stream,
    serverRequest: serverRequest,
    async result() {
      const final = (await stream.next('the result', (message: Json) => message['id'] === id)) as Json
      return JSON.parse(String(final['result']?.content[0].text)) as Json
    }
  }
}

/** Posts a response, or whatever else, as the client. */
export function post(url: string, client: Pick<LegacyClient, 'headers'>, message: Json): Promise<Answer> {
  return send(url, {
    headers: { ...jsonHeaders, ...client.headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message })
  })
}

export const capableClient = (
  url: string,
  token: string,
  capabilities: unknown = allCapabilities,
  revision = '2025-11-25'
): Promise<LegacyClient> => legacyClient(url, token, revision, capabilities)
