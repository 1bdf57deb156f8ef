// What is counted and sent of calls, as the configuration wants it: metrics, for an admin listener or a collector;
// traces and the log, for a collector. Nothing of OpenTelemetry is loaded for what nobody wants.

import type { Snapshot } from '../config/snapshot.ts'
import { type Clock, settledWithin } from '../time/clock.ts'
import { afterWrites, alsoTo, type Log } from './log.ts'
import type { Readings } from './metrics/metrics.ts'
import { createLogExport } from './otlp/log-export.ts'
import { createShownCaller, shownName } from './pseudonyms.ts'
import { passedOnTraces } from './traces/passed-on.ts'
import { createLosses, type Signal } from './otlp/losses.ts'

/** For what waits when the gateway ends. */
export const lastSendMs = 1_000

export interface TelemetryOptions {
  readonly version: string
  /** Names this process among several. */
  readonly node: string
  readonly clock: Clock
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}

export async function openTelemetry(
  initial: Pick<Snapshot, 'admin' | 'telemetry' | 'pseudonyms' | 'store'>,
  { version, node, clock, wall, log }: TelemetryOptions
) {
  const { admin, telemetry } = initial
  const resource = { 'service.name': 'gatehouse', 'service.version': version, 'service.instance.id': node }
  const wants = (signal: Signal): boolean => telemetry?.signals.includes(signal) === true
  const metrics =
    admin !== undefined || wants('metrics')
      ? (await import('./metrics/metrics.ts')).createMetrics({
          resource,
          version,
          database: initial.store.kind,
          clock,
          wall
        })
      : undefined
  if (metrics !== undefined) afterWrites(log, metrics.calls.settle)
  const lossesOf = (signal: Signal) => createLosses(signal, log, metrics)
  const placeOf = (signal: Signal) => ({
    url: `${telemetry?.otlp.endpoint.replace(/\/$/, '')}/v1/${signal}`,
    headers: { ...telemetry?.otlp.headers }
  })
  const traces =
    telemetry !== undefined && wants('traces')
      ? (await import('./traces/traces.ts')).createTraces({
          place: placeOf('traces'),
          samplePercent: telemetry.samplePercent,
          resource,
          version,
          losses: lossesOf('traces')
        })
      : undefined
  const lines = wants('logs')
    ? createLogExport({ place: placeOf('logs'), resource, losses: lossesOf('logs'), clock })
    : undefined
  const untap = lines && alsoTo(log, lines)
  let sent: { close(): Promise<void> } | undefined

  return {
    metrics,
    traces: traces ?? passedOnTraces,
    shownCaller: createShownCaller(initial),
    /** What somebody is called in the log. */
    nameOf: (tenant: string, name: string): string => shownName(initial, tenant, name),
    /** @param read what the parts of the gateway hold now */
    async sendMetrics(read: () => Readings): Promise<void> {
      if (telemetry === undefined || metrics === undefined || !wants('metrics')) return
      const { createMetricExport } = await import('./otlp/metric-export.ts')
      sent = createMetricExport({
        place: placeOf('metrics'),
        everySeconds: telemetry.metricsEverySeconds,
        read: () => metrics.collect(read()),
        losses: lossesOf('metrics'),
        clock
      })
    },
    /** Sends what waits; a collector that is away holds it up for some seconds. Never rejects. */
    async close(): Promise<void> {
      untap?.()
      await settledWithin(clock, lastSendMs, Promise.all([sent?.close(), traces?.close(), lines?.close()]))
      await metrics?.close()
    }
  }
}
