// Back-pressure: what a session has asked for and does not read waits in memory. Beyond a limit its next requests are
// refused until it has read; beyond a time its connection is closed.

import type { ServerResponse } from 'node:http'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { EndpointContext } from '../relay/call/call.ts'
import type { LiveSession } from '../session/live-sessions.ts'

/** Smaller backlogs are left to the kernel. */
export const smallBacklogBytes = 65_536
/** Of one session or caller, over all its connections. */
export const maxBacklogBytes = 32 * 1024 * 1024

/** How long a connection may make no progress. */
export const stalledMs = 15_000

/** Counts a connection's backlog into that of its session, until it is closed. */
export function trackBacklog(session: LiveSession, raw: ServerResponse, backlogBytes: () => number): void {
  session.unread.add(backlogBytes)
  raw.once('close', () => session.unread.delete(backlogBytes))
}

/** @throws GatewayError too_many */
export function refuseOverBacklog(session: LiveSession): void {
  let sum = 0
  for (const backlogBytes of session.unread) sum += backlogBytes()
  refuseBacklog(sum, 'session')
}

/** @throws GatewayError too_many */
export function refuseCall(callsInFlight: number, maxCalls: number, whose: 'session' | 'caller'): void {
  if (callsInFlight < maxCalls) return
  throw new GatewayError(
    'too_many',
    `More than ${maxCalls} requests of this ${whose} are in flight (limits.callsPerSession). ` +
      'Wait for answers before sending more.'
  )
}

/** @throws GatewayError too_many */
export function refuseBacklog(bytes: number, whose: 'session' | 'caller'): void {
  if (bytes <= maxBacklogBytes) return
  throw new GatewayError(
    'too_many',
    `More than ${maxBacklogBytes / 1024 / 1024} MiB of answers to this ${whose} wait to be read. Read them before ` +
      'asking for more.'
  )
}

/**
 * Closes a connection that reads nothing of its backlog. Node sees progress where the queue is not what it was when it
 * was written, so the time may pass once in vain; it begins again with every progress.
 */
export function closeIfStalled(raw: ServerResponse): void {
  if (raw.writableLength > smallBacklogBytes) raw.setTimeout(stalledMs, () => raw.destroy())
}

export function logSlowReader(log: Log, { tenant, endpoint }: EndpointContext): void {
  log.warn({ tenant: tenant.id, endpoint: endpoint.name }, 'a client did not read its stream; closed')
}
