// --since and --until of `tail`: times of day, times ago, and dates.

import { UsageError } from '../commands/command.ts'

/**
 * Reads both times. A time of day is the latest one in the past; as the end of a range it is the first one after the
 * beginning. @throws UsageError
 */
export function timesOf(since: string | undefined, until: string | undefined): readonly (number | undefined)[] {
  const [from, to] = [timeOf(since, '--since'), timeOf(until, '--until')]
  const isOfDay = (text: string | undefined): boolean => text?.includes(':') === true && !text.includes('-')
  const begin = isOfDay(since) && from !== undefined && from > Date.now() ? dayAfter(from, -1) : from
  if (begin === undefined || to === undefined || !isOfDay(since) || !isOfDay(until)) return [begin, to]
  const dayBefore = dayAfter(to, -1)
  return [begin, dayBefore >= begin ? dayBefore : to]
}

/** The same time of the clock. */
const dayAfter = (time: number, days: number): number => {
  const date = new Date(time)
  return date.setDate(date.getDate() + days)
}

/** Reads one time; `10:42` is today. @throws UsageError */
function timeOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined
  const [, hours, minutes, seconds] = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(text) ?? []
  const end = option === '--until'
  if (hours !== undefined)
    return new Date().setHours(Number(hours), Number(minutes), Number(seconds ?? (end ? 59 : 0)), end ? 999 : 0)
  const [, amount, unit] = /^(\d+)(s|m|h|d)$/.exec(text) ?? []
  if (amount !== undefined) return Date.now() - Number(amount) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[unit as 's']
  const time = Date.parse(text)
  // Date.parse makes dates from texts that are none, such as 99:99 or 7.
  if (Number.isNaN(time) || !/^\d{4}-\d\d-\d\d/.test(text))
    throw new UsageError(
      `${option} takes a time of day (10:42), a while ago (15m) or 2026-07-28T10:42:00Z, not "${text}".`
    )
  return time
}
