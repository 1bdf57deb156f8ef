// Signals of a process that runs until it is told to end.

import { isatty } from 'node:tty'

/** A terminal that was closed is none any more. */
const isOnTerminal = (): boolean => [0, 1, 2].some((descriptor) => isatty(descriptor))

/**
 * Takes the place of the handlers of bin/gatehouse.mjs, which are for the time before.
 * @param stop for SIGTERM and SIGINT, and where the terminal closes
 * @param reload for SIGHUP in any other case
 * @returns what ends it
 */
export function onSignals(stop: () => void, reload?: () => void): () => void {
  const startedOnTerminal = isOnTerminal()
  let stopped = false
  const end = (): void => {
    stopped = true
    stop()
  }
  // A terminal that closes sends SIGHUP, through the shell a second time. Without a terminal (nohup) there is none that
  // could have closed.
  const hangUp = (): void => {
    if (reload !== undefined && isOnTerminal() === startedOnTerminal) reload()
    else if (startedOnTerminal && !stopped) end()
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.removeAllListeners(signal)
  process.on('SIGTERM', end).on('SIGINT', end).on('SIGHUP', hangUp)
  return () => void process.off('SIGTERM', end).off('SIGINT', end).off('SIGHUP', hangUp)
}
