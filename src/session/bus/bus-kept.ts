// What was said on requests of other processes in the last seconds, for senders that missed it while their way to the
// store was broken.

import type { Clock } from '../../time/clock.ts'
import type { BusMessages } from './wire/bus-messages.ts'
import type { OutboxWord } from './bus-outbox.ts'

/** From when it has left, for longer than a process is without Redis where that answers again. */
export const keptMs = 5_000
/**
 * Of all answers that are kept, and of all that was said ahead of answers, as `jsonSizeOf` counts. Beyond, the tenant
 * that has most loses its oldest.
 */
const maxKeptBytes = 4 * 1024 * 1024

interface SaidMessage {
  readonly id: string
  readonly to: string
  readonly tenant: string
  readonly word: OutboxWord
  readonly body: unknown
  readonly seq: number
  readonly size: number
}

interface Kept extends SaidMessage {
  /** Once it has left. */
  until: number
}

export type KeptMessages = ReturnType<typeof createKeptMessages>

export function createKeptMessages(clock: Pick<Clock, 'now'>, trySend: BusMessages['trySend']) {
  const ahead = createKept(clock)
  const answers = createKept(clock)
  return {
    /** @returns to be called once when it has left, or never will */
    keep(said: SaidMessage): () => void {
      const kept = said.word === 'said' ? ahead : answers
      return kept.add(said)
    },
    /**
     * To who asked, and nobody else: in order, all that is kept after what it has heard.
     * @returns whether the answer was among it
     */
    sayAgain(id: string, to: string, last: number): boolean {
      let after = last
      const answer = answers.of(id)
      // Messages that were sent again were kept out of order.
      const inOrder = [...ahead.of(id), ...answer].sort((a, b) => a.seq - b.seq)
      for (const { to: asker, word, body, seq } of inOrder) {
        if (asker !== to || (word === 'said' && seq <= last)) continue
        trySend(to, word, id, body, { seq, after })
        after = seq
      }
      return answer.some((each) => each.to === to)
    }
  }
}

function createKept({ now }: Pick<Clock, 'now'>) {
  /** Those that have left, in that order. */
  const left = new Set<Kept>()
  /** The oldest comes first, of each request and of each tenant. */
  const byRequest = new Map<string, Set<Kept>>()
  const byTenant = new Map<string, { readonly kept: Set<Kept>; bytes: number }>()
  let total = 0

  function forget(kept: Kept): void {
    left.delete(kept)
    total -= kept.size
    const same = byRequest.get(kept.id)
    same?.delete(kept)
    if (same?.size === 0) byRequest.delete(kept.id)
    const own = byTenant.get(kept.tenant)
    if (own === undefined) return
    own.kept.delete(kept)
    own.bytes -= kept.size
    if (own.kept.size === 0) byTenant.delete(kept.tenant)
  }

  /** @param adding what comes on top, and for whom */
  function oldestOfLargest({ tenant, size }: SaidMessage): Kept | undefined {
    let most = -1
    let found: Kept | undefined
    for (const [name, { kept, bytes }] of byTenant) {
      const then = bytes + (name === tenant ? size : 0)
      if (then > most) [most, found] = [then, kept.values().next().value]
    }
    return found
  }

  return {
    add(given: SaidMessage): () => void {
      for (const kept of left) {
        if (kept.until > now()) break
        forget(kept)
      }
      if (given.size > maxKeptBytes) return () => {}
      while (total + given.size > maxKeptBytes) {
        const oldest = oldestOfLargest(given)
        if (oldest === undefined) break
        forget(oldest)
      }
      const kept: Kept = { ...given, until: Infinity }
      total += given.size
      const own = byTenant.get(given.tenant) ?? { kept: new Set<Kept>(), bytes: 0 }
      byTenant.set(given.tenant, own)
      own.kept.add(kept)
      own.bytes += given.size
      const same = byRequest.get(given.id) ?? new Set<Kept>()
      same.add(kept)
      byRequest.set(given.id, same)
      return () => {
        if (byRequest.get(given.id)?.has(kept) !== true) return
        kept.until = now() + keptMs
        left.add(kept)
      }
    },
    of: (id: string): readonly Kept[] => [...(byRequest.get(id) ?? [])]
  }
}
