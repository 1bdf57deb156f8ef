// `gatehouse serve --workers N` on a configuration of the test, with each kind of store.

import type { Test } from 'tap'
import { configOf, type TestGatewayOptions } from '../kit/gateway.ts'
import { serve, type Served } from '../kit/process.ts'
import { redis } from '../kit/redis.ts'
import { scriptedStdio } from '../kit/server-request.ts'

export interface Workers extends Served {
  /** The endpoint of tenant `acme`. */
  readonly mcp: string
  /** The workers whose log lines fit, each once. */
  workersOf(fits: (line: Record<string, unknown>) => boolean): number[]
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

export async function workers(t: Test, options: TestGatewayOptions, count = 2): Promise<Workers> {
  const served = await serve(t, configOf({ ...options, store: options.store ?? 'file:./gatehouse.db' }), {
    args: ['--workers', String(count)]
  })
  return {
    ...served,
    mcp: `${served.url}/t/acme/mcp`,
    workersOf: (fits) =>
      [
        ...new Set(
          served
            .log()
            .filter(fits)
            .map(({ worker }) => Number(worker))
        )
      ].sort()
  }
}
