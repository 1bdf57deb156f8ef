// Work that takes longer than calls may be held up, in a thread of its own: started by the first work, and ended once
// nothing has come for a while. The module that does the work serves it by `serveThread`.

import { parentPort, Worker, workerData } from 'node:worker_threads'
import { createDelay, type Clock } from './clock.ts'

/** The time after which an idle thread ends: to start one takes a tenth of a second, to keep one some 20 MiB. */
const idleMs = 10_000

interface Sent<Message> {
  readonly id: number
  readonly message: Message
}

export interface Thread<Work, Answer> {
  /** Work is done in the order in which it comes. @throws Error where the thread cannot be started, or has ended */
  run(work: Work): Promise<Answer>
  /** Ends the thread, and the work in it. */
  close(): Promise<void>
}

const endedBefore = (): Error => new Error('a thread has ended before its work')

/**
 * @param module serves the thread
 * @param data what is the same for all work. It is cloned, as work and answers are
 */
export function createThread<Work, Answer>(
  module: URL,
  clock: Pick<Clock, 'timer'>,
  data?: unknown
): Thread<Work, Answer> {
  let worker: Worker | undefined
  let last = 0
  const waiting = new Map<number, PromiseWithResolvers<Answer>>()
  const idle = createDelay(clock)

  function started(): Worker {
    // Without what this process was told to load first.
    const made = new Worker(module, { workerData: data, execArgv: [] })
    const failed = (fault: unknown): void => {
      if (worker === made) forget(fault)
    }
    made.on('message', ({ id, message }: Sent<Answer>) => {
      waiting.get(id)?.resolve(message)
      waiting.delete(id)
      if (waiting.size > 0) return
      made.unref()
      idle.start(idleMs, () => void close())
    })
    made.once('error', failed).once('exit', () => failed(endedBefore()))
    return made
  }

  /** The next work starts another one. */
  function forget(fault: unknown): void {
    worker = undefined
    for (const { reject } of waiting.values()) reject(fault)
    waiting.clear()
  }

  async function close(): Promise<void> {
    idle.close()
    const ended = worker
    // At once: what comes while it ends would go to nobody.
    forget(endedBefore())
    await ended?.terminate()
  }

  return {
    async run(work) {
      idle.close()
      worker ??= started()
      worker.ref()
      const answer = Promise.withResolvers<Answer>()
      const id = ++last
      waiting.set(id, answer)
      const sent: Sent<Work> = { id, message: work }
      // A port of threads has no origin.
      // eslint-disable-next-line unicorn/require-post-message-target-origin
      worker.postMessage(sent)
      return await answer.promise
    },
    close
  }
}

/**
 * In the thread: whatever the work throws ends it, and is thrown by `run`.
 * @param work takes what `run` is given, and the data of the thread
 */
export function serveThread(work: (work: never, data: unknown) => unknown): void {
  let last: Promise<unknown> = Promise.resolve()
  parentPort?.on('message', ({ id, message }: Sent<never>) => {
    last = last.then(async () => {
      const sent: Sent<unknown> = { id, message: await work(message, workerData) }
      // eslint-disable-next-line unicorn/require-post-message-target-origin
      parentPort?.postMessage(sent)
    })
  })
}
