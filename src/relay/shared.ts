// What the relays of both eras share, because it belongs to no caller.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Notification } from '../protocol/messages.ts'
import type { Catalogs } from './catalogs.ts'
import type { Levels } from './levels.ts'
import type { Listings } from './listings.ts'

/** What calls of both eras use: one listing per upstream, whoever asks. */
export interface Shared {
  readonly listings: Listings
  readonly catalogs: Catalogs
  readonly levels: Levels
  readonly updates: SharedUpdates
}

/** Whoever subscribes to resources on a connection that both eras use, which is that of an upstream with isolation `shared`. */
export interface Subscriber {
  notification (definition: UpstreamDefinition, scope: string, notification: Notification): void
  lost (definition: UpstreamDefinition, scope: string): void
  wants (definition: UpstreamDefinition, scope: string, uri: string): boolean
}

export interface SharedUpdates {
  join (subscriber: Subscriber): void
  /** Does a session want to hear of this resource over this connection? */
  wants: Subscriber['wants']
}
