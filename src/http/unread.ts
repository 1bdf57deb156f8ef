// What a session has asked for and does not read waits in memory until its connection is given up. Up to a limit; then nothing more is done
// for it before it has read.

import type { ServerResponse } from 'node:http'
import { GatewayError } from '../protocol/errors.ts'
import type { LiveSession } from '../session/live.ts'

/** Less than this is the matter of the kernel and of a moment. */
export const unreadBytes = 65_536
/** Of one session, over all its connections. */
export const maxUnreadBytes = 32 * 1024 * 1024

/** Counts what a connection still has to take, until it is closed. */
export function countUnread (session: LiveSession, raw: ServerResponse, unread: () => number): void {
  session.unread.add(unread)
  raw.once('close', () => session.unread.delete(unread))
}

/** @throws GatewayError too_many */
export function checkUnread (session: LiveSession): void {
  let sum = 0
  for (const unread of session.unread) sum += unread()
  if (sum > maxUnreadBytes) throw new GatewayError('too_many', `More than ${maxUnreadBytes / 1024 / 1024} MiB of answers to this session wait to be read. Read them before asking for more.`)
}
