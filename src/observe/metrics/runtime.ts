// What Node says of its own process: memory, CPU time, pauses of the collector, delays of the event loop.

import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Attributes } from './call-attributes.ts'
import type { MetricName } from './instruments.ts'

type Report = (name: MetricName, value: number, attributes?: Attributes) => void

interface Collection {
  /** In milliseconds. */
  readonly duration: number
  readonly detail: { readonly kind: number }
}

/** In milliseconds. */
const delayResolution = 10

const gcTypes: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb'
}

/** @param paused hears of each pause of the collector, in seconds */
export function watchRuntime(paused: (seconds: number, attributes: Attributes) => void) {
  const delay = monitorEventLoopDelay({ resolution: delayResolution })
  delay.enable()
  const collections = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { duration, detail } = entry as unknown as Collection
      paused(duration / 1e3, { 'v8js.gc.type': gcTypes[detail.kind] ?? 'unknown' })
    }
  })
  collections.observe({ entryTypes: ['gc'] })
  return {
    read(report: Report): void {
      const { user, system } = process.cpuUsage()
      report('process.cpu.time', user / 1e6, { 'cpu.mode': 'user' })
      report('process.cpu.time', system / 1e6, { 'cpu.mode': 'system' })
      report('process.memory.usage', process.memoryUsage.rss())
      report('process.uptime', process.uptime())
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
      report('v8js.memory.heap.used', used)
      report('v8js.memory.heap.limit', limit)
      report('nodejs.eventloop.utilization', performance.eventLoopUtilization().utilization)
      // The timer that measures is itself late by its resolution.
      const seconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - delayResolution / 1e3)
      if (delay.count > 0) {
        report('nodejs.eventloop.delay.p50', seconds(delay.percentile(50)))
        report('nodejs.eventloop.delay.p99', seconds(delay.percentile(99)))
        report('nodejs.eventloop.delay.max', seconds(delay.max))
      }
      delay.reset()
    },
    close(): void {
      delay.disable()
      collections.disconnect()
    }
  }
}
