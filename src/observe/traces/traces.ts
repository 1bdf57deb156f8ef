// Traces by OpenTelemetry, sent to a collector over OTLP. Loaded only where the configuration names one.

import {
  createTraceState,
  ROOT_CONTEXT,
  SpanKind,
  TraceFlags,
  trace as api,
  type Attributes,
  type Span
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TracerProvider,
  type SpanExporter,
  type SpanProcessor
} from '@opentelemetry/sdk-trace'
import { isObject } from '../../protocol/messages.ts'
import { firstOf } from '../../protocol/own-text.ts'
import { exporterTo } from '../otlp/exporter.ts'
import type { Losses } from '../otlp/losses.ts'
import type { LogsPlace } from '../otlp/send-logs.ts'
import { beginRound, endSpan } from './rounds.ts'
import { parentOf, traceparentOf, type TraceParent } from './trace-context.ts'
import { loggedSessionChars } from '../call-text.ts'
import { errorTypeOf } from '../metrics/call-attributes.ts'
import {
  countedName,
  maxLoggedChars,
  type CallOutcome,
  type CallTrace,
  type ObservedCall,
  type RecordedRoute
} from '../calls.ts'

/** Spans that wait to be sent; what is beyond is dropped, and no call waits. */
const maxQueuedSpans = 4_096
const maxSpansAtOnce = 512
const sendAfterMs = 2_000
const sendMs = 5_000

export type Traces = ReturnType<typeof createTraces>

export interface TracesOptions {
  readonly place: LogsPlace
  readonly samplePercent: number
  /** What names this process. */
  readonly resource: Readonly<Record<string, string>>
  readonly version: string
  readonly losses: Losses
}

export function createTraces({ place, samplePercent, resource, version, losses }: TracesOptions) {
  const exporter = new OTLPTraceExporter(exporterTo(place, sendMs))
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ ...resource }),
    // Whoever calls has decided already.
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [countedSpans(exporter, losses)]
  })
  const tracer = provider.getTracer('gatehouse', version)

  return {
    /** A call has come. Its span ends with it. @returns undefined where its trace begins here, and is not sent */
    begin({ request, tenant, endpoint, record }: ObservedCall): CallTrace | undefined {
      const parent = parentOf(request.params, record?.traceHeaders)
      // Spans that nobody gets cost half as much as those that are sent.
      if (parent === undefined && Math.random() * 100 >= samplePercent) return undefined
      // A method that does not exist may be as long as the request, and a slice would keep all of it in memory.
      const method = firstOf(request.method, 64)
      const attributes = {
        'mcp.method.name': method,
        'gatehouse.tenant': tenant.id,
        'gatehouse.endpoint': endpoint.name
      }
      const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, contextOf(parent))
      return callTrace(span, parent)
    },
    close: (): Promise<void> => provider.shutdown().catch(() => {}) // The collector is away: its spans are lost.
  }

  function callTrace(span: Span, parent: TraceParent | undefined): CallTrace {
    const { traceId, spanId, traceFlags } = span.spanContext()
    const rounds: Array<ReturnType<typeof beginRound>> = []
    return {
      traceId,
      spanId,
      isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0,
      sent(request, upstream, route) {
        const { method } = request
        const name = spanNameOf(method, route)
        const attributes = {
          'mcp.method.name': method,
          'gatehouse.upstream': upstream,
          ...(method === 'tools/call' && { 'gen_ai.operation.name': 'execute_tool' }),
          ...(method === 'tools/call' && name !== undefined && { 'gen_ai.tool.name': name })
        }
        const title = name === undefined ? method : `${method} ${name}`
        const round = beginRound(tracer, span, { title, method, attributes })
        rounds.push(round)
        const sent = round.spanContext()
        const meta = request.params?.['_meta']
        const traced = {
          ...(isObject(meta) && meta),
          traceparent: traceparentOf({ traceId, spanId: sent.spanId, traceFlags: sent.traceFlags }),
          ...(parent?.tracestate !== undefined && { tracestate: parent.tracestate })
        }
        return { ...request, params: { ...request.params, _meta: traced } }
      },
      again: (why) => rounds.at(-1)?.again(why),
      answered: (answer) => rounds.at(-1)?.answered(answer),
      ended(call, ended) {
        span.setAttributes(attributesOf(call, ended))
        const { method } = call.request
        const name = spanNameOf(method, call.record?.route)
        if (name !== undefined) span.updateName(`${method} ${name}`)
        const type = errorTypeOf(call.record, ended.outcome, ended.code?.toString())
        // What the upstream has not answered is given up with the call, or waits for its next one.
        for (const round of rounds) round.end(type)
        endSpan(span, type)
      }
    }
  }
}

/** The batches of OpenTelemetry, which drops in silence what its queue has no room for: here that is counted. */
function countedSpans(exporter: SpanExporter, losses: Losses): SpanProcessor {
  let waiting = 0
  const batches = new BatchSpanProcessor({
    exporter: {
      export(spans, done) {
        waiting -= spans.length
        exporter.export(spans, (result) => {
          if (result.error === undefined) losses.delivered()
          else losses.lost(spans.length, result.error)
          done(result)
        })
      },
      shutdown: () => exporter.shutdown()
    },
    maxQueueSize: maxQueuedSpans,
    maxExportBatchSize: maxSpansAtOnce,
    scheduledDelayMillis: sendAfterMs,
    exportTimeoutMillis: sendMs
  })
  return {
    onStart: () => {},
    onEnd(span) {
      if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return
      if (waiting >= maxQueuedSpans) return losses.lost(1)
      waiting++
      batches.onEnd(span)
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown()
  }
}

const contextOf = (parent: TraceParent | undefined) =>
  parent === undefined
    ? ROOT_CONTEXT
    : api.setSpanContext(ROOT_CONTEXT, {
        ...parent,
        isRemote: true,
        ...(parent.tracestate !== undefined && { traceState: createTraceState(parent.tracestate) })
      })

const namesSpan = /^(?:tools\/call|prompts\/get)$/

/**
 * Of a tool or a prompt, as in the conventions: a URI may hold arguments, and there are too many of them for the names
 * of spans.
 */
function spanNameOf(method: string, route: RecordedRoute | undefined): string | undefined {
  const name = namesSpan.test(method) ? countedName(route) : undefined
  return name && firstOf(name, maxLoggedChars)
}

/** What the line of the log says, in the names of the conventions where they have some. Never arguments or results. */
function attributesOf({ request, record, principal }: ObservedCall, { outcome, code }: CallOutcome): Attributes {
  const { route, revision, session, requestId, software, waitMs, upstreamMs, bodyBytes, answerBytes, attempts } =
    record ?? {}
  return {
    ...(request.method === 'tools/call' && { 'gen_ai.operation.name': 'execute_tool' }),
    ...(request.method === 'tools/call' &&
      route !== undefined && { 'gen_ai.tool.name': firstOf(route.name, maxLoggedChars) }),
    ...(request.method === 'prompts/get' &&
      route !== undefined && { 'gen_ai.prompt.name': firstOf(route.name, maxLoggedChars) }),
    ...(revision !== undefined && { 'mcp.protocol.version': revision }),
    ...(code !== undefined && { 'rpc.response.status_code': String(code) }),
    ...(route !== undefined && { 'gatehouse.upstream': route.upstream }),
    ...(session !== undefined && { 'gatehouse.session': session.slice(-loggedSessionChars) }),
    ...(requestId !== undefined && { 'gatehouse.request_id': requestId }),
    ...(software !== undefined && {
      'gatehouse.client': firstOf(`${software.name} ${software.version}`, maxLoggedChars)
    }),
    ...(waitMs !== undefined && { 'gatehouse.wait_ms': waitMs }),
    ...(upstreamMs !== undefined && { 'gatehouse.upstream_ms': upstreamMs }),
    ...(bodyBytes !== undefined && { 'gatehouse.bytes_in': bodyBytes }),
    ...(answerBytes !== undefined && { 'gatehouse.bytes_out': answerBytes }),
    ...(attempts !== undefined && { 'gatehouse.attempts': attempts }),
    'gatehouse.outcome': outcome,
    'enduser.id': (record?.caller ?? principal).subject
  }
}
