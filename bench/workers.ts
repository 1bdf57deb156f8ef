// What each worker of `serve --workers` yields: a gateway of one process, one of two workers, and two gateways that know
// nothing of each other take turns on one core. Two processes in turn on a core cost more than one, whatever they are:
// the two gateways say how much, and what is beyond that is what workers do for each other.

import { findCores } from './cpu.ts'
import type { Target } from './load/operations.ts'
import type { Turns } from './load/turns.ts'
import type { ObserveOptions } from './observe.ts'
import { costOf, estimateCells, pairsOf, type Cost } from './pairs.ts'
import type { Section } from './report.ts'
import { createStage, type Peer } from './stage.ts'
import { usual } from './workloads.ts'

/** Of one process, or of two together, until their code is hot. */
const warmOperations = 16_000
const connections = 32

interface Load {
  readonly name: string
  readonly path: string
  readonly client: Pick<Target, 'kind' | 'tool'>
}

const loads: readonly Load[] = [
  { name: 'W1', path: '/t/bench/mcp', client: { kind: 'call', tool: 'echo' } },
  { name: 'W6', path: '/t/bench/modern/mcp', client: { kind: 'modern-call', tool: 'echo' } }
]
type Kind = 'one' | 'apart' | 'workers'

async function measureSet({ path, client }: Load, { rounds, operations }: ObserveOptions) {
  const stage = await createStage()
  try {
    const upstream = await stage.peer('peers/upstream.ts', 'ends')
    const start = (name: string, workers = 1): Promise<Peer> =>
      stage.gateway(name, usual(stage, upstream.origin), { workers })
    const gateways: Readonly<Record<Kind, readonly Peer[]>> = {
      one: [await start('one')],
      apart: [await start('a'), await start('b')],
      workers: [await start('workers', 2)]
    }
    const jobs: Array<Turns['jobs'][number]> = []
    for (const peers of Object.values(gateways)) {
      const each = connections / peers.length
      const targets: Target[] = []
      for (const { origin } of peers) {
        const url = origin + path
        targets.push({ url, token: await stage.issuer.token(url), ...client, sessions: each })
      }
      jobs.push({ targets, connections: each, middle: peers.flatMap(({ pids }) => pids) })
    }
    await stage.turns({ jobs, operations, rounds: Math.ceil(warmOperations / operations) })
    const [one = [], apart = [], workers = []] = await stage.turns({ jobs, operations, rounds })
    return { one, apart, workers } satisfies Record<Kind, readonly number[]>
  } finally {
    await stage.close()
  }
}

/** Calls for each second of CPU time: of the first kind, in relation to the second. */
const comparisons: ReadonlyArray<readonly [Kind, Kind]> = [
  ['workers', 'apart'],
  ['apart', 'one'],
  ['workers', 'one']
]

const words: Readonly<Record<Kind, string>> = {
  one: 'one process',
  apart: 'two gateways',
  workers: 'two workers'
}

export async function workerCosts(
  options: ObserveOptions
): Promise<{ section: Section; figures: Record<string, Cost> }> {
  const figures: Record<string, Cost> = {}
  const rows: string[][] = []
  for (const load of loads) {
    const sets: Array<Awaited<ReturnType<typeof measureSet>>> = []
    for (let set = 0; set < options.sets; set++) sets.push(await measureSet(load, options))
    for (const [kind, reference] of comparisons) {
      // Yields are costs the other way round.
      const cost = costOf(sets.map((each) => pairsOf(each[reference], each[kind])))
      figures[`${load.name} ${kind} of ${reference}`] = cost
      const us = costOf(sets.map((each) => pairsOf(each[kind], each[reference]))).us
      rows.push([
        `${load.name}: ${words[kind]}, of ${words[reference]}`,
        us.toFixed(1),
        ...estimateCells(cost.middle),
        ...estimateCells(cost.whole)
      ])
    }
  }
  return {
    figures,
    section: {
      head: ['calls for each second of CPU time', 'us', 'middle pair', '95 %', 'all turns', '95 %'],
      rows,
      notes: findCores() === undefined ? ['Not pinned: say nothing of these figures.'] : []
    }
  }
}
