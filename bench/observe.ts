// What telling costs on a call: gateways that tell more and more take turns with one that tells nothing, and with
// another one that tells nothing either, which says how far two of the same are apart. All are in one process: two
// processes of the same tree differ by more than what is to be found.

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { findCores } from './cpu.ts'
import { costOf, estimateCells, pairsOf, type Cost } from './pairs.ts'
import { shareOfProfile } from './profile.ts'
import type { Section } from './report.ts'
import { createStage, tenantAuth, type Stage } from './stage.ts'
import type { Turns } from './load/turns.ts'
import type { GatewayOfMany } from './peers/gateways.ts'

type Json = Readonly<Record<string, unknown>>

export interface ObserveOptions {
  /** Of turns, in each set of processes. */
  readonly rounds: number
  /** Processes, one after the other: which code was compiled when is chance. */
  readonly sets: number
  readonly operations: number
}

/** Of each gateway until its code is hot. */
const warmOperations = 12_000
const connections = 32
const what = { kind: 'call', tool: 'echo' } as const

/** The first is what the others are compared with. */
const admin = {
  listen: { host: '127.0.0.1', port: 0 },
  keys: [{ name: 'bench', sha256: '0'.repeat(64), role: 'metrics' }]
}
const kinds: Readonly<Record<string, Json>> = {
  quiet: { logLevel: 'error' },
  again: { logLevel: 'error' },
  log: {},
  metrics: { admin },
  pseudonyms: { admin, pseudonyms: { key: 'a secret of the bench, 32 characters' } }
}

/**
 * @param flags for Node
 * @returns by kind, of each set: microseconds of CPU time for each call, round after round
 */
async function measureSet(
  { rounds, operations }: Pick<ObserveOptions, 'rounds' | 'operations'>,
  kinds: Readonly<Record<string, Json>>,
  flags: readonly string[] = []
): Promise<ReadonlyMap<string, readonly number[]>> {
  const stage = await createStage()
  try {
    const upstream = await stage.peer('peers/upstream.ts', 'ends')
    const many = stage.fork('peers/gateways.ts', 'middle', flags)
    const jobs: Array<Turns['jobs'][number]> = []
    for (const [kind, told] of Object.entries(kinds)) {
      const logFile = join(stage.folder, `${kind}.log`)
      const config = { ...stage.configFor(kind, { ...told, ...one(stage, upstream.origin) }) }
      many.send({ config: JSON.stringify(config), logFile } satisfies GatewayOfMany)
      const url = `${await messageOf(many)}/t/bench/mcp`
      const target = { url, token: await stage.issuer.token(url), ...what, sessions: connections } as const
      jobs.push({ targets: [target], connections, middle: [many.pid ?? 0] })
    }
    await stage.turns({ jobs, operations, rounds: Math.ceil(warmOperations / operations) })
    const us = await stage.turns({ jobs, operations, rounds })
    return new Map(Object.keys(kinds).map((kind, at) => [kind, us[at] ?? []]))
  } finally {
    await stage.close()
  }
}

const one = (stage: Stage, upstream: string): Json => ({
  tenants: {
    bench: { auth: tenantAuth(stage.issuer), upstreams: { json: { type: 'http', url: `${upstream}/legacy/4` } } }
  }
})

async function messageOf(child: ChildProcess): Promise<string> {
  const [message] = (await once(child, 'message')) as [string]
  return message
}

export async function observeCosts(
  options: ObserveOptions
): Promise<{ section: Section; figures: Record<string, Cost> }> {
  const sets: Array<ReadonlyMap<string, readonly number[]>> = []
  for (let set = 0; set < options.sets; set++) sets.push(await measureSet(options, kinds))
  const figures: Record<string, Cost> = {}
  for (const kind of Object.keys(kinds))
    figures[kind] = costOf(sets.map((each) => pairsOf(each.get(kind) ?? [], each.get('quiet') ?? [])))
  return {
    figures,
    section: {
      head: ['told of a call', 'us', 'middle pair', '95 %', 'all turns', '95 %', 'middle pair of each set'],
      rows: Object.entries(figures).map(([kind, { us, middle, whole, sets: each }]) => [
        kind,
        us.toFixed(1),
        ...estimateCells(middle),
        ...estimateCells(whole),
        each.map((value) => value.toFixed(3)).join(' ')
      ]),
      notes: findCores() === undefined ? ['Not pinned: say nothing of these figures.'] : []
    }
  }
}

/** Of the run of a call it is the outermost function, and no part of what is told. */
const isTelling = (name: string, url: string): boolean => name !== 'observe' && /\/src\/(?:observe|admin)\//.test(url)

/**
 * The part that telling has of the CPU time of a gateway, by profiles: two runs differ by up to three tenths of a
 * percent, however busy the machine is. What telling makes slower in the rest is not in it.
 * @param folder where the profiles go
 */
export async function observeShares(rounds: number, folder: string) {
  const figures: Record<string, number> = {}
  for (const [kind, told] of Object.entries(kinds)) {
    if (kind === 'again') continue
    const name = `observe-${kind}.cpuprofile`
    const flags = ['--cpu-prof', '--cpu-prof-interval=200', `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${name}`]
    await measureSet({ rounds, operations: 1_600 }, { [kind]: told }, flags)
    figures[kind] = shareOfProfile(join(folder, name), isTelling)
  }
  const rows = Object.entries(figures).map(([kind, share]) => [kind, (share * 100).toFixed(2)])
  return { figures, section: { head: ['told of a call', '% of its CPU time'], rows, notes: [] } satisfies Section }
}
