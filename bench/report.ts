// Figures as tables: for a terminal, and as a page of docs.

import { readFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { findCores } from './cpu.ts'
import type { Measured, MeasuredWay } from './rounds.ts'
import type { Starts } from './starts.ts'

const root = join(import.meta.dirname, '..')

const wayNamed = ({ ways }: Measured, name: string): MeasuredWay | undefined => ways.find(({ way }) => way.via === name)

export const ratioHead = [
  'workload',
  'ratio',
  'quartiles',
  'aim',
  'at least',
  'of',
  'Fastify',
  'us',
  'of us',
  'ends us',
  'req/s',
  'p50 ms',
  'of p50',
  'p99 ms',
  'of p99'
]

/** The last way of the workload in relation to its first. */
export function ratioRow(measured: Measured): string[] {
  const { workload, ways } = measured
  const [first, last] = [ways[0], ways.at(-1)]
  if (first === undefined || last === undefined) throw new Error(`${workload.name} has no ways`)
  return [
    workload.name,
    last.ratio.toFixed(2),
    last.quartiles.map((value) => value.toFixed(2)).join('-'),
    String(workload.aim),
    String(workload.least),
    workload.of ?? 'bare',
    wayNamed(measured, 'fastify')?.ratio.toFixed(2) ?? '',
    last.middleUs.toFixed(0),
    first.middleUs.toFixed(0),
    last.endsUs.toFixed(0),
    last.perSecond.toFixed(0),
    last.p50Ms.toFixed(2),
    first.p50Ms.toFixed(2),
    last.p99Ms.toFixed(2),
    first.p99Ms.toFixed(2)
  ]
}

/** Where the load has measured the upstream itself, too. */
export function addedLatency(measured: Measured): string | undefined {
  const [direct, last] = [wayNamed(measured, 'direct'), measured.ways.at(-1)]
  if (direct === undefined || last === undefined) return undefined
  const added = last.p50Ms - direct.p50Ms
  return `added latency, median: ${added.toFixed(2)} ms (aim 0.25, at least 0.35); direct ${direct.p50Ms.toFixed(2)} ms`
}

/** Where the least that a call at another process costs was measured in the same rounds. */
export function floorOfHop(measured: Measured): string | undefined {
  const bare = wayNamed(measured, 'bare-b')
  if (bare === undefined) return undefined
  const [from, to] = bare.quartiles.map((value) => value.toFixed(2))
  return (
    `one publish and one message over ioredis each way, and nothing else done at either process: ` +
    `${bare.ratio.toFixed(2)} (${from}-${to}), ${bare.middleUs.toFixed(0)} us`
  )
}

/** Of each other gateway that was measured in the same rounds. */
export const othersOf = ({ ways }: Measured, names: readonly string[]): string[] =>
  ways
    .filter(({ way }) => names.includes(way.via))
    .map(({ way, ratio, quartiles, middleUs, perSecond, p50Ms }) => {
      const [from, to] = quartiles.map((value) => value.toFixed(2))
      return `${way.via} ${ratio.toFixed(2)} (${from}-${to}), ${middleUs.toFixed(0)} us, ${perSecond.toFixed(0)} req/s, p50 ${p50Ms.toFixed(2)} ms`
    })

export const startsHead = ['lifecycle', 'median', 'quartiles', 'aim', 'at least']

export const startsRow = ({ what, unit, median, quartiles, aim, least }: Starts): string[] => [
  `${what}, ${unit}`,
  median.toFixed(2),
  quartiles.map((value) => value.toFixed(2)).join('-'),
  String(aim ?? ''),
  String(least ?? '')
]

/** What the figures were made with. */
export function machine(): string {
  const cores = findCores()
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const { node, v8 } = process.versions
  return [
    `${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${cpus().length} cores`,
    `${(totalmem() / 2 ** 30).toFixed(0)} GiB, Linux ${release()}`,
    cores === undefined
      ? 'not pinned: one core, or no taskset; all processes compete'
      : `gateway and proxies on core ${cores.middle}, load and upstreams on ${cores.ends}`,
    `Node ${node} (V8 ${v8}), undici ${dependencies['undici']}, Fastify ${dependencies['fastify']}`
  ].join('; ')
}

export interface Section {
  readonly head: readonly string[]
  readonly rows: ReadonlyArray<readonly string[]>
  readonly notes: readonly string[]
}

/** Of the machine, while the benches ran: they themselves keep two cores busy. */
function loadLine(): string {
  const load = (loadavg()[2] ?? Number.NaN).toFixed(1)
  return (
    `Load average of the last 15 minutes: ${load}, on ${cpus().length} cores. The benches make about 2 of it; where it ` +
    'is far more, others used the machine, and the ratios are worse than on a quiet one.'
  )
}

/** @param sections in the words of the terminal @param rounds of each row */
export function page(
  sections: readonly Section[],
  what: ReadonlyArray<readonly [string, string]>,
  rounds: number
): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const parts = sections.flatMap(({ head, rows, notes }) => [
    line(head),
    line(head.map((_, at) => (at === 0 ? '---' : '--:'))),
    ...rows.map(line),
    '',
    ...notes.flatMap((note) => [note, ''])
  ])
  return `${[
    '# Benchmarks',
    '',
    '*Written by `npm run bench -- --write`; do not edit. How to read it: [bench/README.md](../bench/README.md).*',
    '',
    `${machine()}. Medians of ${rounds} rounds.`,
    '',
    loadLine(),
    '',
    ...parts,
    '| name | workload |',
    '|---|---|',
    ...what.map(line)
  ].join('\n')}\n`
}
