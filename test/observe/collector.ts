// A collector that speaks OTLP over HTTP with JSON: POST to /v1/traces, /v1/metrics or /v1/logs, answered 200 with an
// object. It can be slow or refuse.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from '../kit/listen.ts'
import { until, type Teardown } from '../kit/until.ts'

export interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

export interface Point {
  readonly attributes: readonly Attribute[]
  readonly startTimeUnixNano: string
  readonly timeUnixNano: string
  readonly count?: number
  readonly sum?: number
  readonly bucketCounts?: readonly number[]
  readonly asDouble?: number
  readonly asInt?: number
}

interface Points {
  readonly dataPoints: readonly Point[]
  /** 2: cumulative. */
  readonly aggregationTemporality?: number
}

export interface MetricMessage {
  readonly name: string
  readonly unit: string
  readonly histogram?: Points
  readonly sum?: Points & { readonly isMonotonic: boolean }
  readonly gauge?: Points
}

export interface LogMessage {
  readonly body: { readonly stringValue: string }
  readonly eventName?: string
  readonly severityText: string
  readonly traceId?: string
  readonly attributes: readonly Attribute[]
}

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly status: { readonly code?: number }
  readonly attributes: readonly Attribute[]
}

interface Resource {
  readonly attributes: readonly Attribute[]
}

interface Message {
  readonly resourceSpans?: ReadonlyArray<{
    readonly resource: Resource
    readonly scopeSpans: ReadonlyArray<{ readonly spans: readonly Span[] }>
  }>
  readonly resourceMetrics?: ReadonlyArray<{
    readonly resource: Resource
    readonly scopeMetrics: ReadonlyArray<{ readonly metrics: readonly MetricMessage[] }>
  }>
  readonly resourceLogs?: ReadonlyArray<{
    readonly resource: Resource
    readonly scopeLogs: ReadonlyArray<{ readonly logRecords: readonly LogMessage[] }>
  }>
}

export interface Collector {
  readonly endpoint: string
  /** The newest of each name; where it comes in parts, all of them. */
  readonly metrics: MetricMessage[]
  readonly logs: LogMessage[]
  readonly spans: Span[]
  /** Each message to the letter. */
  readonly raw: string[]
  /** Of each message. */
  readonly seen: Array<{ readonly path: string | undefined; readonly key: unknown; readonly resource: object }>
  /** Answers of messages that are not answered yet. */
  readonly open: ServerResponse[]
  /** Of what it takes. */
  answer: { readonly headers: Readonly<Record<string, string>>; readonly body: string | Buffer }
  /** undefined: it answers 200; 0: never. */
  status: number | undefined
}

export async function collector(t: Teardown): Promise<Collector> {
  const answer: Collector['answer'] = { headers: { 'Content-Type': 'application/json' }, body: '{}' }
  const state: Omit<Collector, 'endpoint'> = {
    metrics: [],
    logs: [],
    spans: [],
    raw: [],
    seen: [],
    open: [],
    answer,
    status: undefined
  }
  const take = (path: string | undefined, headers: IncomingMessage['headers'], body: string): void => {
    const { resourceMetrics = [], resourceLogs = [], resourceSpans = [] } = JSON.parse(body) as Message
    state.raw.push(body)
    for (const { resource } of [...resourceMetrics, ...resourceLogs, ...resourceSpans])
      state.seen.push({ path, key: headers['x-api-key'], resource: valuesOf(resource.attributes) })
    state.metrics.push(...resourceMetrics.flatMap((each) => each.scopeMetrics.flatMap(({ metrics }) => metrics)))
    state.spans.push(...resourceSpans.flatMap((each) => each.scopeSpans.flatMap(({ spans }) => spans)))
    state.logs.push(...resourceLogs.flatMap((each) => each.scopeLogs.flatMap(({ logRecords }) => logRecords)))
  }
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (part: string) => (body += part))
    request.on('end', () => {
      if (state.status === 0) return void state.open.push(response)
      if (state.status !== undefined) return void response.writeHead(state.status).end()
      take(request.url, request.headers, body)
      response.writeHead(200, state.answer.headers).end(state.answer.body)
    })
  })
  const endpoint = await listen(t, server)
  return Object.assign(state, { endpoint })
}

/**
 * Waits until there are so many spans of a trace. At its end the gateway gives its collector a second, which does not
 * do where the machine stands still: then the last spans come a moment later.
 */
export const spansOf = (to: Collector, traceId: string, count: number): Promise<Span[]> =>
  until(`${count} spans of the trace`, () => {
    const found = to.spans.filter((span) => span.traceId === traceId)
    return found.length >= count ? found : undefined
  })

export const valuesOf = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

export const spanAttributes = ({ attributes }: Span): Record<string, unknown> => valuesOf(attributes)
