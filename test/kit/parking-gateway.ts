// Legacy upstreams that send requests during a call, one for each transport, each behind an endpoint of its own; and
// the rounds of a modern client.

import { type Teardown } from './until.ts'
import { gateway, key, type TestGateway, type TestGatewayOptions } from './gateway.ts'
import type { Json, Script, Step } from './mcp-server.ts'
import { modernRequest, type ModernOptions } from './modern-client.ts'
import { startSseUpstream } from './sse-upstream.ts'
import { startUpstream, type HttpUpstream } from './upstream.ts'

export const serverRequests = {
  form: {
    method: 'elicitation/create',
    params: { message: 'who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }
  },
  url: {
    method: 'elicitation/create',
    params: { mode: 'url', message: 'look', url: 'https://example.com/page', elicitationId: 'e-1' }
  },
  sample: {
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }], maxTokens: 10 }
  },
  roots: { method: 'roots/list' }
}

export const replies = {
  form: { action: 'accept', content: { name: 'Ada' } },
  url: { action: 'accept' },
  sample: { role: 'assistant', content: { type: 'text', text: 'hi' }, model: 'm' },
  roots: { roots: [{ uri: 'file:///work', name: 'work' }] }
}

export const allCapabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

export const script: Script = {
  tools: ['echo', 'steps', 'elicit', 'withdraw', 'slow', 'release', 'crash', 'pid'].map((name) => ({
    name,
    inputSchema: { type: 'object' }
  })),
  prompts: [{ name: 'ask' }],
  resources: [{ uri: 'test://ask', name: 'ask' }]
}

export const transports = ['stdio', 'http', 'stream'] as const

export interface ParkingGateway extends TestGateway {
  readonly http: HttpUpstream
  readonly sse: HttpUpstream
}

/** Each transport is an endpoint of one upstream, with the names of the upstream. */
export async function parkingGateway(
  t: Teardown,
  more: Partial<TestGatewayOptions> = {},
  scripted: Script = script
): Promise<ParkingGateway> {
  const http = await startUpstream({ ...scripted, answers: 'sse' })
  const sse = await startSseUpstream(scripted)
  t.teardown(() => Promise.all([http.close(), sse.close()]))
  const acme = await gateway(t, {
    upstreams: {
      stdio: {
        command: process.execPath,
        args: [new URL('./stdio-server.ts', import.meta.url).pathname, JSON.stringify(scripted)]
      },
      http: { type: 'http', url: http.url },
      stream: { type: 'http', url: sse.url }
    },
    endpoints: Object.fromEntries(transports.map((name) => [name, { upstreams: [name], prefix: '' }])),
    ...more
  })
  return { ...acme, http, sse }
}

export interface Round {
  readonly status: number
  readonly result: Json | undefined
  readonly error: { readonly code: number; readonly message: string; readonly data: Json } | undefined
  /** What came ahead of the answer. */
  readonly notifications: Json[]
  readonly inputRequests: Record<string, { method: string; params?: Json }>
  readonly requestState: string
}

export async function round(url: string, method: string, params: Json, options: ModernOptions = {}): Promise<Round> {
  const { status, json, messages } = await modernRequest(url, method, params, {
    token: key,
    capabilities: allCapabilities,
    ...options
  })
  const { result, error } = json as { result?: Json; error?: Round['error'] }
  return {
    status,
    result,
    error,
    notifications: messages.slice(0, -1) as Json[],
    inputRequests: (result?.['inputRequests'] ?? {}) as Round['inputRequests'],
    requestState: String(result?.['requestState'])
  }
}

export const steps = (...all: Step[]): Json => ({ name: 'steps', arguments: { steps: all } })

/** The answers to what is asked, by kind. */
export function answersTo(asked: Round['inputRequests']): Json {
  return Object.fromEntries(
    Object.entries(asked).map(([key, { method, params }]) => [
      key,
      method === 'sampling/createMessage'
        ? replies.sample
        : method === 'roots/list'
          ? replies.roots
          : params?.['mode'] === 'url'
            ? replies.url
            : replies.form
    ])
  )
}

export const textOf = (result: Json | undefined): unknown => {
  const [content] = (result?.['content'] ?? []) as Array<{ text: string }>
  return content === undefined ? undefined : JSON.parse(content.text)
}
