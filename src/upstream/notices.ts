// What a server says outside of any call, for whoever the connection belongs to: only what we know the meaning of, and not more than
// somebody could follow.

import { createBucket } from './bucket.ts'
import type { Log } from '../observe/log.ts'
import type { Notification } from '../protocol/messages.ts'
import type { ListKind, UpstreamEvents } from '../protocol/seams.ts'
import type { Clock } from './clock.ts'
import type { Complaints } from './complaints.ts'

export interface NoticesOptions {
  readonly events: UpstreamEvents
  readonly clock: Clock
  readonly log: Log
  readonly complaints: Complaints
}

const listKinds: ReadonlyMap<string, ListKind> = new Map([
  ['notifications/tools/list_changed', 'tools'],
  ['notifications/prompts/list_changed', 'prompts'],
  ['notifications/resources/list_changed', 'resources']
])

const known: ReadonlySet<string> = new Set([
  'notifications/message',
  'notifications/resources/updated',
  'notifications/elicitation/complete',
  'notifications/tasks/status'
])

// A server with many subscribed resources may change them all at once; nobody reads a hundred messages a second.
const perSecond = 100
const burst = 1_000

/** @returns what takes one notification of the server that belongs to no call */
export function createNotices ({ events, clock, log, complaints }: NoticesOptions): (notification: Notification) => void {
  const bucket = createBucket(clock, perSecond, burst)

  return (notification) => {
    // These are coalesced by whoever hears them, so none is too many.
    const kind = listKinds.get(notification.method)
    if (kind !== undefined) return events.listChanged(kind)
    if (!known.has(notification.method)) return log.debug('dropped a notification of the upstream whose method is not known')
    if (bucket.take()) return events.notification(notification)
    complaints.warn({}, 'the upstream floods its connection with notifications; some are left out')
  }
}
