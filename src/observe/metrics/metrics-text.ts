// Metrics in the text format of Prometheus, version 0.0.4, or OpenMetrics 1.0, which has exemplars, too
// (https://prometheus.io/docs/instrumenting/exposition_formats/), in steps. Own code in place of the serializer of
// OpenTelemetry's exporter: that writes everything in one turn of the event loop, and the labels of a histogram anew
// for each bucket, which takes eight seconds for 10,000 series.

import { DataPointType, type MetricData, type ResourceMetrics } from '@opentelemetry/sdk-metrics'
import type { Steps } from '../../time/turns.ts'
import type { HistogramValue } from './call-series.ts'
import type { Exemplar } from './exemplars.ts'

/** Media type of each form. */
export const metricsForms = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openMetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8'
} as const

export type MetricsForm = keyof typeof metricsForms

/** @param accept of the request: Prometheus asks for OpenMetrics ahead of its own form. */
export const metricsFormOf = (accept: string): MetricsForm =>
  /\bapplication\/openmetrics-text\b/i.test(accept) ? 'openMetrics' : 'prometheus'

type Labels = Readonly<Record<string, unknown>>

/** In characters. */
const partLength = 65_536

/** Prometheus wants the unit in the name (OpenTelemetry specification, compatibility/prometheus_and_openmetrics). */
export const unitSuffixes: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes', '1': '_ratio' }

/** The text in the order in which it is to be sent; a step makes the lines of one series. */
export function metricsText({ resource, scopeMetrics }: ResourceMetrics, form: MetricsForm) {
  const metrics = scopeMetrics.flatMap((scope) => scope.metrics)
  const lines = linesOf(resource.attributes, metrics, form)
  return {
    /** @returns the next part of the text; '' where there is none */
    *nextPart(): Steps<string> {
      let part = ''
      for (let next = lines.next(); next.done !== true; next = lines.next()) {
        part += next.value
        if (part.length >= partLength) return part
        yield
      }
      return part
    }
  }
}

function* linesOf(
  target: Labels,
  metrics: readonly MetricData[],
  form: MetricsForm
): Generator<string, void, undefined> {
  const isOpen = form === 'openMetrics'
  // OpenMetrics names the family, without what the type adds to the names of its samples.
  const [info, infoType] = isOpen ? ['target', 'info'] : ['target_info', 'gauge']
  yield `# HELP ${info} Target metadata\n# TYPE ${info} ${infoType}\ntarget_info{${labelsOf(target)}} 1\n`
  for (const metric of metrics) {
    const { dataPointType, dataPoints, descriptor } = metric
    const isCounter = dataPointType === DataPointType.SUM && metric.isMonotonic
    const unit = unitSuffixes[descriptor.unit] ?? ''
    const family = `${identifier(descriptor.name)}${unit}`
    const name = isCounter ? `${family}_total` : family
    const type = dataPointType === DataPointType.HISTOGRAM ? 'histogram' : isCounter ? 'counter' : 'gauge'
    const title = isOpen ? family : name
    yield `# HELP ${title} ${descriptor.description}\n# TYPE ${title} ${type}\n`
    for (const { attributes, value } of dataPoints) {
      const labels = labelsOf(attributes)
      if (typeof value === 'number') yield `${name}${braced(labels)} ${numberText(value)}\n`
      // No other histograms are made (instruments.ts).
      else if ('buckets' in value) yield histogramLines(name, labels, value as HistogramValue, isOpen)
    }
  }
  if (isOpen) yield '# EOF\n'
}

function histogramLines(
  name: string,
  labels: string,
  { buckets, count, sum = 0, exemplars }: HistogramValue,
  isOpen: boolean
): string {
  let text = `${name}_count${braced(labels)} ${count}\n${name}_sum${braced(labels)} ${numberText(sum)}\n`
  const start = `${name}_bucket{${labels === '' ? '' : `${labels},`}le="`
  let upTo = 0
  buckets.counts.forEach((inBucket, at) => {
    upTo += inBucket
    const exemplar = isOpen && exemplars?.[at]
    text += `${start}${buckets.boundaries[at] ?? '+Inf'}"} ${upTo}${exemplar ? exemplarText(exemplar) : ''}\n`
  })
  return text
}

const exemplarText = ({ traceId, spanId, seconds, at }: Exemplar): string =>
  ` # {trace_id="${traceId}",span_id="${spanId}"} ${numberText(seconds)} ${(at / 1_000).toFixed(3)}`

const braced = (labels: string): string => (labels === '' ? '' : `{${labels}}`)

const identifier = (name: string): string => name.replace(/[^a-z0-9_]/gi, '_')

const labelsOf = (labels: Labels): string =>
  Object.entries(labels)
    .map(
      ([name, value]) => `${identifier(name)}="${escaped(typeof value === 'string' ? value : JSON.stringify(value))}"`
    )
    .join()

/** Most have nothing to escape. */
const escaped = (text: string): string =>
  /[\\"\n]/.test(text) ? text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n') : text

const numberText = (value: number): string => (Number.isFinite(value) ? String(value) : infinite(value))
const infinite = (value: number): string => (Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf')
