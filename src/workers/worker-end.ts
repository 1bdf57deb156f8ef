// The end of a worker, as the primary learns of it, and that of the primary, as a worker does.

import type { Worker } from 'node:cluster'
import { every, steadyClock } from '../time/clock.ts'

/** How often a worker looks whether the primary is there. */
const lookMs = 1_000

/**
 * Makes sure that the channel of a worker that has ended counts as closed. Where a socket was on its way to it, Node
 * tells nobody, and node:cluster would give connections to it for ever.
 */
export function closeWithProcess({ process: child }: Worker): void {
  let isTold = false
  child.once('disconnect', () => {
    isTold = true
  })
  function look(): void {
    if (isTold) return
    // What it had written is read first.
    if (child.channel === null) child.emit('disconnect')
    else setImmediate(look)
  }
  child.once('exit', look)
}

/**
 * Makes sure that this worker ends with the primary. Where a socket was on its way to that, Node tells nobody that the
 * channel is closed, and node:cluster would have the worker run for ever.
 */
export function endWithPrimary(): void {
  const looks = every(steadyClock, lookMs, () => {
    if (process.connected) return
    looks.close()
    // node:cluster listens for it, and ends the process.
    process.emit('disconnect')
  })
  process.once('disconnect', () => looks.close())
}
