// The second phase of the composition: who calls, and the streams and sessions of clients at this process.

import { createAuthenticator } from '../auth/authenticate.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { createLogin } from '../login/login.ts'
import { copyLimitsFor } from '../session/event-copies.ts'
import { createLiveSessions } from '../session/live-sessions.ts'
import { createStreamHolders, serveHeldStreams } from '../session/elsewhere/stream-holders.ts'
import { dropWithSessions } from '../session/session-end.ts'
import { createStreams } from '../session/streams.ts'
import { steadyClock, wallClock } from '../time/clock.ts'
import { clocks, type GatewayOptions } from './state.ts'
import type { GatewayStorage } from './storage.ts'

export type GatewayClients = Awaited<ReturnType<typeof openClients>>

export async function openClients(storage: GatewayStorage, { log, overrides }: GatewayOptions) {
  const { node, randomBytes, snapshot, memory, telemetry, store, sealer, bus, audit, sessions } = storage
  const egress = { ...snapshot().egress, servers: overrides?.nameServers }

  const { epochOf } = sessions
  const login = await createLogin({ snapshot, store, epochOf, sealer, ...clocks, audit, log }, egress)
  const { fetchForKeys: fetchFor } = login
  const { nameOf } = telemetry
  const authenticator = createAuthenticator({ clock: wallClock, fetchFor, store, sealer, nameOf, log })

  const copyLimits = copyLimitsFor(memory.budgetBytes)
  const holders = createStreamHolders(bus)
  const streams = createStreams({ store, sealer, clock: steadyClock, randomBytes, log, copyLimits, holders })
  serveHeldStreams(bus, streams)
  const live = createLiveSessions(steadyClock, node, () => longestIdleMs(snapshot()), bus.leftOut)
  dropWithSessions(sessions, live, streams)
  return { egress, login, authenticator, streams, live }
}

const longestIdleMs = ({ limits: { sessionIdleMs, sessionMaxMs } }: Snapshot): number =>
  Math.min(sessionIdleMs, sessionMaxMs)
