// Process of its own: the load. Takes a `Job` as a message and sends back a `Load`, or `Turns`. Closed loop: each connection begins
// the next operation when the last one has ended. Open loop: operations begin at a fixed rate, whatever has ended, and
// latency counts from when one should have begun, so that a stall is felt by all whom it kept waiting (coordinated
// omission).

import { cpuUs } from '../cpu.ts'
import { quantile } from '../figures.ts'
import { progressMs } from '../messages.ts'
import type { Target } from './operations.ts'
import { runTurns, type Turns } from './turns.ts'
import { operationsFor, workerOf, type Worker } from './worker.ts'

export interface Job {
  readonly target: Target
  readonly connections: number
  /** Runs before anything counts: sockets open, code gets hot. */
  readonly warmMs: number
  readonly ms: number
  /** Operations per second of the open loop; none: closed loop. */
  readonly rate?: number | undefined
  /** Processes whose CPU time is counted: what stands in the middle, and the servers behind it. */
  readonly middle: readonly number[]
  readonly servers: readonly number[]
}

export interface Load {
  /** That ended while it counted. */
  readonly operations: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** The slowest, of those that were under way at the end, too. */
  readonly mostMs: number
  /** CPU time for each operation: of the middle; of this process and the servers. */
  readonly middleUs: number
  readonly endsUs: number
}

async function run(job: Job): Promise<Load> {
  const { target, connections, warmMs, ms, rate, middle, servers } = job
  const operations = await operationsFor(job)
  const failed = Promise.withResolvers<never>()
  const drained = Promise.withResolvers<void>()
  let stopping = false
  const checkDrained = (): void => {
    if (!workers.some(({ busy }) => busy)) drained.resolve()
  }
  const loop = rate === undefined ? closedLoop() : openLoop(rate)
  let latencies: number[] = []
  const workers = operations.map((operation) =>
    workerOf(new URL(target.url), operation, failed.reject, (worker, startedAt) => {
      latencies.push(performance.now() - startedAt)
      loop.ended(worker)
      if (stopping) checkDrained()
    })
  )
  const measure = async (): Promise<Load> => {
    loop.start(workers, target.tool === 'progress' ? progressMs / connections : 0)
    await wait(warmMs)
    latencies = []
    const [middleBefore, endsBefore, startedAt] = [cpuUs(middle), cpuUs([process.pid, ...servers]), performance.now()]
    await wait(ms)
    const [middleAfter, endsAfter] = [cpuUs(middle), cpuUs([process.pid, ...servers])]
    const counted = latencies
    const { length } = counted
    const perSecond = (length / (performance.now() - startedAt)) * 1000
    latencies = []
    // What is under way ends in this round, and is no work of the next one.
    loop.stop()
    stopping = true
    checkDrained()
    await drained.promise
    return {
      operations: length,
      perSecond,
      p50Ms: quantile(counted, 0.5),
      p99Ms: quantile(counted, 0.99),
      mostMs: [...counted, ...latencies].reduce((most, each) => Math.max(most, each), 0),
      middleUs: (middleAfter - middleBefore) / length,
      endsUs: (endsAfter - endsBefore) / length
    }
  }
  try {
    return await Promise.race([measure(), failed.promise])
  } finally {
    loop.stop()
    for (const worker of workers) worker.end()
  }
}

interface Loop {
  /** @param apartMs between the first operations of two workers, so that long ones do not all end at once */
  start(workers: readonly Worker[], apartMs: number): void
  ended(worker: Worker): void
  stop(): void
}

function closedLoop(): Loop {
  let stopped = false
  return {
    start(workers, apartMs) {
      workers.forEach((worker, at) => {
        if (apartMs === 0) worker.begin(performance.now())
        else setTimeout(() => stopped || worker.begin(performance.now()), at * apartMs)
      })
    },
    ended(worker) {
      if (!stopped) worker.begin(performance.now())
    },
    stop() {
      stopped = true
    }
  }
}

/** Operations that are due begin together once a millisecond, as far as there are free connections; the rest waits. */
function openLoop(rate: number): Loop {
  const free: Worker[] = []
  const due: number[] = []
  let timer: NodeJS.Timeout | undefined
  return {
    start(workers) {
      free.push(...workers)
      const startedAt = performance.now()
      let begun = 0
      timer = setInterval(() => {
        const elapsedMs = Math.floor(performance.now() - startedAt)
        for (; begun <= (elapsedMs * rate) / 1000; begun++) {
          // At a whole millisecond: what the timer is late by counts, and not how it is sliced.
          const dueAt = startedAt + Math.ceil((begun * 1000) / rate)
          const worker = free.pop()
          if (worker === undefined) due.push(dueAt)
          else worker.begin(dueAt)
        }
      }, 1)
    },
    ended(worker) {
      const dueAt = due.shift()
      if (dueAt === undefined) free.push(worker)
      else worker.begin(dueAt)
    },
    stop() {
      clearInterval(timer)
      due.length = 0
      free.length = 0
    }
  }
}

const wait = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })

process.once('disconnect', () => process.exit())
process.on('message', (job: Job | Turns) => {
  const measured = 'jobs' in job ? runTurns(job) : run(job)
  measured.then(
    (load) => process.send?.({ load }),
    (error: unknown) => process.send?.({ error: String(error) })
  )
})
