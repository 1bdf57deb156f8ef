// Counts of calls by the minute in steps of ten seconds, with their durations by size, so that sums of many have
// quantiles too.

import type { CallOutcome } from '../../observe/calls.ts'
import { isFailure } from '../../observe/outcomes.ts'

const stepMs = 10_000
const stepsPerMinute = 6
export const minutesKept = 60
export const minuteOf = (now: number): number => Math.floor(now / (stepMs * stepsPerMinute))

/** Durations are counted by size: each class reaches this many times as far as the one before, the first to 1 ms. */
const ratio = 1.6
const classes = 25
const [errorsAt, toolErrorsAt, classesAt] = [0, 1, 2]
const columns = classesAt + classes
const logOfRatio = Math.log(ratio)

interface Minute {
  at: number
  readonly counts: Uint32Array
}

/** The counts by minute, modulo the minutes that are kept. */
export type Row = Map<number, Minute>

/**
 * @param rows each counts it
 * @param now the time of day, in milliseconds
 */
export function countCall(rows: readonly Row[], now: number, outcome: CallOutcome['outcome'], ms: number): void {
  const at = minuteOf(now)
  const start = (Math.floor(now / stepMs) % stepsPerMinute) * columns
  const size = ms <= 1 ? 0 : Math.min(classes - 1, Math.ceil(Math.log(ms) / logOfRatio))
  const failed = !isFailure(outcome) ? undefined : outcome === 'tool_error' ? toolErrorsAt : errorsAt
  for (const row of rows) {
    const counts = countsOf(row, at)
    count(counts, start + classesAt + size)
    if (failed !== undefined) count(counts, start + failed)
  }
}

const count = (counts: Uint32Array, place: number): void => void (counts[place] = (counts[place] ?? 0) + 1)

function countsOf(row: Row, at: number): Uint32Array {
  let minute = row.get(at % minutesKept)
  if (minute === undefined) {
    minute = { at, counts: new Uint32Array(columns * stepsPerMinute) }
    row.set(at % minutesKept, minute)
  } else if (minute.at !== at) {
    minute.counts.fill(0)
    minute.at = at
  }
  return minute.counts
}

/** @param since a minute */
export function callsSince(rows: readonly Row[], since: number): number {
  let calls = 0
  for (const row of rows)
    for (const { at, counts } of row.values())
      if (at >= since) for (const [place, count] of counts.entries()) if (place % columns >= classesAt) calls += count
  return calls
}

/** @param since the time of day, in milliseconds. @returns calls that ended with an error, by whole steps */
export function errorsSince(row: Row, since: number): number {
  const first = Math.floor(since / stepMs)
  let errors = 0
  for (const { at, counts } of row.values())
    for (let step = 0; step < stepsPerMinute; step++)
      if (at * stepsPerMinute + step >= first) errors += counts[step * columns + errorsAt] ?? 0
  return errors
}

/** The step that goes on is the last one. */
export function spanOf(now: number, minutes: number) {
  const steps = minutes * stepsPerMinute
  return { from: new Date((Math.floor(now / stepMs) - steps + 1) * stepMs).toISOString(), stepMs, steps }
}

/** Sums all rows, step by step. */
export function stepsOf(rows: readonly Row[], now: number, minutes: number) {
  const count = minutes * stepsPerMinute
  const first = Math.floor(now / stepMs) - count + 1
  const sums = new Uint32Array(columns * count)
  for (const row of rows)
    for (const { at, counts } of row.values()) {
      const start = (at * stepsPerMinute - first) * columns
      for (const [place, value] of counts.entries())
        if (value > 0 && start + place >= 0 && start + place < sums.length)
          sums[start + place] = (sums[start + place] ?? 0) + value
    }
  const each = Array.from({ length: count }, (_, at) => sums.subarray(at * columns, (at + 1) * columns))
  return {
    calls: each.map((step) => step.subarray(classesAt).reduce((sum, next) => sum + next, 0)),
    errors: each.map((step) => step[errorsAt] ?? 0),
    toolErrors: each.map((step) => step[toolErrorsAt] ?? 0),
    p50: each.map((step) => quantile(step, 0.5)),
    p95: each.map((step) => quantile(step, 0.95)),
    p99: each.map((step) => quantile(step, 0.99))
  }
}

/** In milliseconds, within its class as if durations were spread evenly there; null where there was no call. */
function quantile(step: Uint32Array, part: number): number | null {
  const sizes = step.subarray(classesAt)
  const calls = sizes.reduce((sum, next) => sum + next, 0)
  if (calls === 0) return null
  let left = part * calls
  for (const [size, count] of sizes.entries()) {
    if (count > 0 && left <= count) {
      const [from, to] = [size === 0 ? 0 : ratio ** (size - 1), ratio ** size]
      return Math.round((from + (to - from) * (left / count)) * 10) / 10
    }
    left -= count
  }
  return null
}
