// `gatehouse serve --workers N` on a configuration of the test, with each kind of store.

import { readFile } from 'node:fs/promises'
import type { Test } from 'tap'
import { descendants } from '../e2e/kit/process.ts'
import { configOf, type TestGatewayOptions } from '../kit/gateway.ts'
import { serve, type Served } from '../kit/process.ts'
import { redis } from '../kit/redis.ts'
import { scriptedStdio } from '../kit/server-request.ts'

export interface Workers extends Served {
  /** The endpoint of tenant `acme`. */
  readonly mcp: string
  /** The workers whose log lines fit, each once. */
  workersOf(fits: (line: Record<string, unknown>) => boolean): number[]
  /** Those that run now. */
  pidsOfWorkers(): Promise<number[]>
}

export type StoreOfWorkers = 'file:' | 'redis:'
export const storesOfWorkers: readonly StoreOfWorkers[] = ['file:', 'redis:']

export const storeOfWorkers = async (t: Test, kind: StoreOfWorkers): Promise<string> =>
  kind === 'file:' ? 'file:./gatehouse.db' : (await redis(t)).url

/** A server over stdio, one process for each session, behind the tools' own names. */
export const ownProcess: TestGatewayOptions = {
  upstreams: { pipe: scriptedStdio },
  endpoints: { default: { upstreams: ['pipe'], prefix: '' } }
}

export async function workers(
  t: Test,
  options: TestGatewayOptions,
  count = 2,
  env: Readonly<Record<string, string>> = {}
): Promise<Workers> {
  const served = await serve(t, configOf({ ...options, store: options.store ?? 'file:./gatehouse.db' }), {
    env,
    args: ['--workers', String(count)]
  })
  return {
    ...served,
    mcp: `${served.url}/t/acme/mcp`,
    workersOf: (fits) => {
      const numbers = served.log().flatMap((line) => (fits(line) && 'worker' in line ? Number(line['worker']) : []))
      return [...new Set(numbers)].sort((a, b) => a - b)
    },
    async pidsOfWorkers() {
      const below = descendants(served.pid)
      const lines = await Promise.all(below.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
      // What a worker has just forked has its command line for a moment.
      const deeper = new Set(below.flatMap((pid) => descendants(pid)))
      return below.filter((pid, at) => !deeper.has(pid) && lines[at]?.includes('gatehouse.mjs'))
    }
  }
}
