// A session that another process has at a server over HTTP, as a connection is in it that only sends requests: without
// a handshake, a GET stream and an end of its own.

import type { UpstreamDefinition } from '../../../config/snapshot.ts'
import type { SessionLoan } from '../../../protocol/seams.ts'
import { settledWithin } from '../../../time/clock.ts'
import type { HandshakeResult } from '../../rpc/link.ts'
import type { SessionIds } from '../../rpc/request-ids.ts'
import type { RpcClient } from '../../rpc/rpc-client.ts'
import type { LinkContext } from '../../rpc/transport.ts'
import { createPostQueue, endMs, postIn, sessionOf } from '../post-queue.ts'
import type { HttpSession } from '../streamable-calls.ts'
import type { createStreamableSession } from '../streamable-session.ts'
import type { HttpTarget } from '../target.ts'
import { notBegunAgain } from './session-errors.ts'

/** @param lost there is no new session in place of the forgotten one */
export function createBorrowedSession(
  { name }: UpstreamDefinition,
  target: HttpTarget,
  { clock, log }: LinkContext,
  { session: lent, renew: renewed }: SessionLoan,
  rpc: RpcClient,
  ids: Pick<SessionIds, 'use' | 'end'>,
  lost: (reason: Error) => void
): ReturnType<typeof createStreamableSession> {
  ids.use(lent)
  const state = { current: sessionOf(target, lent), handshakeResult: lent as HandshakeResult | undefined }
  const queue = createPostQueue(target, log, (body, signal) => postIn(target, state.current, body, signal))
  let renewal: Promise<void> | undefined

  /** Whoever has the session begins the new one, once for all that are in it. */
  async function begunAgain(id: string): Promise<void> {
    try {
      const next = await renewed(id)
      if (next === undefined) throw new Error('nobody has a session there any more')
      ids.use(next)
      state.handshakeResult = next
      state.current = sessionOf(target, next)
    } catch (cause) {
      const error = notBegunAgain(name, '', cause)
      lost(error)
      throw error
    }
    // The new session knows nothing of what the old one had asked.
    rpc.withdrawServerRequests('the server forgot its session')
  }

  const drained = (): Promise<unknown> => settledWithin(clock, endMs, queue.drained())
  const noHandshake = (): never => {
    throw new Error('a connection in the session of another one does no handshake')
  }

  return Object.assign(state, {
    begin: noHandshake,
    goOn: noHandshake,
    identify() {},
    lend: () => Promise.resolve(undefined),
    async renew(forgotten: HttpSession): Promise<HttpSession> {
      if (renewal !== undefined || state.current === forgotten)
        await (renewal ??= begunAgain(forgotten.id ?? '').finally(() => {
          renewal = undefined
        }))
      return state.current
    },
    /** Whoever has the session finds out whether its server still knows it, by the next call, which goes there. */
    check: ids.end,
    queue,
    stop() {},
    leave: drained,
    close: async () => void (await drained())
  })
}
