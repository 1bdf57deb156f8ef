// Metrics of a gateway that is one of several workers: those of all of them, whichever is asked.

import { Readable } from 'node:stream'
import { text as readText } from 'node:stream/consumers'
import { mergedMetrics } from '../observe/metrics/merged-text.ts'
import type { Metrics, Readings } from '../observe/metrics/metrics.ts'
import type { MetricsForm } from '../observe/metrics/metrics-text.ts'
import { steadyClock } from '../time/clock.ts'
import type { WorkerMetrics, WorkerProcess } from '../workers/messages.ts'

/** How long the primary may take to ask the others: then they are left out. */
const collectedMs = 3_000

/** @param readings of this worker, for the others */
export function metricsOfWorkers(
  { number, channel }: WorkerProcess,
  metrics: Pick<Metrics, 'text'>,
  readings: () => Readings
): Pick<Metrics, 'text'> {
  const asked = new Map<number, (others: readonly WorkerMetrics[]) => void>()
  let lastId = 0

  channel.on('collected', ({ id, others }) => asked.get(id)?.(others))
  channel.on('tellMetrics', ({ id, form }) => {
    const tell = (text: string): void => channel.send({ kind: 'metrics', id, text }, text.length)
    metrics
      .text(readings(), form as MetricsForm)
      .then((answer) => (answer === undefined ? '' : readText(answer)))
      // Whoever asked goes without those of this worker.
      .then(tell, () => tell(''))
  })

  async function othersIn(form: MetricsForm): Promise<readonly WorkerMetrics[]> {
    const id = ++lastId
    const { promise, resolve } = Promise.withResolvers<readonly WorkerMetrics[]>()
    const late = steadyClock.timer(collectedMs, () => resolve([]))
    asked.set(id, resolve)
    channel.send({ kind: 'collect', id, form })
    const others = await promise
    asked.delete(id)
    late.close()
    return others
  }

  return {
    async text(now, form) {
      const own = await metrics.text(now, form)
      if (own === undefined) return undefined
      const [others, text] = await Promise.all([othersIn(form), readText(own)])
      const all = [...others, { worker: number, text }].sort((a, b) => a.worker - b.worker)
      return Readable.from([await mergedMetrics(all, form)], { objectMode: false })
    }
  }
}
