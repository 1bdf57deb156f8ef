// What a CPU profile says in short: the functions in which most time was spent, those that they call left out.

import { readFileSync } from 'node:fs'
import { table } from './figures.ts'

interface CpuProfile {
  readonly nodes: ReadonlyArray<{
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }>
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** @returns a table of the `count` functions with most time of their own, in share of all time on the core */
export function topOfProfile(file: string, count: number): string {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile
  const places = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
      const path = url.replace(/^.*\/(?=src\/|node_modules\/)/, '').replace(/^node_modules\//, '')
      return [id, `${functionName || '(anonymous)'}${path === '' ? '' : ` ${path}:${lineNumber + 1}`}`]
    })
  )
  const spent = new Map<string, number>()
  let all = 0
  for (const [at, id] of samples.entries()) {
    const place = places.get(id) ?? ''
    if (place === '(idle)') continue
    const us = timeDeltas[at] ?? 0
    all += us
    spent.set(place, (spent.get(place) ?? 0) + us)
  }
  const top = [...spent].toSorted(([, a], [, b]) => b - a).slice(0, count)
  return table(
    [`self time, ${file}`, '%'],
    top.map(([place, us]) => [place, ((us * 100) / all).toFixed(1)])
  )
}
