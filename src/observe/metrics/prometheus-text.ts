// Metrics in the text format of Prometheus, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/), in steps. Own code in place of the serializer of
// OpenTelemetry's exporter: that writes everything in one turn of the event loop, and the labels of a histogram anew
// for each bucket, which takes eight seconds for 10,000 series.

import { DataPointType, type Histogram, type MetricData, type ResourceMetrics } from '@opentelemetry/sdk-metrics'
import type { Steps } from '../../time/turns.ts'

type Labels = Readonly<Record<string, unknown>>

/** In characters. */
const partLength = 65_536

/** Prometheus wants the unit in the name (OpenTelemetry specification, compatibility/prometheus_and_openmetrics). */
export const unitSuffixes: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes', '1': '_ratio' }

/** The text in the order in which it is to be sent; a step makes the lines of one series. */
export function prometheusText({ resource, scopeMetrics }: ResourceMetrics) {
  const metrics = scopeMetrics.flatMap((scope) => scope.metrics)
  const lines = linesOf(resource.attributes, metrics)
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

function* linesOf(target: Labels, metrics: readonly MetricData[]): Generator<string, void, undefined> {
  yield `# HELP target_info Target metadata\n# TYPE target_info gauge\ntarget_info{${labelsOf(target)}} 1\n`
  for (const metric of metrics) {
    const { dataPointType, dataPoints, descriptor } = metric
    const isCounter = dataPointType === DataPointType.SUM && metric.isMonotonic
    const unit = unitSuffixes[descriptor.unit] ?? ''
    const name = `${identifier(descriptor.name)}${unit}${isCounter ? '_total' : ''}`
    const type = dataPointType === DataPointType.HISTOGRAM ? 'histogram' : isCounter ? 'counter' : 'gauge'
    yield `# HELP ${name} ${descriptor.description}\n# TYPE ${name} ${type}\n`
    for (const { attributes, value } of dataPoints) {
      const labels = labelsOf(attributes)
      if (typeof value === 'number') yield `${name}${braced(labels)} ${numberText(value)}\n`
      // No other histograms are made (instruments.ts).
      else if ('buckets' in value) yield histogramLines(name, labels, value)
    }
  }
}

function histogramLines(name: string, labels: string, { buckets, count, sum = 0 }: Histogram): string {
  let text = `${name}_count${braced(labels)} ${count}\n${name}_sum${braced(labels)} ${numberText(sum)}\n`
  const start = `${name}_bucket{${labels === '' ? '' : `${labels},`}le="`
  let upTo = 0
  buckets.counts.forEach((inBucket, at) => {
    upTo += inBucket
    text += `${start}${buckets.boundaries[at] ?? '+Inf'}"} ${upTo}\n`
  })
  return text
}

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
