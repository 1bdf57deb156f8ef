// The numbers of one limit of calls: rates, which fill up steadily, and quotas of a day or month, which begin anew; and
// what a client is told of them.

import { countOf } from '../config/problems.ts'
import type { CallLimit } from '../config/snapshot.ts'

/** A time that is counted by itself. */
export interface Window {
  /** The name in the key of its bucket. */
  readonly name: string
  /** Epoch ms; Infinity of a rate. */
  readonly until: number
}

export interface Counter {
  readonly tenant: string
  readonly limit: string
  /** second, minute, hour, day or month. */
  readonly unit: string
  readonly isQuota: boolean
  readonly number: number
  readonly capacity: number
  readonly perMs: number
  readonly windowSeconds: number
  /** Such as `60 calls a minute`. */
  readonly says: string
  readonly windowAt: (now: number) => Window
  /** Milliseconds until there is more again. */
  readonly resetMs: (window: Window, now: number) => number
}

const always: Window = { name: '', until: Infinity }

const rates = [
  ['perSecond', 'second', 1],
  ['perMinute', 'minute', 60],
  ['perHour', 'hour', 3_600]
] as const

const daySeconds = 86_400

function dayAt(now: number): Window {
  const day = Math.floor(now / 1000 / daySeconds)
  return { name: `day ${day}`, until: (day + 1) * daySeconds * 1000 }
}

function monthAt(now: number): Window {
  const date = new Date(now)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return { name: `month ${year}-${month + 1}`, until: Date.UTC(year, month + 1) }
}

const quotas = [
  ['perDay', 'day', daySeconds, dayAt],
  // Of thirty days: what clients are told must not change from month to month.
  ['perMonth', 'month', 30 * daySeconds, monthAt]
] as const

export function countersOf(tenant: string, limit: string, config: CallLimit): Counter[] {
  const common = { tenant, limit }
  const ofRates = rates.flatMap(([member, unit, windowSeconds]): Counter[] => {
    const number = config[member]
    if (number === undefined) return []
    const perMs = number / windowSeconds / 1000
    const article = unit === 'hour' ? 'an' : 'a'
    return [
      {
        ...common,
        ...{ unit, number, windowSeconds, perMs },
        isQuota: false,
        capacity: config.burst ?? number,
        says: `${countOf(number, 'call')} ${article} ${unit}`,
        windowAt: () => always,
        resetMs: () => 1 / perMs
      }
    ]
  })
  const ofQuotas = quotas.flatMap(([member, unit, windowSeconds, windowAt]): Counter[] => {
    const number = config[member]
    if (number === undefined) return []
    return [
      {
        ...common,
        ...{ unit, number, windowSeconds, windowAt },
        isQuota: true,
        perMs: 0,
        capacity: number,
        says: `${countOf(number, 'call')} a ${unit}`,
        resetMs: ({ until }, now) => until - now
      }
    ]
  })
  return [...ofRates, ...ofQuotas]
}

/** The state of a counter: what is left, and when there is more. */
export interface CounterState {
  readonly counter: Counter
  readonly remaining: number
  readonly resetMs: number
}

/** Clients refuse answers with long headers: a tenant may have a hundred limits. */
const maxStatesTold = 10

/** @returns those of which least is left, in the order in which they were given */
function scarcest(states: readonly CounterState[]): readonly CounterState[] {
  if (states.length <= maxStatesTold) return states
  const partOf = ({ counter, remaining }: CounterState): number => remaining / counter.number
  const told = new Set(states.toSorted((a, b) => partOf(a) - partOf(b)).slice(0, maxStatesTold))
  return states.filter((each) => told.has(each))
}

/** The policies of a call are the same for each: their text is made once. */
const policyTexts = new WeakMap<Counter, string>()

function policyText(counter: Counter): string {
  const { limit, unit, number, windowSeconds } = counter
  const text = policyTexts.get(counter) ?? `"${limit}-${unit}";q=${number};w=${windowSeconds}`
  policyTexts.set(counter, text)
  return text
}

/**
 * draft-ietf-httpapi-ratelimit-headers: `RateLimit-Policy` says what the limits are, `RateLimit` how much is left of
 * each and when there is more. Names of limits need no escapes in a String of RFC 9651.
 */
export function rateLimitHeaders(states: readonly CounterState[]): Record<string, string> {
  let policies = ''
  let left = ''
  for (const { counter, remaining, resetMs } of scarcest(states)) {
    const before = left === '' ? '' : ', '
    policies += before + policyText(counter)
    const seconds = Math.max(1, Math.ceil(resetMs / 1000))
    left += `${before}"${counter.limit}-${counter.unit}";r=${Math.min(counter.number, remaining)};t=${seconds}`
  }
  return left === '' ? {} : { 'RateLimit-Policy': policies, RateLimit: left }
}
