// A primary process of two workers without a gateway, in a process of its own: its first line has the port and what the
// workers are called by the system.

import cluster from 'node:cluster'
import { once } from 'node:events'
import { openChannel } from '../../src/workers/channel.ts'
import { createConnectionRelay } from '../../src/workers/connection-relay.ts'
import type { ToPrimary, ToWorker } from '../../src/workers/messages.ts'
import { closeWithProcess } from '../../src/workers/worker-end.ts'

cluster.setupPrimary({ exec: new URL('moving-worker.ts', import.meta.url).pathname })
const relay = createConnectionRelay()
const workers = [cluster.fork(), cluster.fork()]
for (const worker of workers) {
  closeWithProcess(worker)
  relay.serve(openChannel<ToPrimary, ToWorker>(worker))
}
const [[{ port }]] = (await Promise.all(workers.map((worker) => once(worker, 'listening')))) as [[{ port: number }]]
console.log(`port ${port} ${workers.map(({ process: { pid } }) => pid).join(' ')}`)
