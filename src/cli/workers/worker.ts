// `serve --workers N`: a worker process. It runs a whole gateway, which obeys the primary and uses its store.

import cluster from 'node:cluster'
import { openChannel } from '../../workers/channel.ts'
import type { ToPrimary, ToWorker, WorkerProcess, WorkerStart } from '../../workers/messages.ts'
import { endWithPrimary } from '../../workers/worker-end.ts'

/**
 * @param serve runs the gateway
 * @returns its exit code; what it throws is told to the primary, which says it once for all workers
 */
export async function runWorker(serve: (worker: WorkerProcess) => Promise<number>): Promise<number> {
  const channel = openChannel<ToWorker, ToPrimary>(process)
  endWithPrimary()
  const { promise: started, resolve } = Promise.withResolvers<WorkerStart>()
  channel.on('start', resolve)
  channel.send({ kind: 'hello' })
  try {
    return await serve({ ...(await started), channel })
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error)
    await new Promise<void>((sent) => channel.send({ kind: 'failed', words }, words.length, sent))
    return 1
  } finally {
    // Else the channel would keep this process alive.
    cluster.worker?.disconnect()
  }
}
