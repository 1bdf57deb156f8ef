// One worker process, from its start to its end, as its primary sees it.

import cluster from 'node:cluster'
import { openChannel } from '../../workers/channel.ts'
import { closeWithProcess } from '../../workers/worker-end.ts'
import type { PrimaryChannel, ToPrimary, ToWorker, WorkerStart } from '../../workers/messages.ts'

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
}

export interface RunningWorker {
  readonly number: number
  readonly channel: PrimaryChannel
  /** The URL; rejects where the worker ends before, with what it said. */
  readonly listens: Promise<string>
  readonly ended: Promise<Ended>
  /** Undefined: it writes to that of the primary itself. */
  readonly standardError: NodeJS.ReadableStream | null
  /** Has it drain and end. Once: to a worker that drains, it would say that it should end at once. */
  drain(): void
  /** Has it end at once where it drains. */
  stop(): void
  /** Ends it also where it hangs. */
  readonly kill: () => void
}

export function startWorker(start: WorkerStart): RunningWorker {
  const { number } = start
  const worker = cluster.fork()
  closeWithProcess(worker)
  const channel = openChannel<ToPrimary, ToWorker>(worker)
  const { promise: listens, resolve, reject } = Promise.withResolvers<string>()
  listens.catch(() => {}) // Whoever does not wait for it hears of its end.
  let isGreeted = false
  let isStopped = false

  function stop(): void {
    isStopped = true
    if (isGreeted) channel.send({ kind: 'stop' })
  }
  function drain(): void {
    if (!isStopped) stop()
  }

  channel.on('hello', () => {
    isGreeted = true
    channel.send({ kind: 'start', ...start })
    if (isStopped) channel.send({ kind: 'stop' })
  })
  channel.on('signalled', drain)
  channel.on('listening', ({ url }) => resolve(url))
  channel.on('failed', ({ words }) => reject(new Error(words)))
  const ended = new Promise<Ended>((over) => {
    worker.process.once('exit', (code, signal) => {
      // What it has said is read first.
      channel.onClosed(() => {
        reject(new Error(`Worker ${number} ended ${howEnded({ code, signal })} before it was ready; the log says why.`))
        over({ code, signal })
      })
    })
    worker.on('error', (error) => {
      reject(error)
      // It did not even start: there is no exit to wait for.
      if (worker.process.pid === undefined) over({ code: 1, signal: null })
    })
  })
  return {
    number,
    channel,
    listens,
    ended,
    standardError: worker.process.stderr ?? null,
    drain,
    stop,
    kill: () => void worker.process.kill('SIGKILL')
  }
}

export const howEnded = ({ code, signal }: Ended): string => (signal === null ? `with code ${code}` : `by ${signal}`)
