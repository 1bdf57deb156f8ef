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
import { createExemplarPlaces, type Exemplar } from './exemplars.ts'
import type { LabelNames } from './label-names.ts'
import { bucketsOf, instruments, type MetricName } from './instruments.ts'

/** Of one metric: names and codes multiply. Beyond it calls of the tenant are counted without them. */
const maxSeriesPerTenant = 1_000
/** Of one metric; what is beyond is counted together, with the label `otel_metric_overflow`. */
export const maxSeries = 10_000

/** Where places are wanted, series give theirs up that have not grown for so long; looked for once in so long. */
const idleMs = 600_000
const lookEveryMs = 60_000

/** Counted as `other` where a tenant has too many series. */
const boundedNames = [
  ...['gen_ai.tool.name', 'gen_ai.prompt.name', 'rpc.response.status_code'],
  ...['gatehouse.endpoint', 'gatehouse.upstream']
]

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
  /** What it is found by. */
  readonly key: string
  readonly startTime: HrTime
  /** The count when it was looked at last, and when it had grown by then; milliseconds. */
  seen: number
  grownAt: number
  /** It has made room: whoever keeps it has to find another one. */
  isGone: boolean
}

interface TenantSeries {
  readonly known: Map<string, Histogram>
  /** When idle ones were looked for last, and when there was no room last. */
  lookedAt: number
  refusedAt: number
}

/**
 * @param wall the time of day
 * @param names what is counted of the names in its series; undefined: nothing
 */
export function createCallSeries(name: MetricName, wall: { now(): number }, names?: LabelNames) {
  const boundaries = bucketsOf[name] ?? []
  const tenants = new Map<string, TenantSeries>()
  const all = new Set<Histogram>()
  let overflow: Histogram | undefined
  const places = createExemplarPlaces(boundaries.length + 1)

  function made(attributes: OtelAttributes, tenant: string, key = ''): Histogram {
    const counts = Array<number>(boundaries.length + 1).fill(0)
    const values = { counts, sum: 0, count: 0, exemplars: undefined }
    const times = { startTime: timeOf(wall), seen: 0, grownAt: wall.now(), isGone: false }
    return { attributes, ...values, tenant, key, ...times }
  }

  function seriesOf(tenant: string): TenantSeries {
    const own = tenants.get(tenant) ?? { known: new Map(), lookedAt: -Infinity, refusedAt: -Infinity }
    tenants.set(tenant, own)
    return own
  }

  function look(series: Histogram, now: number): void {
    if (series.count === series.seen) return
    series.seen = series.count
    series.grownAt = now
  }

  function remove(series: Histogram): void {
    const { tenant, key, attributes } = series
    series.isGone = true
    all.delete(series)
    tenants.get(tenant)?.known.delete(key)
    names?.removed(tenant, attributes as Attributes)
    places.free(series)
  }

  /** Removes those with names that have not grown for a while. */
  function removeIdle(tenant: string): void {
    const own = seriesOf(tenant)
    const now = wall.now()
    if (now - own.lookedAt < lookEveryMs) return
    own.lookedAt = now
    for (const series of [...own.known.values()]) {
      look(series, now)
      if (now - series.grownAt >= idleMs && hasNames(series.attributes as Attributes)) remove(series)
    }
  }

  /** Where all places are taken, whoever has most of them gives one to whoever has fewer. */
  function hasRoom(tenant: string, own: TenantSeries): boolean {
    if (all.size < maxSeries - 1) return true
    const now = wall.now()
    // Looked for among all tenants, and most calls find none: not at each.
    if (now - own.refusedAt < 1_000) return false
    removeIdle(tenant)
    const [owner, most] = [...tenants].reduce((a, b) => (b[1].known.size > a[1].known.size ? b : a))
    removeIdle(owner)
    if (all.size < maxSeries - 1) return true
    if (most.known.size > own.known.size + 1) return removeLongestIdle(most)
    own.refusedAt = now
    return false
  }

  /** @returns false where it has none */
  function removeLongestIdle({ known }: TenantSeries): boolean {
    for (const series of known.values()) look(series, wall.now())
    const [first, ...others] = known.values()
    if (first === undefined) return false
    remove(others.reduce((a, b) => (b.grownAt < a.grownAt ? b : a), first))
    return true
  }

  function find(tenant: string, attributes: Attributes): Histogram {
    const own = seriesOf(tenant)
    const key = Object.values(attributes).join('\n')
    const found = own.known.get(key)
    if (found !== undefined) return found
    if (own.known.size >= maxSeriesPerTenant) removeIdle(tenant)
    const isFull = own.known.size >= maxSeriesPerTenant
    if (hasNames(attributes) && (isFull || !hasRoom(tenant, own))) return find(tenant, withoutNames(attributes))
    // A call counts for its tenant, if by no name.
    if (!hasRoom(tenant, own) && !removeLongestIdle(own))
      return (overflow ??= made({ 'otel.metric.overflow': true }, ''))
    const series = made(plain(attributes), tenant, key)
    own.known.set(key, series)
    all.add(series)
    names?.added(tenant, attributes)
    return series
  }

  /** @param trace of the call, where a collector gets it */
  function add(series: Histogram, seconds: number, trace?: Pick<Exemplar, 'traceId' | 'spanId'>): void {
    let bucket = 0
    while (bucket < boundaries.length && seconds > (boundaries[bucket] ?? Infinity)) bucket++
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
    series.sum += seconds
    series.count++
    if (trace === undefined) return
    const exemplars = (series.exemplars ??= places.taken(series))
    if (exemplars !== undefined)
      exemplars[bucket] = { traceId: trace.traceId, spanId: trace.spanId, seconds, at: wall.now() }
  }

  return {
    /** @param attributes always the same ones, in the same order; undefined: it has none of these */
    record: (seconds: number, tenant: string, attributes: Attributes): void => add(find(tenant, attributes), seconds),
    /** The one that values with these attributes belong to, for as long as it is asked. */
    find,
    add,
    /** Makes room among the series of a tenant, where some have not grown for a while. */
    removeIdle,
    /** Removes those of tenants that are no more. @param there the ids of those that are */
    keepOnly(there: { has(tenant: string): boolean }): void {
      for (const [tenant, { known }] of tenants) {
        if (tenant === '' || there.has(tenant)) continue
        for (const series of [...known.values()]) remove(series)
        tenants.delete(tenant)
      }
    },
    /** As OpenTelemetry has it, each value a `HistogramValue`; a copy of what there is now. */
    data(): MetricData {
      const { unit, description } = instruments[name]
      const endTime = timeOf(wall)
      const now = wall.now()
      for (const series of all) look(series, now)
      return {
        descriptor: { name, unit, description, valueType: ValueType.DOUBLE },
        dataPointType: DataPointType.HISTOGRAM,
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        dataPoints: [...all, ...(overflow ? [overflow] : [])].map(
          ({ startTime, attributes, counts, sum, count, exemplars }) => ({
            startTime,
            endTime,
            attributes,
            value: {
              buckets: { boundaries, counts: [...counts] },
              sum,
              count,
              exemplars: exemplars && [...exemplars]
            } satisfies HistogramValue
          })
        )
      }
    }
  }
}

/** As OpenTelemetry has it: seconds, and nanoseconds. */
export const timeOf = (wall: { now(): number }): HrTime => {
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
