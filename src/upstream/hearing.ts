// What a caller hears of its call while it runs: everything, unless the upstream floods it.

import { metaOf } from '../protocol/messages.ts'
import { createBucket } from './bucket.ts'
import type { Notification, Request } from '../protocol/messages.ts'
import type { Client } from '../protocol/seams.ts'
import type { Bucket } from './bucket.ts'
import type { Clock } from './clock.ts'

export interface Hearing {
  notify (notification: Notification): void
  /** The call ends: hands out what was held back. */
  end (): void
}

// Well above what a person could follow, well below what would fill a client's queue. A burst passes whole.
const perSecond = 200
const burst = 2_000

/** @param flooded called once, when the first notification is held back */
export function createHearing (client: Client, clock: Clock, flooded: () => void): Hearing {
  let bucket: Bucket | undefined
  let told = false
  /** The newest progress message above the cap: the last word on progress is worth more than those it replaces. */
  let held: Notification | undefined

  return {
    notify (notification) {
      bucket ??= createBucket(clock, perSecond, burst)
      if (bucket.take()) {
        held = undefined
        return client.notify(notification)
      }
      if (!told) flooded()
      told = true
      if (notification.method === 'notifications/progress') held = notification
    },
    end () {
      if (held !== undefined) client.notify(held)
    }
  }
}

/** The request with a progress token of ours in place of the client's, so that no two calls have the same. */
export function withToken (request: Request, id: number): Request {
  return { ...request, params: { ...request.params, _meta: { ...metaOf(request.params), progressToken: id } } }
}
