// The running calls, for listeners: what is known of each so far, and what it waits for. They are polled once a second
// while somebody listens, so that calls themselves have no cost.

import { callLine, rounded } from '../../observe/call-text.ts'
import type { CallRecord, ObservedCall } from '../../observe/calls.ts'
import type { LiveEvents } from '../../observe/live.ts'
import { every, type Clock } from '../../time/clock.ts'

/** Between two looks, in milliseconds. */
const lookMs = 1_000
/** Calls younger than this are left out: they are reported when they end. In milliseconds. */
const fromMs = 250
/** Of a tenant, at one process, those that run longest; the others are counted. */
const maxCallsTold = 100

export type RunningCalls = Iterable<{ readonly call: ObservedCall }>

interface RunningOptions {
  readonly live: LiveEvents
  readonly running: RunningCalls
  /** The process. */
  readonly node: string
  readonly clock: Clock
  readonly wall: Pick<Clock, 'now'>
}

/** @returns what ends it */
export function tellRunningCalls({ live, running, node, clock, wall }: RunningOptions): () => void {
  /** The tenants that had running calls at the last poll: they are told, too, when none is left. */
  let told = new Set<string>()
  /** Where there is no room for all, it is another tenant's turn to be first at each look. */
  let turn = 0

  function look(): void {
    if (!live.isListenedTo('running')) return
    const byTenant = Map.groupBy([...slow(running)], ({ call }) => call.tenant.id)
    const now = wall.now()
    const tenants = [...new Set([...byTenant.keys(), ...told])].toSorted()
    const first = tenants.length === 0 ? 0 : turn++ % tenants.length
    for (const tenant of [...tenants.slice(first), ...tenants.slice(0, first)]) {
      const all = byTenant.get(tenant) ?? []
      const textOf = (calls: readonly object[]): string =>
        JSON.stringify({ process: node, tenant, calls, leftOut: all.length - calls.length })
      const make = (): string => {
        const calls = all.toSorted((a, b) => b.ms - a.ms).slice(0, maxCallsTold)
        return textOf(calls.map(({ call, record, ms }) => runningCall(call, record, ms, now)))
      }
      live.happened('running', tenant, make, textOf([]))
    }
    told = new Set(byTenant.keys())
  }
  const timer = every(clock, lookMs, look)
  return () => timer.close()
}

interface SlowCall {
  readonly call: ObservedCall
  readonly record: CallRecord
  readonly ms: number
}

function* slow(running: RunningCalls): Generator<SlowCall> {
  for (const { call } of running) {
    const { record } = call
    // Another process runs it, or it was not let begin.
    if (record?.startedAt === undefined || record.clock === undefined) continue
    const ms = rounded(record.clock.now() - record.startedAt)
    if (ms >= fromMs) yield { call, record, ms }
  }
}

function runningCall(call: ObservedCall, record: CallRecord, ms: number, now: number): object {
  const { outcome: _none, ...line } = callLine(call, { outcome: 'ok', ms, rule: undefined })
  return { time: new Date(now - ms).toISOString(), ...line, waitsFor: waitedFor(record), steps: record.steps }
}

/** `gateway`: a place, a list, a connection; or its answer is on its way. */
function waitedFor({ waitMs, upstreamMs, rounds = 1, steps = [] }: CallRecord): 'gateway' | 'upstream' | 'client' {
  if (steps.some(({ kind, ms }) => kind === 'asked' && ms === undefined)) return 'client'
  const answered = upstreamMs === undefined ? 0 : 1 + steps.filter(({ kind }) => kind === 'round').length
  return waitMs !== undefined && answered < rounds ? 'upstream' : 'gateway'
}
