// What the end of a session says to those who wait for something of it, and how it is carried through.

import { LRUCache } from 'lru-cache'
import { GatewayError } from '../protocol/messages.ts'
import type { LiveSessions } from './live-sessions.ts'
import type { Session, Sessions } from './sessions.ts'
import type { Streams } from './streams.ts'

/** A session that its client has left to expire. */
export type LeftSession = Session & { readonly usedAt: number }

// Made once: most sessions end without a call or a request that would hear of it, and an error with its stack costs
// more than all else at their end.
export const callOfEndedSession = new GatewayError(
  'session_unknown',
  'The session ended before the answer was there. Whether the call took effect is unknown.',
  { data: { outcome: 'unknown' } }
)
export const endOfSession = endedSession()

export function endedSession(): GatewayError {
  return new GatewayError('session_unknown', 'The session of the client ended.')
}

export const endedMeanwhile = (): GatewayError =>
  new GatewayError('session_unknown', 'The session ended meanwhile. Send a new initialize without Mcp-Session-Id.')

/** Runs every step, even where one throws: the others release connections and files. @throws the first failure */
export function runAll(steps: ReadonlyArray<() => void>): void {
  const failures: unknown[] = []
  for (const step of steps) {
    try {
      step()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

/** Sessions whose end is remembered. */
const maxEnded = 10_000

/** Forgets the streams and the other data of a session when it ends: whoever read it before does not bring it back. */
export function dropWithSessions(
  sessions: Pick<Sessions, 'onEnded'>,
  live: Pick<LiveSessions, 'drop' | 'onCreate' | 'onDrop'>,
  streams: Pick<Streams, 'drop'>
): void {
  const ended = new LRUCache<string, true>({ max: maxEnded })
  sessions.onEnded((key) => {
    ended.set(key, true)
    // Before `live.drop`, which may finish streams: the copy of a finished stream in the store would not be deleted.
    streams.drop(key)
    live.drop(key)
  })
  live.onCreate(({ key }) => {
    if (!ended.has(key)) return
    live.drop(key)
    throw endedMeanwhile()
  })
  live.onDrop((key) => streams.drop(key))
}
