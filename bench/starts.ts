// How long a gateway takes to be ready, and what it holds while nobody uses it.

import { setTimeout as wait } from 'node:timers/promises'
import { residentMiB } from './cpu.ts'
import { median, quantile } from './figures.ts'
import { createStage, tenantAuth } from './stage.ts'

export interface Starts {
  readonly name: 'start' | 'rest'
  readonly what: string
  readonly unit: 's' | 'MiB'
  readonly median: number
  readonly quartiles: readonly [number, number]
  readonly aim: number
  readonly least: number
}

const upstreams = 20
const settleMs = 5_000

/** Half of the upstreams are processes, half are URLs; what is behind them does not exist, because nobody needs it yet. */
export async function starts(rounds: number): Promise<Starts[]> {
  const stage = await createStage()
  try {
    const all = Array.from({ length: upstreams }, (_, at) => [
      `upstream${at}`,
      at % 2 === 0
        ? { type: 'http', url: `http://127.0.0.1:9/${at}` }
        : { type: 'stdio', command: process.execPath, args: ['-e', 'process.stdin.resume()'] }
    ])
    const config = { tenants: { bench: { auth: tenantAuth(stage.issuer), upstreams: Object.fromEntries(all) } } }
    const seconds: number[] = []
    const mib: number[] = []
    for (let round = 0; round < rounds; round++) {
      const startedAt = performance.now()
      const gateway = await stage.gateway(`start-${round}`, config)
      while ((await fetch(`${gateway.origin}/health/ready`)).status !== 200) await wait(5)
      seconds.push((performance.now() - startedAt) / 1000)
      await wait(settleMs)
      mib.push(residentMiB(gateway.pid))
      await stage.stop(gateway.child)
    }
    const quartiles = (samples: number[]) => [quantile(samples, 0.25), quantile(samples, 0.75)] as const
    const start = `start to ready, ${upstreams} upstreams, none needed yet`
    const rest = `resident memory ${settleMs / 1000} s after that`
    return [
      {
        name: 'start',
        what: start,
        unit: 's',
        median: median(seconds),
        quartiles: quartiles(seconds),
        aim: 0.4,
        least: 0.8
      },
      { name: 'rest', what: rest, unit: 'MiB', median: median(mib), quartiles: quartiles(mib), aim: 60, least: 90 }
    ]
  } finally {
    await stage.close()
  }
}
