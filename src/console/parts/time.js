// Formats times, durations and spans.

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

const daySeconds = 86_400
/** @param {number} seconds of the epoch */
const dateAt = (seconds) => new Date(seconds * 1000)
/** @param {number} seconds of the epoch */
const isOfToday = (seconds) => dateAt(seconds).toDateString() === new Date().toDateString()

/**
 * The labels of an axis: times of day, or only dates if the marks are days apart. If the axis begins before today, the
 * first mark of each day also has the date.
 * @param {number[]} marks epoch seconds, ascending @param {number} apart seconds between two marks
 * @param {number} from epoch seconds at which the axis begins
 */
export function axisTimes(marks, apart, from) {
  const days = marks.map((each) => text.time.day(dateAt(each)))
  if (apart >= daySeconds) return days
  return marks.map((each, at) => {
    const hour = text.time.hour(dateAt(each))
    return !isOfToday(from) && days[at] !== days[at - 1] ? `${hour}\n${days[at]}` : hour
  })
}

/**
 * A time of day, with its date if the first of all moments is before today.
 * @param {number} at epoch seconds @param {number[]} all
 */
export const momentAmong = (at, [from = at]) =>
  isOfToday(from) ? text.time.clock(dateAt(at)) : text.time.dayAndClock(dateAt(at))

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
