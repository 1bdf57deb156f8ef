// Gateways that take turns of so many calls each, some times a second, over connections that stay open: what the
// machine does beside it falls on all of them alike, and what a call costs is not mixed with what a second costs.

import { cpuUs } from '../cpu.ts'
import type { Target } from './operations.ts'
import { operationsFor, workerOf, type Worker } from './worker.ts'

export interface Turns {
  readonly jobs: ReadonlyArray<{
    /** Of several, each has some of the calls. */
    readonly targets: readonly Target[]
    /** To each of them. */
    readonly connections: number
    /** Whose CPU time is counted. */
    readonly middle: readonly number[]
  }>
  /** Of a turn. */
  readonly operations: number
  readonly rounds: number
}

/** CPU time for each operation in microseconds: of each job, round after round. */
export type TurnsUs = readonly number[][]

/** After the last answer, until what a gateway writes and sends later is through: it counts, too. */
const settleMs = 60

export async function runTurns({ jobs, operations, rounds }: Turns): Promise<TurnsUs> {
  const failed = Promise.withResolvers<never>()
  const players: Array<Awaited<ReturnType<typeof playerOf>>> = []
  const us: number[][] = jobs.map(() => [])
  async function play(): Promise<TurnsUs> {
    for (const job of jobs) players.push(await playerOf(job, failed.reject))
    const order = [...players.keys()]
    for (let round = 0; round < rounds; round++) {
      // Whoever is first in one round is last in another, and nobody always comes after the same one.
      order.push(order.shift() ?? 0)
      for (const at of round % 2 === 0 ? order : order.toReversed()) {
        const turn = await players[at]?.turn(operations)
        us[at]?.push(turn ?? Number.NaN)
      }
    }
    return us
  }
  try {
    return await Promise.race([play(), failed.promise])
  } finally {
    for (const { end } of players) end()
  }
}

async function playerOf(job: Turns['jobs'][number], fail: (error: unknown) => void) {
  let [begun, open, count] = [0, 0, 0]
  let done: (() => void) | undefined
  const begin = (worker: Worker): void => {
    begun++
    worker.begin(performance.now())
  }
  const ended = (worker: Worker): void => {
    if (begun < count) begin(worker)
    else if (--open === 0) done?.()
  }
  const workers: Worker[] = []
  for (const target of job.targets) {
    for (const operation of await operationsFor({ target, connections: job.connections }))
      workers.push(workerOf(new URL(target.url), operation, fail, ended))
  }
  return {
    /** @returns CPU time for each operation */
    async turn(operations: number): Promise<number> {
      const before = cpuUs(job.middle)
      await new Promise<void>((resolve) => {
        ;[begun, open, count, done] = [0, workers.length, operations, resolve]
        for (const worker of workers) begin(worker)
      })
      await new Promise((resolve) => {
        setTimeout(resolve, settleMs)
      })
      return (cpuUs(job.middle) - before) / operations
    },
    end(): void {
      for (const worker of workers) worker.end()
    }
  }
}
