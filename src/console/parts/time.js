// Times, as people say them.

import { text } from '../text.js'

const units = /** @type {const} */ ([
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1]
])

/** @param {string | number} at RFC 3339, or epoch ms @param {number} [now] */
export function ago(at, now = Date.now()) {
  const seconds = (new Date(at).getTime() - now) / 1000
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return text.time.ago(Math.round(seconds / size), unit)
}

/** @param {string | number} at */
export const clockTime = (at) => text.time.clock(new Date(at))

/** @param {number} at epoch ms */
const dayOf = (at) => new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
const daySeconds = 86_400

/** @param {number} at epoch ms */
const isOfToday = (at) => dayOf(at) === dayOf(Date.now())

/**
 * What stands at an axis: times of day; where it begins before today, the date below the first of each day; and dates
 * alone where they are days apart.
 * @param {number[]} marks epoch seconds, in their order @param {number} apart seconds between two
 * @param {number} from where the axis begins
 */
export function axisTimes(marks, apart, from) {
  const days = marks.map((each) => dayOf(each * 1000))
  if (apart >= daySeconds) return days
  return marks.map((each, at) => {
    const time = clockTime(each * 1000).slice(0, 5)
    return !isOfToday(from * 1000) && days[at] !== days[at - 1] ? `${time}\n${days[at]}` : time
  })
}

/** One of these moments: with its day where they begin before today. @param {number} at epoch seconds @param {number[]} all */
export const momentAmong = (at, [from = at]) =>
  isOfToday(from * 1000) ? clockTime(at * 1000) : `${dayOf(at * 1000)}, ${clockTime(at * 1000)}`

/** @param {string | number} at */
export const dateTime = (at) => text.time.date(new Date(at))

/** @param {number} ms */
export const duration = (ms) =>
  ms < 1
    ? text.time.instant
    : ms < 1_000
      ? text.time.ms(ms)
      : ms < 60_000
        ? text.time.seconds(ms / 1000)
        : text.time.minutes(ms / 60_000)
