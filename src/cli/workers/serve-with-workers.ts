// `serve --workers N`: the same command runs in the primary process and, started by it, in each worker.

import cluster from 'node:cluster'
import { openLog } from '../run.ts'
import { readServed, serveAlone, type ServeOptions } from '../serve.ts'
import { runPrimary } from './primary.ts'
import { runWorker } from './worker.ts'

export async function serveWithWorkers(options: ServeOptions): Promise<number> {
  if (!cluster.isPrimary) return await runWorker((worker) => serveAlone({ ...options, worker }))
  const snapshot = await readServed(options)
  const log = openLog(options, snapshot.logLevel)
  return await runPrimary({
    ...options,
    count: options.workers,
    snapshot,
    current: () => readServed(options),
    log,
    canReload: !options.isMcpJson
  })
}
