// `npm run bench`: the benches, as tables for people and one JSON line for machines. Writes nothing into the project
// unless it is told to.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { consoleFigures } from './console.ts'
import { denied } from './denied.ts'
import { table } from './figures.ts'
import { memory } from './memory.ts'
import { observeCosts, observeShares } from './observe.ts'
import { pathOfACall } from './path.ts'
import { readOtherGateway } from './peers/other-gateway.ts'
import { topOfProfile } from './profile.ts'
import {
  addedLatency,
  floorOfHop,
  machine,
  othersOf,
  page,
  ratioHead,
  ratioRow,
  startsHead,
  startsRow,
  type Section
} from './report.ts'
import { neighbour } from './neighbour.ts'
import { measureWorkload, profileOf } from './rounds.ts'
import { starts } from './starts.ts'
import { swaps } from './swap.ts'
import { telling } from './telling.ts'
import { workerCosts } from './workers.ts'
import { workloads } from './workloads.ts'

const further = [
  'start',
  'W7',
  'memory',
  'path',
  'telling',
  'observe',
  'console',
  'denied',
  'neighbour',
  'swap',
  'workers'
]
const names = [...workloads.map(({ name }) => name), ...further]
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    only: { type: 'string' },
    profile: { type: 'string' },
    peer: { type: 'string', multiple: true, default: [] },
    write: { type: 'boolean', default: false }
  }
})
const others = values.peer.map(readOtherGateway)
const otherNames = others.map(({ name }) => name)
const rounds = Number(values.rounds)
const only = values.only?.split(',')
/** `W1` stands for `W1-key`, too. */
const matches = (name: string, pattern: string): boolean => name === pattern || name.startsWith(`${pattern}-`)
if (!(rounds >= 1) || only?.some((pattern) => !names.some((name) => matches(name, pattern))) === true) {
  process.stderr.write(
    `usage: node bench/run.ts [--only NAME,NAME] [--rounds N] [--profile DIR] [--peer FILE] [--write]\nnames: ${names.join(' ')}\n`
  )
  process.exit(2)
}
/** They take minutes, or a browser, and answer other questions: only when asked for. */
const rare = new Set(['memory', 'observe', 'console', 'denied', 'neighbour', 'swap', 'workers'])
const wanted = (name: string): boolean =>
  only === undefined ? !rare.has(name) : only.some((pattern) => matches(name, pattern))

const figures: Record<string, unknown> = { node: process.versions.node, machine: machine(), rounds }
const sections: Section[] = []
const print = (section: Section): void => {
  sections.push(section)
  process.stdout.write(`${table(section.head, section.rows)}${section.notes.map((note) => `${note}\n`).join('')}\n`)
}

const measured = workloads.filter(({ name }) => wanted(name))
if (measured.length > 0) {
  const rows: string[][] = []
  const notes: string[] = []
  for (const workload of measured) {
    process.stderr.write(`${workload.name}: ${workload.what}\n`)
    try {
      const result = await measureWorkload(workload, { rounds, profile: values.profile, others })
      rows.push(ratioRow(result))
      for (const note of [addedLatency(result), floorOfHop(result), ...othersOf(result, otherNames)])
        if (note !== undefined) notes.push(`${workload.name}: ${note}`)
      figures[workload.name] = result.ways
    } catch (error) {
      // The others are worth having; this one says why it is missing.
      notes.push(`${workload.name}: not measured: ${error instanceof Error ? error.message : String(error)}`)
      process.exitCode = 1
      continue
    }
    for (const way of workload.ways.slice(-1))
      if (values.profile !== undefined) notes.push(topOfProfile(profileOf(values.profile, workload, way), 15))
  }
  print({ head: ratioHead, rows, notes })
}
if (wanted('start')) {
  const found = await starts(rounds)
  figures['start'] = found
  print({ head: startsHead, rows: found.map(startsRow), notes: [] })
}
if (wanted('W7') || wanted('memory')) {
  const held = await memory({ sessions: 1_000, abandoned: wanted('memory') ? 10_000 : 0 })
  figures['memory'] = held.figures
  print(held.section)
}
if (wanted('path')) {
  const path = await pathOfACall({ seconds: 1.5 })
  figures['path'] = path.figures
  print(path.section)
}
if (wanted('telling')) {
  const told = await telling()
  figures['telling'] = told
  const rows = Object.entries(told).map(([what, us]) => [what, us.toFixed(2)])
  print({ head: ['told of a call', 'us'], rows, notes: [] })
}
if (wanted('observe')) {
  const told =
    values.profile === undefined
      ? await observeCosts({ rounds: rounds * 4, sets: 3, operations: 1_600 })
      : await observeShares(rounds * 6, values.profile)
  figures['observe'] = told.figures
  print(told.section)
}
if (wanted('workers')) {
  const yielded = await workerCosts({ rounds: rounds * 4, sets: 2, operations: 1_600 })
  figures['workers'] = yielded.figures
  print(yielded.section)
}
if (wanted('console')) {
  const seen = await consoleFigures()
  figures['console'] = seen.figures
  print(seen.section)
  if (seen.missed.length > 0) process.exitCode = 1
}
if (wanted('denied')) {
  const told = await denied()
  figures['denied'] = told.figures
  print(told.section)
}
if (wanted('neighbour')) {
  const kept = await neighbour(rounds)
  figures['neighbour'] = kept.figures
  print(kept.section)
}
if (wanted('swap')) {
  const swapped = await swaps(rounds)
  figures['swap'] = swapped.figures
  print(swapped.section)
  if (swapped.isMissed) process.exitCode = 1
}
process.stdout.write(`${machine()}\n${JSON.stringify(figures)}\n`)

if (values.write) {
  const docs = join(import.meta.dirname, '..', 'docs')
  mkdirSync(docs, { recursive: true })
  const what = measured.map(({ name, what }) => [name, what] as const)
  writeFileSync(join(docs, 'benchmarks.md'), page(sections, what, rounds))
}
