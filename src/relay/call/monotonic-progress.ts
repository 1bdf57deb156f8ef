// Progress of one call that is several at its server: each round may begin to count anew.

import type { Notification } from '../../protocol/messages.ts'
import type { Client } from '../../protocol/seams.ts'

export type MonotonicProgress = ReturnType<typeof createMonotonicProgress>

/** @param token of the caller; undefined: it wants no progress */
export function createMonotonicProgress(client: Client, token: unknown) {
  let top = -Infinity
  let floor = -Infinity
  return {
    /**
     * The caller's client; progress that does not go on from the round before does not reach it (2025-11-25
     * basic/utilities/progress: it MUST increase).
     */
    client: {
      ...client,
      notify(notification: Notification): void {
        const value = notification.method === 'notifications/progress' ? notification.params?.['progress'] : undefined
        if (typeof value === 'number') {
          if (value <= floor) return
          top = Math.max(top, value)
        }
        client.notify(notification)
      }
    },
    /** Another round begins. */
    again(): void {
      floor = top
    },
    /** Reports one step with a message of the gateway. */
    say(message: string): void {
      if (token === undefined) return
      const next = Math.max(top, 0) + 1
      // Where a server has counted to where numbers have no next one.
      if (next <= top) return
      floor = top = next
      client.notify({ method: 'notifications/progress', params: { progressToken: token, progress: top, message } })
    }
  }
}
