// What a CPU profile says in short: where most time was spent, callees left out. The first half of the run is left out,
// too: there modules are loaded and code gets hot.

import { readFileSync } from 'node:fs'
import { table } from './figures.ts'

interface CpuProfile {
  readonly nodes: ReadonlyArray<{
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
    readonly children?: readonly number[]
  }>
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** Samples are a millisecond apart. A longer one had no processor: it says where the process was put aside. */
const longestSampleUs = 2_000

/** @returns tables of the `count` functions, and of the rooms and packages, with most time of their own */
export function topOfProfile(file: string, count: number): string {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile
  const places = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
      const path = url.replace(/^.*\/(?=src\/|node_modules\/)/, '').replace(/^node_modules\//, '')
      const where = path === '' ? '' : ` ${path}:${lineNumber + 1}`
      return [id, { place: `${functionName || '(anonymous)'}${where}`, room: roomOf(path) }] as const
    })
  )
  const [byPlace, byRoom] = [new Map<string, number>(), new Map<string, number>()]
  const add = (sums: Map<string, number>, name: string, us: number): unknown =>
    sums.set(name, (sums.get(name) ?? 0) + us)
  let [all, elapsed] = [0, 0]
  const half = timeDeltas.reduce((sum, us) => sum + us, 0) / 2
  for (const [at, id] of samples.entries()) {
    elapsed += timeDeltas[at] ?? 0
    const us = Math.min(timeDeltas[at] ?? 0, longestSampleUs)
    const found = places.get(id)
    if (elapsed < half || found === undefined || found.place === '(idle)') continue
    all += us
    add(byPlace, found.place, us)
    add(byRoom, found.room, us)
  }
  const top = (title: string, sums: ReadonlyMap<string, number>): string =>
    table(
      [title, '%'],
      [...sums]
        .toSorted(([, a], [, b]) => b - a)
        .slice(0, count)
        .map(([name, us]) => [name, ((us * 100) / all).toFixed(1)])
    )
  return `${top(`self time, ${file}`, byPlace)}\n${top('by room and package', byRoom)}`
}

/**
 * @param isMeant functions, by name and URL: with all that they call, but for the collector, which runs whenever it does
 * @returns their part of the time in which the process did something
 */
export function shareOfProfile(file: string, isMeant: (name: string, url: string) => boolean): number {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile
  const meant = new Set<number>()
  const names = new Map<number, string>()
  // Each stands before those that it calls.
  for (const { id, callFrame, children = [] } of nodes) {
    names.set(id, callFrame.functionName)
    if (isMeant(callFrame.functionName, callFrame.url)) meant.add(id)
    if (meant.has(id)) for (const child of children) meant.add(child)
  }
  let [all, own, elapsed] = [0, 0, 0]
  const half = timeDeltas.reduce((sum, us) => sum + us, 0) / 2
  for (const [at, id] of samples.entries()) {
    elapsed += timeDeltas[at] ?? 0
    const us = Math.min(timeDeltas[at] ?? 0, longestSampleUs)
    if (elapsed < half || names.get(id) === '(idle)') continue
    all += us
    if (meant.has(id) && names.get(id) !== '(garbage collector)') own += us
  }
  return own / all
}

/** `src/http`, `undici`, `node:internal/streams`; what has no file is of the engine or native. */
function roomOf(path: string): string {
  if (path === '') return '(engine and native)'
  if (!path.startsWith('node:'))
    return path
      .split('/')
      .slice(0, path.startsWith('src/') || path.startsWith('@') ? 2 : 1)
      .join('/')
  return path.split('/').slice(0, 2).join('/')
}
