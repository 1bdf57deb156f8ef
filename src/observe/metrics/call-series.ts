// How long calls took, by what stands of them: a histogram for each combination of attributes. Own code in place of
// OpenTelemetry's histogram, which sorts the attributes of each call and writes them as JSON to find theirs: 8 % of the
// CPU time of a small call for two metrics.

import { type Attributes as OtelAttributes, type HrTime, ValueType } from '@opentelemetry/api'
import {
  AggregationTemporality,
  DataPointType,
  type Histogram as OtelHistogram,
  type MetricData
} from '@opentelemetry/sdk-metrics'
import type { Attributes } from './call-attributes.ts'
import { bucketsOf, instruments, type MetricName } from './instruments.ts'

/** Of one metric: names and codes multiply. Beyond it calls of the tenant are counted without them. */
const maxSeriesPerTenant = 1_000
/** Of one metric; what is beyond is counted together, with the label `otel_metric_overflow`. */
export const maxSeries = 10_000

/** Counted as `other` where a tenant has too many series. */
const boundedNames = [
  ...['gen_ai.tool.name', 'gen_ai.prompt.name', 'rpc.response.status_code'],
  ...['gatehouse.endpoint', 'gatehouse.upstream']
]

/** Of each metric: with all buckets full these take a few MiB. */
const maxSeriesWithExemplars = 1_000
/** Beyond, the other series of a tenant keep none. */
const maxWithExemplarsOfTenant = 100

/** A call whose duration is in a bucket, by its trace (OpenMetrics 1.0, "Exemplars"). */
export interface Exemplar {
  readonly traceId: string
  readonly spanId: string
  readonly seconds: number
  /** The time of day. */
  readonly at: number
}

/** The value of a data point, with what OpenTelemetry's SDK has no place for. */
export type HistogramValue = OtelHistogram & { readonly exemplars: ReadonlyArray<Exemplar | undefined> | undefined }

export interface Histogram {
  readonly attributes: OtelAttributes
  /** Of the values up to each boundary and above the one before; the last of those above all. */
  readonly counts: number[]
  sum: number
  count: number
  /** The last one of each bucket; undefined: of none. */
  exemplars: Array<Exemplar | undefined> | undefined
  /** '' where it is of several. */
  readonly tenant: string
}

/** @param wall the time of day */
export function createCallSeries(name: MetricName, wall: { now(): number }) {
  const startTime = timeOf(wall)
  const boundaries = bucketsOf[name] ?? []
  const tenants = new Map<string, Map<string, Histogram>>()
  const all: Histogram[] = []
  let overflow: Histogram | undefined
  /** Of each tenant, those that have had them for the longest time first. */
  const withExemplars = new Map<string, Histogram[]>()
  let places = maxSeriesWithExemplars

  function made(attributes: OtelAttributes, tenant: string): Histogram {
    const counts = Array<number>(boundaries.length + 1).fill(0)
    const series = { attributes, counts, sum: 0, count: 0, exemplars: undefined, tenant }
    all.push(series)
    return series
  }

  function find(tenant: string, attributes: Attributes): Histogram {
    let known = tenants.get(tenant)
    if (known === undefined) tenants.set(tenant, (known = new Map()))
    const key = Object.values(attributes).join('\n')
    const found = known.get(key)
    if (found !== undefined) return found
    if (known.size >= maxSeriesPerTenant && hasNames(attributes)) return find(tenant, withoutNames(attributes))
    if (all.length >= maxSeries - 1) return (overflow ??= made({ 'otel.metric.overflow': true }, ''))
    const series = made(plain(attributes), tenant)
    known.set(key, series)
    return series
  }

  /** Where all places are taken, whoever has most of them gives one to whoever has fewer. */
  function hasPlace({ tenant }: Histogram): boolean {
    const own = withExemplars.get(tenant)?.length ?? 0
    if (own >= maxWithExemplarsOfTenant) return false
    if (places > 0) return places-- > 0
    const most = [...withExemplars.values()].reduce((a, b) => (b.length > a.length ? b : a))
    if (most.length <= own + 1) return false
    const oldest = most.shift()
    if (oldest !== undefined) oldest.exemplars = undefined
    return true
  }

  function keepExemplars(series: Histogram): Histogram['exemplars'] {
    if (!hasPlace(series)) return undefined
    const own = withExemplars.get(series.tenant) ?? []
    withExemplars.set(series.tenant, own)
    own.push(series)
    return Array<Exemplar | undefined>(boundaries.length + 1).fill(undefined)
  }

  /** @param trace of the call, where a collector gets it */
  function add(series: Histogram, seconds: number, trace?: Pick<Exemplar, 'traceId' | 'spanId'>): void {
    let bucket = 0
    while (bucket < boundaries.length && seconds > (boundaries[bucket] ?? Infinity)) bucket++
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
    series.sum += seconds
    series.count++
    if (trace === undefined) return
    const exemplars = (series.exemplars ??= keepExemplars(series))
    if (exemplars !== undefined)
      exemplars[bucket] = { traceId: trace.traceId, spanId: trace.spanId, seconds, at: wall.now() }
  }

  return {
    /** @param attributes always the same ones, in the same order; undefined: it has none of these */
    record: (seconds: number, tenant: string, attributes: Attributes): void => add(find(tenant, attributes), seconds),
    /** The one that values with these attributes belong to, for as long as it is asked. */
    find,
    add,
    /** As OpenTelemetry has it, each value a `HistogramValue`; a copy of what there is now. */
    data(): MetricData {
      const { unit, description } = instruments[name]
      const endTime = timeOf(wall)
      return {
        descriptor: { name, unit, description, valueType: ValueType.DOUBLE },
        dataPointType: DataPointType.HISTOGRAM,
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        dataPoints: all.map(({ attributes, counts, sum, count, exemplars }) => ({
          startTime,
          endTime,
          attributes,
          value: {
            buckets: { boundaries, counts: [...counts] },
            sum,
            count,
            exemplars: exemplars && [...exemplars]
          } satisfies HistogramValue
        }))
      }
    }
  }
}

/** As OpenTelemetry has it: seconds, and nanoseconds. */
const timeOf = (wall: { now(): number }): HrTime => {
  const ms = Math.trunc(wall.now())
  return [Math.trunc(ms / 1_000), (ms % 1_000) * 1e6]
}

const hasNames = (attributes: Attributes): boolean =>
  boundedNames.some((name) => attributes[name] !== undefined && attributes[name] !== 'other')

function withoutNames(attributes: Attributes): Attributes {
  const others = { ...attributes }
  if (others['error.type'] === others['rpc.response.status_code']) others['error.type'] &&= 'other'
  for (const name of boundedNames) others[name] &&= 'other'
  return others
}

/** Without what is undefined, which would become a label. */
export function plain(attributes: Attributes): OtelAttributes {
  const result: OtelAttributes = {}
  for (const name in attributes) if (attributes[name] !== undefined) result[name] = attributes[name]
  return result
}
