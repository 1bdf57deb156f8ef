// Sends requests in a session that another gateway process has at a server over HTTP and lends to this one. This side
// does no handshake, opens no GET stream and sends no DELETE.

import type { UpstreamDefinition } from '../../../config/snapshot.ts'
import type { SessionLoan } from '../../../protocol/seams.ts'
import { deadline, settledWithin } from '../../../time/clock.ts'
import type { HandshakeResult } from '../../rpc/link.ts'
import type { SessionIds } from '../../rpc/request-ids.ts'
import type { RpcClient } from '../../rpc/rpc-client.ts'
import type { LinkContext } from '../../rpc/transport.ts'
import { askForSession, createPostQueue, endMs, postIn, sessionOf } from '../post-queue.ts'
import type { HttpSession } from '../streamable-calls.ts'
import type { createStreamableSession } from '../streamable-session.ts'
import type { HttpTarget } from '../target.ts'
import { notKnownHere } from './session-errors.ts'

/**
 * Statuses with which a server may refuse a process that did not begin the session; 404 counts only when the renewed
 * session is refused too.
 */
const unwelcome: ReadonlySet<number> = new Set([400, 401, 403, 404, 409, 421])

export function createBorrowedSession(
  { name, connectMs }: UpstreamDefinition,
  target: HttpTarget,
  { clock, log }: LinkContext,
  { session: lent, renew: renewed, refused }: SessionLoan,
  rpc: RpcClient,
  ids: Pick<SessionIds, 'use' | 'end'>
): ReturnType<typeof createStreamableSession> {
  ids.use(lent)
  const state = { current: sessionOf(target, lent), handshakeResult: lent as HandshakeResult | undefined }
  const queue = createPostQueue(target, log, (body, signal) => postIn(target, state.current, body, signal))
  let renewal: Promise<void> | undefined

  /** Takes no new calls. Running calls continue, since the answer to one call says nothing about the others. */
  function end(id: string): void {
    ids.end()
    refused(id)
  }

  /** Asks the lender for a new session. The lender checks the old one, and begins one new session for all borrowers. */
  async function begunAgain(id: string): Promise<void> {
    try {
      const next = await renewed(id)
      if (next === undefined) throw new Error('nobody has a session there any more')
      ids.use(next)
      state.handshakeResult = next
      state.current = sessionOf(target, next)
    } catch (cause) {
      end(id)
      throw notKnownHere(name, cause)
    }
    // The server forgot its own requests together with the session, so their answers must not go to the new one.
    rpc.withdrawServerRequests('the server forgot its session')
  }

  const drained = (): Promise<unknown> => settledWithin(clock, endMs, queue.drained())
  const noHandshake = (): never => {
    throw new Error('a connection in the session of another one does no handshake')
  }

  return Object.assign(state, {
    begin: noHandshake,
    /** Asks the server, before any call, whether it accepts requests of the session from this process. */
    goOn: (_lent: unknown, signal: AbortSignal) =>
      askForSession(target, state.current.postHeaders, clock, deadline(clock, connectMs / 2, signal)),
    identify() {},
    lend: () => Promise.resolve(undefined),
    async renew(forgotten: HttpSession): Promise<HttpSession> {
      if (renewal !== undefined || state.current === forgotten)
        await (renewal ??= begunAgain(forgotten.id ?? '').finally(() => {
          renewal = undefined
        }))
      return state.current
    },
    /** Ends the loan after a refusal: the next call goes to the lender, which checks whether the session exists. */
    refused(suspect: HttpSession, status: number): void {
      if (unwelcome.has(status) && state.current === suspect) end(suspect.id ?? '')
    },
    queue,
    stop() {},
    leave: drained,
    close: async () => void (await drained())
  })
}
