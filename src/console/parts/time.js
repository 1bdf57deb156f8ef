// Times and amounts, as people say them.

const units = /** @type {const} */ ([
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1]
])
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** @param {string | number} at RFC 3339, or epoch ms @param {number} [now] */
export function ago(at, now = Date.now()) {
  const seconds = (new Date(at).getTime() - now) / 1000
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return relative.format(Math.round(seconds / size), unit)
}

/** @param {string | number} at */
export const clockTime = (at) => new Date(at).toLocaleTimeString('en-GB')

/** @param {string | number} at */
export const dateTime = (at) => new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })

/** @param {number} ms */
export const duration = (ms) =>
  ms < 1
    ? '<1 ms'
    : ms < 1_000
      ? `${Math.round(ms)} ms`
      : ms < 60_000
        ? `${(ms / 1000).toFixed(1)} s`
        : `${Math.round(ms / 60_000)} min`

/** @param {number} bytes */
export const bytes = (bytes) =>
  bytes < 1024
    ? `${bytes} B`
    : bytes < 1_048_576
      ? `${(bytes / 1024).toFixed(0)} KiB`
      : `${(bytes / 1_048_576).toFixed(1)} MiB`
