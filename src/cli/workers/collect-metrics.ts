// The metrics of all workers: one of them asks, and the primary asks the others. It passes each part of a text on as it
// comes, and asks for the next one when that is written: it keeps nothing of them.

import type { MetricsForm } from '../../observe/metrics/metrics-text.ts'
import type { Log } from '../../observe/log.ts'
import { patientTimer, steadyClock } from '../../time/clock.ts'
import type { RunningWorker } from './running-worker.ts'

/** How long a worker may take for a part of its text; one that is busy or stopped is left out. */
const collectMs = 2_000
/** Of the text of one worker, which whoever asks has in memory. */
const maxTextBytes = 33_554_432

type Asked = Pick<RunningWorker, 'number' | 'channel'>

/** What passes parts on to the worker that asks. @returns whether it is written */
type Pass = (worker: number, text: string) => Promise<true | undefined>

/** @param running those that run now */
export function createMetricsCollector(running: ReadonlyMap<number, Asked>, log: Log) {
  const asked = new Map<number, (text: string | undefined) => void>()
  let lastId = 0
  let isTold = false

  function tellTooLong(of: number): void {
    if (!isTold)
      log.warn({ of, maxTextBytes }, 'the metrics of a worker are too long for the others; they are left out')
    isTold = true
  }

  /** @returns whether all of the text was passed on */
  async function collect({ number: worker, channel }: Asked, form: MetricsForm, pass: Pass): Promise<boolean> {
    const id = ++lastId
    try {
      for (let bytes = 0; ;) {
        const part = await inTime<string>((resolve) => {
          asked.set(id, resolve)
          channel.send({ kind: 'tellMetrics', id, form })
        })
        if (part === undefined || part === '') return part === ''
        bytes += part.length
        if (bytes > maxTextBytes) tellTooLong(worker)
        if (bytes > maxTextBytes || !(await pass(worker, part))) return false
      }
    } finally {
      asked.delete(id)
      channel.send({ kind: 'endMetrics', id })
    }
  }

  async function answer(to: Asked, asking: number, form: MetricsForm): Promise<void> {
    const pass: Pass = (worker, text) =>
      inTime((resolve) => to.channel.send({ kind: 'collectedPart', id: asking, worker, text }, 0, () => resolve(true)))
    const others = [...running.values()].filter((each) => each.number !== to.number)
    const whole = await Promise.all(others.map((each) => collect(each, form, pass)))
    const workers = others.filter((_, at) => whole[at]).map((each) => each.number)
    to.channel.send({ kind: 'collected', id: asking, workers })
  }

  return {
    serve(worker: Asked): void {
      worker.channel.on('metrics', ({ id, text }) => asked.get(id)?.(text))
      worker.channel.on('collect', ({ id, form }) => void answer(worker, id, form))
    }
  }
}

/** @returns what `begin` resolves with; undefined where it takes too long */
function inTime<T>(begin: (resolve: (value: T | undefined) => void) => void): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>()
  const late = patientTimer(steadyClock, collectMs, () => resolve(undefined))
  begin(resolve)
  return promise.finally(() => late.close())
}
