// The metrics of all workers: one of them asks, and the primary asks the others. It passes each part of a text on as it
// comes, and asks for the next one when that is written: it keeps nothing of them.

import type { MetricsForm } from '../../observe/metrics/metrics-text.ts'
import type { Log } from '../../observe/log.ts'
import { patientTimer, steadyClock } from '../../time/clock.ts'
import type { RunningWorker } from './running-worker.ts'

/** How long a worker may take for a part of its text; one that is busy or stopped is left out. */
const collectMs = 2_000
/** Of the texts of all of them, which whoever asks has in memory. */
const maxTextBytes = 33_554_432

type Asked = Pick<RunningWorker, 'number' | 'channel'>

/** Passes a part on to the worker that asks. @returns whether it is written; false where there is no room for it */
type Pass = (worker: number, text: string) => Promise<boolean | undefined> | false

/** @param running those that run now */
export function createMetricsCollector(running: ReadonlyMap<number, Asked>, log: Log) {
  const asked = new Map<number, (text: string | undefined) => void>()
  let lastId = 0
  let isTold = false

  function tellTooLong(of: number, bytes: number): void {
    if (!isTold) log.warn({ of, bytes, maxTextBytes }, 'the metrics of all workers are too long; some are left out')
    isTold = true
  }

  /** @returns whether all of the text was passed on */
  async function collect({ number: worker, channel }: Asked, form: MetricsForm, pass: Pass): Promise<boolean> {
    const id = ++lastId
    try {
      for (;;) {
        const part = await inTime<string>((resolve) => {
          asked.set(id, resolve)
          channel.send({ kind: 'tellMetrics', id, form })
        })
        if (part === undefined || part === '') return part === ''
        if (!(await pass(worker, part))) return false
      }
    } finally {
      asked.delete(id)
      channel.send({ kind: 'endMetrics', id })
    }
  }

  async function answer(to: Asked, asking: number, form: MetricsForm): Promise<void> {
    const others = [...running.values()].filter((each) => each.number !== to.number)
    /** Passed on so far, by worker: those that are not left out. */
    const bytes = new Map(others.map((each) => [each.number, 0]))
    const leaveOut = (worker: number): void => {
      if (bytes.delete(worker)) to.channel.send({ kind: 'leftOut', id: asking, worker })
    }
    const pass: Pass = (worker, text) => {
      const before = bytes.get(worker)
      if (before === undefined) return false
      bytes.set(worker, before + text.length)
      let all = 0
      for (const each of bytes.values()) all += each
      if (all > maxTextBytes) {
        const [longest, own] = longestOf(bytes)
        tellTooLong(longest, own)
        leaveOut(longest)
      }
      if (!bytes.has(worker)) return false
      return inTime((resolve) =>
        to.channel.send({ kind: 'collectedPart', id: asking, worker, text }, 0, () => resolve(true))
      )
    }
    const collectOf = async (each: Asked): Promise<void> => {
      if (!(await collect(each, form, pass))) leaveOut(each.number)
    }
    await Promise.all(others.map(collectOf))
    to.channel.send({ kind: 'collected', id: asking, workers: [...bytes.keys()] })
  }

  return {
    serve(worker: Asked): void {
      worker.channel.on('metrics', ({ id, text }) => asked.get(id)?.(text))
      worker.channel.on('collect', ({ id, form }) => void answer(worker, id, form))
    }
  }
}

/** @returns the worker with the longest text, and its bytes. @param bytes not empty */
const longestOf = (bytes: ReadonlyMap<number, number>): readonly [worker: number, bytes: number] =>
  [...bytes].reduce((longest, each) => (each[1] > longest[1] ? each : longest))

/** @returns what `begin` resolves with; undefined where it takes too long */
function inTime<T>(begin: (resolve: (value: T | undefined) => void) => void): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>()
  const late = patientTimer(steadyClock, collectMs, () => resolve(undefined))
  begin(resolve)
  return promise.finally(() => late.close())
}
