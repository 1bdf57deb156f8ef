// Which other processes are there. One that was killed is found out within two seconds, because the store has nobody
// left who listens for it; one that hangs, or whose machine is gone, because it answers nothing for two seconds.

import { LRUCache } from 'lru-cache'
import { every, type Clock, type Timer } from '../../../time/clock.ts'

/** How often a process is asked whether it lives while something of it is waited for. */
const checkMs = 500
/** In a row: after a failover of the store, a process that lives listens again only after a moment. */
const maxAbsences = 2
/** In a row: with the time before the first of them, two seconds of silence. A busy process may stall for less. */
const maxUnanswered = 3

/** Processes that are known; the one that was heard longest ago is forgotten. */
const maxKnown = 256

interface Peer {
  readonly waiting: Set<() => void>
  readonly interval: Timer
  absences: number
  unanswered: number
}

export type PeerWatch = ReturnType<typeof createPeerWatch>

/**
 * @param ask sends the process something that it answers, and says how many listen for it; undefined where the store is
 * away, so that nobody knows
 */
export function createPeerWatch(clock: Clock, ask: (node: string) => Promise<number | undefined>) {
  const peers = new Map<string, Peer>()
  const known = new LRUCache<string, true>({ max: maxKnown })

  // Checks are counted, and not the time: after a stall of this process its answers have come, and were not read yet.
  async function look(node: string, peer: Peer): Promise<void> {
    if (peer.unanswered >= maxUnanswered) return tellGone(peer)
    peer.unanswered++
    const listeners = await ask(node).catch(() => undefined)
    if (listeners === undefined) peer.unanswered = 0
    peer.absences = listeners === 0 ? peer.absences + 1 : 0
    if (peer.absences >= maxAbsences) tellGone(peer)
  }

  const tellGone = ({ waiting }: Peer): void => {
    for (const onGone of [...waiting]) onGone()
  }

  return {
    /** @returns how to stop */
    follow(node: string, onGone: () => void): () => void {
      let peer = peers.get(node)
      if (peer === undefined) {
        const made: Peer = {
          waiting: new Set(),
          absences: 0,
          unanswered: 0,
          interval: every(clock, checkMs, () => void look(node, made))
        }
        peer = made
        peers.set(node, made)
      }
      const { waiting, interval } = peer
      waiting.add(onGone)
      return () => {
        if (!waiting.delete(onGone) || waiting.size > 0) return
        interval.close()
        peers.delete(node)
      }
    },
    /** Any message of a process shows that it lives. */
    heard(node: string): void {
      known.set(node, true)
      const peer = peers.get(node)
      if (peer !== undefined) peer.unanswered = 0
    },
    /** The store names it. */
    wasThere(node: string): void {
      known.set(node, true)
    },
    /** Whether there was such a process: a client may invent one. */
    knows: (node: string): boolean => known.has(node),
    close(): void {
      for (const { interval } of peers.values()) interval.close()
    }
  }
}
