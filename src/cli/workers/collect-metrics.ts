// The metrics of all workers: one of them asks, and the primary asks the others.

import { steadyClock } from '../../time/clock.ts'
import type { WorkerMetrics } from '../../workers/messages.ts'
import type { RunningWorker } from './running-worker.ts'

/** How long one may take; one that is busy or stopped is left out. */
const collectMs = 2_000

/** @param running those that run now */
export function createMetricsCollector(running: ReadonlyMap<number, RunningWorker>) {
  const asked = new Map<number, (text: string) => void>()
  let lastId = 0

  async function textOf({ number: worker, channel }: RunningWorker, form: string): Promise<WorkerMetrics | undefined> {
    const id = ++lastId
    const { promise, resolve } = Promise.withResolvers<string>()
    const late = steadyClock.timer(collectMs, () => resolve(''))
    asked.set(id, resolve)
    channel.send({ kind: 'tellMetrics', id, form })
    const text = await promise
    asked.delete(id)
    late.close()
    return text === '' ? undefined : { worker, text }
  }

  return {
    serve({ number, channel }: RunningWorker): void {
      channel.on('metrics', ({ id, text }) => asked.get(id)?.(text))
      channel.on('collect', ({ id, form }) => {
        const others = [...running.values()].filter((each) => each.number !== number)
        void Promise.all(others.map((each) => textOf(each, form))).then((texts) => {
          const told = texts.filter((each) => each !== undefined)
          const bytes = told.reduce((sum, { text }) => sum + text.length, 0)
          channel.send({ kind: 'collected', id, others: told }, bytes)
        })
      })
    }
  }
}
