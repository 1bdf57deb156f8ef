// What a client has asked for and does not read waits in memory: beyond a size its next requests are refused, beyond a
// time its connection is closed.

import { GatewayError } from '../protocol/messages.ts'
import type { LiveSession } from '../session/live-sessions.ts'
import { timeoutSignal } from '../time/clock.ts'
import type { ClientReply } from './reply.ts'

/** Smaller backlogs are left to the kernel. */
export const smallBacklogBytes = 65_536
/** The most unread bytes of one session or caller, over all its connections. */
export const maxBacklogBytes = 32 * 1024 * 1024
/** The longest time in which a connection may make no progress, in milliseconds. */
export const stalledMs = 15_000
/** A reader slower than this is closed in the end: what waits for it is memory that others need. */
const slowestBytesPerSecond = 65_536

/** Counts a connection's backlog into that of its session, until it is closed. */
export function trackBacklog(session: LiveSession, raw: ClientReply, backlogBytes: () => number): void {
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
export function refuseBacklog(bytes: number, whose: 'session' | 'caller'): void {
  if (bytes <= maxBacklogBytes) return
  throw new GatewayError(
    'too_many',
    `More than ${maxBacklogBytes / 1024 / 1024} MiB of answers to this ${whose} wait to be read. Read them before ` +
      'asking for more.'
  )
}

/**
 * Closes a connection that reads nothing of its backlog, or not fast enough. Node sees progress where the queue is not
 * what it was when it was written, so the time may pass once in vain; it begins again with every progress.
 */
export function closeIfStalled(raw: ClientReply): void {
  if (raw.writableLength <= smallBacklogBytes) return
  const close = (): void => void raw.destroy()
  raw.setTimeout(stalledMs, close)
  raw.once('close', closeIfSlow(raw, close))
}

/** @param close runs when the backlog should have been read. @returns stops the time; idempotent */
export function closeIfSlow({ writableLength }: ClientReply, close: () => void): () => void {
  const late = timeoutSignal(stalledMs + Math.ceil((writableLength / slowestBytesPerSecond) * 1000))
  late.addEventListener('abort', close, { once: true })
  return () => late.removeEventListener('abort', close)
}
