// What a change of the configuration by the admin API (`POST /v1/apply`) takes from calls that run meanwhile: each swaps
// the snapshot of the gateway. Calls come at a fixed rate and count from when each should have begun; a call that fails
// ends the bench, so that none is lost unseen. Quiet and changing take turns. `npm run bench -- --only swap`.

import { hash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '../test/kit/free-port.ts'
import { median } from './figures.ts'
import type { Job, Load } from './load/load.ts'
import type { Section } from './report.ts'
import { apiKey, createStage } from './stage.ts'

const adminKey = `gha_${hash('sha256', 'of the bench', 'base64url')}`
const connections = 16
const load = { connections, rate: 200, warmMs: 1_000, ms: 4_000 }
const applyEveryMs = 250
/** In the file beside the tenant that changes: a snapshot has them all. */
const others = 1_000
/** No call may wait so much longer than the slowest of the quiet turn, in milliseconds. */
const mostDelayMs = 50

interface Round {
  readonly quiet: Load
  readonly changing: Load
  readonly applied: number
}

const delayOf = ({ quiet, changing }: Round): number => changing.mostMs - quiet.mostMs

export async function swaps(
  rounds: number
): Promise<{ section: Section; figures: Record<string, unknown>; isMissed: boolean }> {
  const stage = await createStage()
  try {
    const server = await stage.peer('peers/upstream.ts', 'ends')
    const tenant = (instructions: string) => ({
      auth: { keys: [{ name: 'bench', key: apiKey }] },
      upstreams: { up: { type: 'http', url: `${server.origin}/legacy/4` } },
      endpoints: { default: { upstreams: ['up'], prefix: '', instructions } }
    })
    const port = await freePort()
    const admin = {
      listen: { port },
      keys: [{ name: 'bench', role: 'platform-admin', sha256: hash('sha256', adminKey) }]
    }
    const tenants = Object.fromEntries(Array.from({ length: others }, (_, at) => [`other-${at}`, tenant('')]))
    const gateway = await stage.gateway('swap', { admin, tenants })
    let applied = 0
    async function apply(): Promise<void> {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/apply`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${adminKey}`, 'Content-Type': 'application/json', 'If-Match': '*' },
        body: JSON.stringify({ tenants: { bench: tenant(`Change ${++applied}.`) } })
      })
      if (answer.status !== 200) throw new Error(`apply: ${answer.status} ${await answer.text()}`)
      await answer.arrayBuffer()
    }
    const job: Job = {
      ...load,
      target: {
        url: `${gateway.origin}/t/bench/mcp`,
        token: apiKey,
        kind: 'call',
        tool: 'echo',
        sessions: connections
      },
      middle: [gateway.pid],
      servers: [server.pid]
    }
    await apply()
    const measured: Round[] = []
    for (let round = 0; round < rounds; round++) {
      const quiet = await stage.measure(job)
      const before = applied
      const stop = new AbortController()
      const changes = applying(apply, stop.signal)
      const changing = await stage.measure(job).finally(() => stop.abort())
      await changes
      measured.push({ quiet, changing, applied: applied - before })
    }
    const middle = (value: (round: Round) => number): string => median(measured.map(value)).toFixed(2)
    const row = [
      middle(({ quiet }) => quiet.p99Ms),
      middle(({ changing }) => changing.p99Ms),
      middle(({ quiet }) => quiet.mostMs),
      middle(({ changing }) => changing.mostMs),
      middle(delayOf),
      String(measured.reduce((sum, each) => sum + each.changing.operations, 0)),
      String(measured.reduce((sum, each) => sum + each.applied, 0))
    ]
    const figures = { delayMs: median(measured.map(delayOf)), rounds: measured }
    return { section: { head, rows: [row], notes }, figures, isMissed: figures.delayMs > mostDelayMs }
  } finally {
    await stage.close()
  }
}

async function applying(apply: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await apply()
    await wait(applyEveryMs, undefined, { signal }).catch(() => undefined)
  }
}

const head = [
  'p99 ms quiet',
  'p99 ms while changing',
  'longest ms quiet',
  'longest ms while changing',
  'longer by ms',
  'calls',
  'changes'
]
const notes = [
  `${load.rate} calls a second, counted from when each was due; a change of one tenant of ${others + 1} each ` +
    `${applyEveryMs} ms; no call failed. Medians of the rounds. Longer by: at most ${mostDelayMs} ms.`
]
