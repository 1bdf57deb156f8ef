// `notifications/resources/updated` on its way to all who subscribed: in steps, so that a server with many subscribers
// holds nobody else up. What it says of a resource while its subscribers are being told is told once, with the last of
// it, because an update says no more than that the resource has to be read again.

import type { JsonObject } from '../../protocol/messages.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { subscribersOf, type SubscribedConnection } from './subscription-index.ts'

/** The notifications of each URI that are on their way, and those that came since. */
type Telling = Map<string, JsonObject | undefined>

const underWay = new WeakMap<SubscribedConnection, Telling>()

/**
 * Tells each subscriber of the resource, or of one that contains it, once.
 * @param params of the notification
 */
export function tellUpdated(connection: SubscribedConnection, params: JsonObject): void {
  const { uri } = params
  if (typeof uri !== 'string') return
  const telling: Telling = underWay.get(connection) ?? new Map()
  underWay.set(connection, telling)
  const isTold = telling.has(uri)
  telling.set(uri, params)
  const { tenant, name } = connection.definition
  if (!isTold) void runSteps(tell(connection, uri, telling), { tenant, caller: `upstream ${name}` })
}

function* tell(connection: SubscribedConnection, uri: string, telling: Telling): Steps {
  try {
    for (let params = telling.get(uri); params !== undefined; params = telling.get(uri)) {
      telling.set(uri, undefined)
      for (const [subscriber, shown] of subscribersOf(connection, uri)) {
        if (!subscriber.over) subscriber.updated(connection.definition, params, shown)
        yield
      }
    }
  } finally {
    telling.delete(uri)
  }
}
