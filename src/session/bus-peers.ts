// Notices that another process is gone: the store has nobody left who listens for it. A process that was killed is
// found out within two seconds; one that hangs, or whose machine is gone, is found out by its silence.

import { every, type Clock, type Timer } from '../time/clock.ts'

/** How often a process is looked for while something of it is waited for. */
const checkMs = 500
/** In a row: after a failover of the store, a process that lives listens again only after a moment. */
const maxAbsences = 2

interface Peer {
  readonly waiting: Set<() => void>
  readonly interval: Timer
  absences: number
}

/** @param countListeners sends the process something that it ignores, and says how many listen for it */
export function createPeerWatch(clock: Clock, countListeners: (node: string) => Promise<number>) {
  const peers = new Map<string, Peer>()

  async function look(node: string, peer: Peer): Promise<void> {
    const isAbsent = await countListeners(node).then(
      (listeners) => listeners === 0,
      () => false // The store is away: nobody knows.
    )
    peer.absences = isAbsent ? peer.absences + 1 : 0
    if (peer.absences >= maxAbsences) for (const onGone of [...peer.waiting]) onGone()
  }

  return {
    /** @returns how to stop */
    follow(node: string, onGone: () => void): () => void {
      let peer = peers.get(node)
      if (peer === undefined) {
        const made: Peer = {
          waiting: new Set(),
          absences: 0,
          interval: every(clock, checkMs, () => void look(node, made))
        }
        peers.set(node, (peer = made))
      }
      const { waiting, interval } = peer
      waiting.add(onGone)
      return () => {
        if (!waiting.delete(onGone) || waiting.size > 0) return
        interval.close()
        peers.delete(node)
      }
    },
    close(): void {
      for (const { interval } of peers.values()) interval.close()
    }
  }
}
