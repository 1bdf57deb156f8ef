// The end of a worker, as the primary learns of it, and that of the primary, as a worker does.

import type { Worker } from 'node:cluster'
import { every, steadyClock } from '../time/clock.ts'
import type { SocketHandle } from './channel.ts'

/** How often a worker looks whether the primary is there. */
const lookMs = 1_000

/**
 * Makes sure that the channel of a worker that has ended counts as closed. Where a socket was on its way to it, Node
 * tells nobody, and node:cluster would give connections to it for ever. Connections that it was given, and did not
 * take, are closed: node:cluster keeps them, and their clients would wait.
 */
export function closeWithProcess({ process: child }: Worker): void {
  closeUntaken(child)
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

/** A message of node:cluster. */
interface ClusterMessage {
  readonly cmd?: string
  readonly act?: string
  readonly seq?: number
  /** The `seq` of the message that it answers. */
  readonly ack?: number
}

function closeUntaken(child: Worker['process']): void {
  const given = new Map<number, SocketHandle>()
  // There is none where the process could not even start.
  const send = child.send?.bind(child) as ((...args: readonly unknown[]) => boolean) | undefined
  if (send === undefined) return
  child.send = (...args: readonly unknown[]) => {
    const [{ cmd, act, seq }, handle] = args as [ClusterMessage, SocketHandle | undefined]
    if (cmd === 'NODE_CLUSTER' && act === 'newconn' && seq !== undefined && handle) given.set(seq, handle)
    return send(...args)
  }
  child.on('internalMessage', ({ ack }: ClusterMessage) => {
    if (ack !== undefined) given.delete(ack)
  })
  child.once('disconnect', () => {
    for (const handle of given.values()) handle.close()
  })
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
