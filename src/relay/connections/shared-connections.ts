// The connections of sessions that live here, lent to other processes, and connections into those of other processes.

import type { Log } from '../../observe/log.ts'
import type { Bus } from '../../session/bus/bus.ts'
import type { Clock } from '../../time/clock.ts'
import type { OwnLists } from '../catalog/own-lists.ts'
import { createBorrowedSessions } from './borrowed-sessions.ts'
import { createLentSessions } from './lent-sessions.ts'
import { createSessionConnections, type SessionConnectionsParts } from './session-connections.ts'

/** @param lists of sessions that see others than the rest */
export function createSharedConnections(
  own: Omit<SessionConnectionsParts, 'lent'>,
  bus: Bus,
  lists: Pick<OwnLists, 'has'>,
  { clock, log }: { readonly clock: Clock; readonly log: Log }
) {
  const { pool, live, clientInfo, events } = own
  const lent = createLentSessions(pool, bus, live, { clock, log })
  const connections = createSessionConnections({ ...own, lent })
  const borrowed = createBorrowedSessions({ pool, bus, live, clientInfo, clock, log, ask: events.serverRequest })
  lent.serve(connections.find, borrowed.all, lists)
  return { connections, borrowed, recall: lent.recall }
}
