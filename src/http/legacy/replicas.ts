// The other processes that serve the same sessions, as the handlers of sessions use them.

import type { LegacyRelay } from '../../relay/legacy-relay.ts'
import { createSessionBus } from '../../session/elsewhere/session-bus.ts'
import { sessionsChannel } from '../../store/keys.ts'
import { steadyClock } from '../../time/clock.ts'
import { createSessionHomes, type SessionHomesOptions } from './session-homes.ts'

type Relay = Pick<LegacyRelay, 'touch' | 'notify' | 'holds' | 'leave'>

export type Replicas = ReturnType<typeof createReplicas>

export function createReplicas(options: SessionHomesOptions, relay: Relay) {
  const { bus, live, contextOf } = options
  const sessionBus = createSessionBus(bus, live, steadyClock, {
    // A client that listens at another process keeps the connections of its session here.
    listening(session) {
      const context = contextOf(session.tenant, session.endpoint, session.session.record.owner)
      if (context !== undefined) relay.touch(context, session)
    },
    notified: relay.notify
  })
  if (bus.shared) void letMove(options, relay)
  return { bus, sessionBus, homes: createSessionHomes(options, sessionBus) }
}

/** A home that hung, or stops, hears that another process has taken a session over: a server has one stream for it. */
async function letMove({ store, sessions, live, bus, log }: SessionHomesOptions, relay: Relay): Promise<void> {
  await store.subscribe(sessionsChannel, (message) => {
    const key = message.slice(1)
    const session = message.startsWith('=') && relay.holds(key) ? live.get(key)?.session : undefined
    if (session === undefined) return
    const { owner, endpoint } = session.record
    Promise.resolve(sessions.find(key, owner, endpoint))
      .then((found) => {
        if (found !== undefined && found.record.home !== bus.node) relay.leave(key)
      })
      .catch((err: unknown) => log.debug({ err }, 'where a session lives now cannot be read'))
  })
}
