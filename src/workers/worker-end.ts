// The end of a worker, as the primary learns of it.

import type { Worker } from 'node:cluster'

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
