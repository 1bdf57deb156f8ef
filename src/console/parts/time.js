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
