// Metrics by OpenTelemetry, read as Prometheus writes them, or sent to a collector. Loaded only where the configuration
// has an admin listener, which serves them, or such a collector.

import { Readable } from 'node:stream'
import type { BatchObservableResult, Observable } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider, MetricReader, type ResourceMetrics } from '@opentelemetry/sdk-metrics'
import type { WorkOwner } from '../../time/fair-queue.ts'
import { runSteps } from '../../time/turns.ts'
import type { Clock } from '../../time/clock.ts'
import { type CallOutcome, type EndedCall, mayBeHeld, type ObservedCall } from '../calls.ts'
import { createCountedLater } from '../counted-later.ts'
import { createCallAttributes, type Attributes, type MeteredUpstream, type UpstreamRequest } from './call-attributes.ts'
import { createCallSeries, maxSeries, plain } from './call-series.ts'
import { createLabelNames } from './label-names.ts'
import { createTenantCounts } from './tenant-counts.ts'
import { createSentSeries, createServedSeries } from './known-series.ts'
import { bucketsOf, instruments, type MetricName } from './instruments.ts'
import { metricsText, type MetricsForm } from './metrics-text.ts'
import { watchRuntime } from './runtime.ts'

/** That are being read: each holds a copy of all series. */
export const maxAnswers = 4

/** What the parts of the gateway hold now. */
export interface Readings {
  readonly counts: Readonly<Partial<Record<MetricName, number>>>
  /** Of stdio upstreams, by tenant; in bytes. */
  readonly processMemory: ReadonlyMap<string, number>
  /** By its name. */
  readonly caches: Readonly<Record<string, { readonly hits: number; readonly misses: number }>>
  /** Calls that run, by tenant: each that there is. */
  readonly running: ReadonlyMap<string, number>
  readonly upstreams: Iterable<{
    readonly tenant: string
    readonly name: string
    readonly isAway: boolean
    readonly isSilent: boolean
    readonly connections: number
    readonly calls: number
  }>
}

/** A session that has ended. */
export interface ServedSession {
  readonly tenant: string
  readonly endpoint: string
  readonly revision: string
}

/** Reasons of refusals (protocol/error-table.ts) behind which a limit stands. */
const limits: ReadonlySet<string> = new Set([
  ...['too_many', 'too_large', 'rate_limited', 'quota_exceeded', 'overloaded', 'headers_too_large']
])

export type Metrics = ReturnType<typeof createMetrics>

export interface MetricsOptions {
  /** What names this process. */
  readonly resource: Readonly<Record<string, string>>
  readonly version: string
  /** As the conventions call the store. */
  readonly database: string
  readonly clock: Pick<Clock, 'timer'>
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
}

export function createMetrics({ resource, version, database, clock, wall }: MetricsOptions) {
  const reader = new PulledReader()
  const provider = new MeterProvider({
    resource: resourceFromAttributes({ ...resource }),
    readers: [reader],
    views: [{ instrumentName: '*', aggregationCardinalityLimit: maxSeries }]
  })
  const scope = { name: 'gatehouse', version }
  const meter = provider.getMeter(scope.name, version)
  const names = createLabelNames()
  const served = createCallSeries('mcp.server.operation.duration', wall, names)
  const sent = createCallSeries('mcp.client.operation.duration', wall, names)
  const connections = createCallSeries('mcp.client.session.duration', wall, names)
  const attributesOf = createCallAttributes(names, [served, sent, connections])
  const servedSeries = createServedSeries(served, attributesOf)
  const sentSeries = createSentSeries(sent, attributesOf)
  const sessions = createCallSeries('mcp.server.session.duration', wall)
  const asked = createCallSeries('db.client.operation.duration', wall)
  const refusals = createTenantCounts('gatehouse.requests.refused', wall)
  const limitsHit = createTenantCounts('gatehouse.limits.hit', wall)
  const series = [served, sent, sessions, connections, asked, refusals, limitsHit]
  const pauses = histogram('v8js.gc.duration')
  const losses = meter.createCounter('gatehouse.telemetry.dropped', optionsOf('gatehouse.telemetry.dropped'))
  const runtime = watchRuntime((seconds, attributes) => pauses.record(seconds, plain(attributes)))
  const observables = new Map<string, Observable>()
  let readings: Readings | undefined
  const answers = new Set<Readable>()
  for (const [name, { kind }] of Object.entries(instruments) as Array<[MetricName, { kind: string }]>) {
    if (kind === 'gauge') observables.set(name, meter.createObservableGauge(name, optionsOf(name)))
    if (kind === 'upDownCounter') observables.set(name, meter.createObservableUpDownCounter(name, optionsOf(name)))
    if (kind === 'observableCounter') observables.set(name, meter.createObservableCounter(name, optionsOf(name)))
  }

  meter.addBatchObservableCallback((result) => readings && report(result, readings), [...observables.values()])

  function histogram(name: MetricName) {
    const explicitBucketBoundaries = bucketsOf[name] ?? []
    return meter.createHistogram(name, { ...optionsOf(name), advice: { explicitBucketBoundaries } })
  }

  function report(
    result: BatchObservableResult,
    { counts, running, processMemory, caches, upstreams }: Readings
  ): void {
    const tell = (name: MetricName, value: number, attributes: Attributes = {}): void => {
      const observable = observables.get(name)
      if (observable !== undefined) result.observe(observable, value, plain(attributes))
    }
    runtime.read(tell)
    for (const [name, value] of Object.entries(counts)) tell(name as MetricName, value)
    for (const [tenant, calls] of running) tell('gatehouse.calls.running', calls, { 'gatehouse.tenant': tenant })
    for (const [tenant, bytes] of processMemory)
      tell('gatehouse.processes.memory', bytes, { 'gatehouse.tenant': tenant })
    for (const [cache, { hits, misses }] of Object.entries(caches))
      for (const [result, uses] of Object.entries({ hit: hits, miss: misses }))
        tell('gatehouse.cache.requests', uses, { 'gatehouse.cache': cache, 'gatehouse.result': result })
    for (const { tenant, name, isAway, isSilent, connections, calls } of upstreams) {
      const attributes = { 'gatehouse.tenant': tenant, 'gatehouse.upstream': name }
      tell('gatehouse.upstream.available', isAway ? 0 : 1, attributes)
      tell('gatehouse.upstream.silent', isSilent ? 1 : 0, attributes)
      tell('gatehouse.upstream.connections', connections, attributes)
      tell('gatehouse.upstream.calls', calls, attributes)
    }
  }

  function limitHit(reason: string, tenant: string | undefined): void {
    if (limits.has(reason)) limitsHit.add(reason, tenant)
  }

  function countServed(calls: readonly EndedCall[]): void {
    for (const { call, ended } of calls) {
      const trace = call.record?.trace
      served.add(servedSeries(call, ended), ended.ms / 1e3, trace?.isSampled === true ? trace : undefined)
      if (ended.outcome !== 'ok') limitHit(ended.outcome, call.tenant.id)
    }
  }

  const servedLater = createCountedLater(clock, countServed)

  async function collect(now: Readings): Promise<ResourceMetrics> {
    servedLater.settle()
    readings = now
    for (const each of series) each.keepOnly(now.running)
    const { resourceMetrics, errors } = await reader.collect()
    if (errors[0] !== undefined) throw errors[0]
    const calls = {
      scope,
      metrics: series.map((each) => each.data()).filter(({ dataPoints }) => dataPoints.length > 0)
    }
    return { ...resourceMetrics, scopeMetrics: [calls, ...resourceMetrics.scopeMetrics] }
  }

  return {
    /** A call has been answered, or will not be. */
    callEnded(call: ObservedCall, ended: CallOutcome): void {
      servedLater.add({ call, ended }, mayBeHeld(call))
    },
    /** For whoever else counts calls. */
    calls: { countedBy: servedLater.also, settle: servedLater.settle },
    /** @returns what counts a request to this upstream: at once, which takes less than to keep it until many are */
    requestsTo(definition: MeteredUpstream): (request: UpstreamRequest) => void {
      const seriesOf = sentSeries(definition)
      return (request) => sent.add(seriesOf(request), request.ms / 1e3)
    },
    /** @param tenant of the caller who was let in */
    refused(reason: string, tenant: string | undefined): void {
      refusals.add(reason, tenant)
      limitHit(reason, tenant)
    },
    /** A session has ended: its client has ended it, or left it to expire. */
    sessionEnded(seconds: number, { tenant, endpoint, revision }: ServedSession): void {
      const place = { 'gatehouse.tenant': tenant, 'gatehouse.endpoint': endpoint }
      sessions.record(seconds, tenant, { 'mcp.protocol.version': revision, ...place })
    },
    /** A connection to an upstream has ended. */
    connectionEnded(seconds: number, definition: MeteredUpstream, error: string | undefined): void {
      connections.record(seconds, definition.tenant, attributesOf.ofConnection(definition, error))
    },
    /** The store has answered. */
    storeAsked(seconds: number, operation: string, failure: string | undefined): void {
      const attributes = { 'db.system.name': database, 'db.operation.name': operation, 'error.type': failure }
      asked.record(seconds, '', attributes)
    },
    /** A collector did not get so many spans, points or lines. */
    dropped(signal: string, items: number): void {
      losses.add(items, { 'gatehouse.signal': signal })
    },
    /** All metrics as they are now. */
    collect,
    /**
     * All metrics as they are now, as text, made in parts as they are read.
     * @returns undefined where too many are being read already
     */
    async text(now: Readings, form: MetricsForm): Promise<Readable | undefined> {
      if (answers.size >= maxAnswers) return undefined
      const answer = Readable.from(partsOf(metricsText(await collect(now), form)), { objectMode: false })
      answers.add(answer)
      answer.once('close', () => answers.delete(answer))
      return answer
    },
    async close(): Promise<void> {
      runtime.close()
      await provider.shutdown()
    }
  }
}

/** Of the text: the work of one that reads metrics. */
const owner: WorkOwner = { tenant: '', caller: 'metrics' }

async function* partsOf(text: ReturnType<typeof metricsText>): AsyncGenerator<string, void, undefined> {
  for (let part = await runSteps(text.nextPart(), owner); part !== ''; part = await runSteps(text.nextPart(), owner))
    yield part
}

/** Nothing is sent: whoever wants metrics asks. */
class PulledReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}

  protected override async onShutdown(): Promise<void> {}
}

const optionsOf = (name: MetricName): { readonly unit: string; readonly description: string } => {
  const { unit, description } = instruments[name]
  return { unit, description }
}
