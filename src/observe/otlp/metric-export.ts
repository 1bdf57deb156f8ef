// Metrics to a collector, as they are every so often. Where many series are, in parts, so that none of them holds up
// calls; where the collector is slow, the next time is left out.

import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import type { MetricData, ResourceMetrics } from '@opentelemetry/sdk-metrics'
import { every, type Clock } from '../../time/clock.ts'
import { exporterTo } from './exporter.ts'
import type { Losses } from './losses.ts'
import type { LogsPlace } from './send-logs.ts'

/** Points in one message: a histogram is one of 15 numbers. */
const maxPointsAtOnce = 500
const sendMs = 5_000

export interface MetricExportOptions {
  readonly place: LogsPlace
  readonly everySeconds: number
  read(): Promise<ResourceMetrics>
  readonly losses: Losses
  readonly clock: Clock
}

export function createMetricExport({ place, everySeconds, read, losses, clock }: MetricExportOptions) {
  const exporter = new OTLPMetricExporter(exporterTo(place, sendMs))
  let sending: Promise<void> | undefined
  const timer = every(clock, everySeconds * 1_000, () => void send())

  async function sendAll(): Promise<void> {
    let failure: Error | undefined
    for (const part of partsOf(await read())) {
      failure ??= await new Promise<Error | undefined>((resolve) =>
        exporter.export(part, ({ error }) => resolve(error))
      )
      if (failure === undefined) losses.delivered()
      else losses.lost(pointsIn(part), failure)
    }
  }

  /** Never rejects. */
  function send(): Promise<void> {
    return (sending ??= sendAll()
      .catch((error: unknown) => losses.lost(1, error))
      .finally(() => {
        sending = undefined
      }))
  }

  return {
    /** Sends them once more. Never rejects. */
    async close(): Promise<void> {
      timer.close()
      await sending
      await send()
      await exporter.shutdown().catch(() => {}) // Nothing waits any more.
    }
  }
}

/** The same metrics, each part with as many points as one message may have. */
function* partsOf({ resource, scopeMetrics }: ResourceMetrics): Generator<ResourceMetrics> {
  for (const { scope, metrics } of scopeMetrics) {
    let part: MetricData[] = []
    let room = maxPointsAtOnce
    for (const metric of metrics) {
      for (let at = 0; at < metric.dataPoints.length;) {
        const dataPoints = metric.dataPoints.slice(at, at + room)
        part.push({ ...metric, dataPoints } as MetricData)
        at += dataPoints.length
        room -= dataPoints.length
        if (room > 0) continue
        yield { resource, scopeMetrics: [{ scope, metrics: part }] }
        part = []
        room = maxPointsAtOnce
      }
    }
    if (part.length > 0) yield { resource, scopeMetrics: [{ scope, metrics: part }] }
  }
}

const pointsIn = ({ scopeMetrics }: ResourceMetrics): number =>
  scopeMetrics.reduce(
    (sum, { metrics }) => sum + metrics.reduce((all, { dataPoints }) => all + dataPoints.length, 0),
    0
  )
