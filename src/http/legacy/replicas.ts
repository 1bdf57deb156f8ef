// The other processes that serve the same sessions, as the handlers of sessions use them.

import type { LegacyRelay } from '../../relay/legacy-relay.ts'
import { createSessionBus } from '../../session/session-bus.ts'
import { steadyClock } from '../../time/clock.ts'
import { createSessionHomes, type SessionHomesOptions } from './session-homes.ts'

export type Replicas = ReturnType<typeof createReplicas>

export function createReplicas(options: SessionHomesOptions, relay: Pick<LegacyRelay, 'touch' | 'notify'>) {
  const { bus, live, contextOf } = options
  const sessionBus = createSessionBus(bus, live, steadyClock)
  // A client that listens at another process keeps the connections of its session here.
  sessionBus.onListening((session) => {
    const context = contextOf(session.tenant, session.endpoint, session.session.record.owner)
    if (context !== undefined) relay.touch(context, session)
  })
  sessionBus.onNotified(relay.notify)
  return { bus, sessionBus, homes: createSessionHomes(options, sessionBus) }
}
