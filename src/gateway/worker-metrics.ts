// Metrics of a gateway that is one of several workers: those of all of them, whichever is asked. They go from process
// to process in parts, each asked for when the one before is there: what the store says does not wait for them.

import { Readable } from 'node:stream'
import { text as readText } from 'node:stream/consumers'
import { mergedMetrics } from '../observe/metrics/merged-text.ts'
import { maxAnswers, type Metrics, type Readings } from '../observe/metrics/metrics.ts'
import type { MetricsForm } from '../observe/metrics/metrics-text.ts'
import { patientTimer, steadyClock } from '../time/clock.ts'
import type { WorkerProcess } from '../workers/messages.ts'

/** How long the primary may say nothing while it asks the others: then they are left out. */
const collectedMs = 3_000

interface Collecting {
  /** By worker. */
  readonly parts: Map<number, string[]>
  heard(): void
  /** @param workers that have told all */
  end(workers: readonly number[]): void
}

/** @param readings of this worker, for the others */
export function metricsOfWorkers(
  { number, channel }: Pick<WorkerProcess, 'number' | 'channel'>,
  metrics: Pick<Metrics, 'text'>,
  readings: () => Readings
): Pick<Metrics, 'text'> {
  const asked = new Map<number, Collecting>()
  const told = new Map<number, AsyncGenerator<string, void>>()
  let lastId = 0
  let answers = 0

  async function* partsIn(form: MetricsForm): AsyncGenerator<string, void> {
    const answer = await metrics.text(readings(), form)
    if (answer === undefined) throw new Error('Too many read the metrics.')
    yield* answer.setEncoding('utf8') as AsyncIterable<string>
  }

  channel.on('collectedPart', ({ id, worker, text }) => {
    const collecting = asked.get(id)
    collecting?.heard()
    collecting?.parts.set(worker, [...(collecting.parts.get(worker) ?? []), text])
  })
  channel.on('leftOut', ({ id, worker }) => void asked.get(id)?.parts.delete(worker))
  channel.on('collected', ({ id, workers }) => asked.get(id)?.end(workers))
  channel.on('tellMetrics', ({ id, form }) => {
    const parts = told.get(id) ?? partsIn(form)
    told.set(id, parts)
    parts.next().then(
      ({ value }) => channel.send({ kind: 'metrics', id, text: value ?? '' }),
      // Whoever asked goes without those of this worker.
      () => channel.send({ kind: 'metrics', id })
    )
  })
  channel.on('endMetrics', ({ id }) => {
    told
      .get(id)
      ?.return()
      .catch(() => {})
    told.delete(id)
  })

  async function othersIn(form: MetricsForm) {
    const id = ++lastId
    const parts = new Map<number, string[]>()
    const { promise, resolve: end } = Promise.withResolvers<readonly number[]>()
    const wait = () => patientTimer(steadyClock, collectedMs, () => end([]))
    let late = wait()
    const heard = (): void => {
      late.close()
      late = wait()
    }
    asked.set(id, { parts, heard, end })
    channel.send({ kind: 'collect', id, form })
    const workers = await promise
    asked.delete(id)
    late.close()
    return workers.map((worker) => ({ worker, text: (parts.get(worker) ?? []).join('') }))
  }

  async function merged(now: Readings, form: MetricsForm): Promise<Readable | undefined> {
    const own = await metrics.text(now, form)
    if (own === undefined) return undefined
    const [others, text] = await Promise.all([othersIn(form), readText(own)])
    const all = [...others, { worker: number, text }].sort((a, b) => a.worker - b.worker)
    return Readable.from([await mergedMetrics(all, form)], { objectMode: false })
  }

  return {
    async text(now, form) {
      if (answers >= maxAnswers) return undefined
      answers += 1
      let answer: Readable | undefined
      try {
        answer = await merged(now, form)
        return answer
      } finally {
        if (answer === undefined) answers -= 1
        else answer.once('close', () => (answers -= 1))
      }
    }
  }
}
