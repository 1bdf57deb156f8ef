// What turns that were taken in pairs say: how much one costs in relation to the other, and how sure that is.

import { median, quantile } from './figures.ts'

/** Of something in relation to its reference: each with the limits between which it is with a chance of 95 %. */
export interface Cost {
  readonly us: number
  /** Of the middle pair of turns. */
  readonly middle: Estimate
  /** Of all turns together, with whatever collections and disturbances fell into them. */
  readonly whole: Estimate
  /** The middle pair of each set. */
  readonly sets: readonly number[]
}

type Estimate = readonly [ratio: number, from: number, to: number]

/** For two columns of a table. */
export const estimateCells = ([ratio, from, to]: Estimate): string[] => [
  ratio.toFixed(3),
  `${from.toFixed(3)}-${to.toFixed(3)}`
]

type Pair = readonly [own: number, reference: number]

export const pairsOf = (own: readonly number[], reference: readonly number[]): Pair[] =>
  own.map((us, at) => [us, reference[at] ?? Number.NaN])

const middleOf = (pairs: readonly Pair[]): number => median(pairs.map(([own, reference]) => own / reference))
const wholeOf = (pairs: readonly Pair[]): number => sum(pairs.map(([own]) => own)) / sum(pairs.map(([, of]) => of))
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)

export function costOf(sets: ReadonlyArray<readonly Pair[]>): Cost {
  const pairs = sets.flat()
  return {
    us: median(pairs.map(([own]) => own)),
    middle: estimated(pairs, middleOf),
    whole: estimated(pairs, wholeOf),
    sets: sets.map(middleOf)
  }
}

/** By pairs that are drawn from those measured, again and again (bootstrap). */
function estimated(pairs: readonly Pair[], statistic: (pairs: readonly Pair[]) => number): Estimate {
  const drawn = (): Pair[] => pairs.map((pair) => pairs[Math.floor(Math.random() * pairs.length)] ?? pair)
  const found = Array.from({ length: 1_000 }, () => statistic(drawn()))
  return [statistic(pairs), quantile(found, 0.025), quantile(found, 0.975)]
}
