// What a server says besides its answers: to the client of a call while the call runs, or to the owner of the
// connection. A flood of it is limited.

import { createTokenBucket } from '../../limits/limits.ts'
import { metaOf, type Notification, type Request } from '../../protocol/messages.ts'
import { legacyServerNotifications } from '../../protocol/methods.ts'
import type { Client } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'
import type { LimitedWarnings } from './limited-warnings.ts'
import type { LinkContext } from './transport.ts'

export interface CallNotifications {
  notify(notification: Notification): void
  /** The call ends: the last progress is passed on if it was held back. */
  end(): void
}

// Well above what a person could follow, well below what would fill a client's queue. A burst passes whole.
const callLimit = { perSecond: 200, burst: 2_000 }

export function createCallNotifications(client: Client, clock: Clock, warnings: LimitedWarnings): CallNotifications {
  const bucket = createTokenBucket(clock, callLimit.perSecond, callLimit.burst)
  let flooded = false
  /** Of progress above the limit the newest message is worth more than those it replaces. */
  let held: Notification | undefined

  return {
    notify(notification) {
      if (bucket.take()) {
        held = undefined
        return client.notify(notification)
      }
      if (!flooded) warnings.warn({}, 'the upstream floods a call with notifications; only some are passed on')
      flooded = true
      if (notification.method === 'notifications/progress') held = notification
    },
    end() {
      if (held !== undefined) client.notify(held)
    }
  }
}

/** The request with our progress token in place of the client's, so that no two calls have the same. */
export function withProgressToken(request: Request, id: number): Request {
  return { ...request, params: { ...request.params, _meta: { ...metaOf(request.params), progressToken: id } } }
}

/** @returns what takes one notification of the server that belongs to no call */
const connectionLimit = { perSecond: 100, burst: 1_000 }

export function createConnectionNotifications(
  link: Pick<LinkContext, 'events' | 'clock' | 'log' | 'warnings'>
): (notification: Notification) => void {
  const { events, clock, log, warnings } = link
  // A server with many subscribed resources may change them all at once; nobody reads a hundred messages a second.
  const bucket = createTokenBucket(clock, connectionLimit.perSecond, connectionLimit.burst)

  return (notification) => {
    // Whoever takes these coalesces them, so none is too many.
    const known = legacyServerNotifications.get(notification.method)
    if (known?.changedList !== undefined) return events.listChanged(known.changedList)
    if (known === undefined) return log.debug('dropped a notification of the upstream whose method is not known')
    if (bucket.take()) return events.notification(notification)
    warnings.warn({}, 'the upstream floods its connection with notifications; some are left out')
  }
}
