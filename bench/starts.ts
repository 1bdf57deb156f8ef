// How long a gateway takes to be ready, and what it holds while nobody uses it: as the package that people install,
// whose JavaScript is compiled. A checkout strips the types of each file as it is loaded.

import { spawnSync } from 'node:child_process'
import { cpSync, globSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { cpuUs, residentMiB } from './cpu.ts'
import { median, quantile } from './figures.ts'
import { createStage, tenantAuth } from './stage.ts'

export interface Starts {
  readonly name: 'start' | 'cpu' | 'rest'
  readonly what: string
  readonly unit: 's' | 'MiB'
  readonly median: number
  readonly quartiles: readonly [number, number]
  readonly aim?: number
  readonly least?: number
}

const upstreams = 20
/** An idle process gives memory back after ten seconds (limits/idle-memory.ts). */
const settleMs = 15_000

/** Half of the upstreams are processes, half are URLs; nothing is behind these, because nobody needs them yet. */
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
    const root = buildPackage(join(stage.folder, 'package'))
    const seconds: number[] = []
    const cpuSeconds: number[] = []
    const mib: number[] = []
    for (let round = 0; round < rounds; round++) {
      const startedAt = performance.now()
      const gateway = await stage.gateway(`start-${round}`, config, { root })
      while ((await fetch(`${gateway.origin}/health/ready`)).status !== 200) await wait(5)
      seconds.push((performance.now() - startedAt) / 1000)
      cpuSeconds.push(cpuUs([gateway.pid]) / 1_000_000)
      await wait(settleMs)
      mib.push(residentMiB(gateway.pid))
      await stage.stop(gateway.child)
    }
    const start = `start to ready, ${upstreams} upstreams, none needed yet`
    return [
      { name: 'start', what: start, unit: 's', ...spreadOf(seconds), aim: 0.4, least: 0.8 },
      { name: 'cpu', what: 'CPU time of that', unit: 's', ...spreadOf(cpuSeconds) },
      { name: 'rest', what: 'resident memory 15 s later', unit: 'MiB', ...spreadOf(mib), aim: 60, least: 90 }
    ]
  } finally {
    await stage.close()
  }
}

/** As scripts/package.ts makes it, beside the checkout. @returns its folder */
function buildPackage(folder: string): string {
  const checkout = join(import.meta.dirname, '..')
  const compiler = join(checkout, 'node_modules', '.bin', 'tsc')
  const args = ['--project', join(checkout, 'tsconfig.package.json'), '--outDir', join(folder, 'dist')]
  const { status } = spawnSync(compiler, args, { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the package could not be built')
  const src = join(checkout, 'src')
  for (const file of globSync('**/*.mjs', { cwd: src })) cpSync(join(src, file), join(folder, 'dist', file))
  for (const name of ['bin', 'package.json']) cpSync(join(checkout, name), join(folder, name), { recursive: true })
  symlinkSync(join(checkout, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

const spreadOf = (samples: readonly number[]): Pick<Starts, 'median' | 'quartiles'> => ({
  median: median(samples),
  quartiles: [quantile(samples, 0.25), quantile(samples, 0.75)]
})
