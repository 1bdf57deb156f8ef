// What a listen stream is still to send: nothing before its acknowledgment, and of many changes of a list one message
// in a while.

import type { Notification } from '../../protocol/messages.ts'
import type { ListKind } from '../../protocol/seams.ts'
import { createDelay, type Clock } from '../../time/clock.ts'

/** Many changes are one change to a client that reads the list again. */
const changedEveryMs = 100
/**
 * Of the queue before the acknowledgment, when nothing is promised yet; in characters of JSON, where whole tasks
 * come.
 */
const maxQueued = 1_000
const maxQueuedLength = 128 * 1024

/** @param notify sends to the client */
export function createListenQueue(notify: (notification: Notification) => void, clock: Clock) {
  const queued = new Map<string, { readonly notification: Notification; readonly length: number }>()
  let queuedLength = 0
  const unsent = new Set<ListKind>()
  let acknowledged = false
  let ended = false
  const pause = createDelay(clock)

  function sendChanges(): void {
    if (unsent.size === 0) return
    for (const kind of unsent) notify({ method: `notifications/${kind}/list_changed` })
    unsent.clear()
    pause.start(changedEveryMs, sendChanges)
  }

  function end(): void {
    ended = true
    pause.close()
  }

  return {
    /** Sends the acknowledgment, and what was queued before it. */
    acknowledge(acknowledgment: Notification) {
      if (ended) return
      acknowledged = true
      notify(acknowledgment)
      for (const { notification } of queued.values()) notify(notification)
      queued.clear()
      sendChanges()
    },
    /** @param about the resource or task: before the acknowledgment, only the newest notification of each is queued */
    send(about: string, notification: Notification) {
      if (ended) return
      if (acknowledged) return notify(notification)
      const before = queued.get(about)
      const length = JSON.stringify(notification).length
      const total = queuedLength - (before?.length ?? 0) + length
      if (total > maxQueuedLength || (before === undefined && queued.size >= maxQueued)) return
      queued.set(about, { notification, length })
      queuedLength = total
    },
    /** Sends list changes: at once, then at most every `changedEveryMs`. */
    changed(kinds: Iterable<ListKind>) {
      if (ended) return
      for (const kind of kinds) unsent.add(kind)
      if (acknowledged && !pause.pending) sendChanges()
    },
    /** Sends the list changes that are due later, and nothing after that. */
    finish() {
      if (ended) return
      pause.close()
      if (acknowledged) sendChanges()
      end()
    },
    end
  }
}
