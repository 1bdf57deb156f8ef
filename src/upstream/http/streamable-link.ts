// MCP over Streamable HTTP as a client of the legacy era (2025-11-25 basic/transports "Streamable HTTP"): joins the
// session, its calls and its end to one `Link`.

import { randomBytes, randomInt } from 'node:crypto'
import { createOpenTable } from '../../limits/open-table.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import { modernOnlyCodes } from '../../protocol/messages.ts'
import type { SessionSharing, UpstreamSession } from '../../protocol/seams.ts'
import { noReason, pause } from '../../time/clock.ts'
import { closedError, failureError, lostError, upstreamError } from '../rpc/errors.ts'
import { createSessionIds, maxStart } from '../rpc/request-ids.ts'
import { createRpcClient } from '../rpc/rpc-client.ts'
import { endMs, endSession, sessionOf, type SessionNames } from './post-queue.ts'
import { type HttpSession, StreamableCall, type StreamableCallContext } from './streamable-calls.ts'
import { createStreamableSession, type Continuation } from './streamable-session.ts'
import { createBorrowedSession } from './sessions/borrowed-session.ts'
import { createSessionReplay } from './sessions/session-replay.ts'
import { type Egress, socketClaimOf } from './socket-pool.ts'
import { openTarget, traceHeaderText } from './target.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { Link } from '../rpc/link.ts'
import type { LinkContext } from '../rpc/transport.ts'

export interface StreamableLink extends Link {
  /**
   * Takes up a session that another connection had, or has, in place of the handshake.
   * @returns all but `known`: the link is of no use
   * @throws GatewayError upstream_*
   */
  goOn(signal: AbortSignal): Promise<Continuation>
}

/** @param kept a stored session of an earlier connection */
export function openStreamable(
  definition: HttpDefinition,
  egress: Egress,
  link: LinkContext,
  kept?: UpstreamSession
): StreamableLink {
  const { name } = definition
  const { events, clock, log } = link
  const target = openTarget(definition, egress, link)
  const blank = sessionOf(target)
  const ending = new AbortController()
  const awaitingRenewal = new Set<number>()
  /** The link takes no new requests. */
  let retired = false
  let closing: Promise<void> | undefined
  /** The latest handshake. `late`: it was cancelled; resolves when its session id has come, or after `endMs`. */
  let handshake: { id: number; identified: Promise<void>; late: Promise<void> | undefined } | undefined
  const { place, loan } = link.handshake
  const series = { secret: kept?.secret ?? randomBytes(16).toString('base64url'), turn: (kept?.turn ?? -1) + 1 }
  const ids = createSessionIds(series, randomInt(maxStart))

  const rpc = createRpcClient({
    definition,
    link,
    nextId: ids.next,
    streamPerCall: true,
    revision: () => session.handshakeResult?.revision,
    transport: {
      request(id, body, request, client) {
        const claim = socketClaimOf(request, client)
        if (request.method === 'initialize') shakeHands(id, new StreamableCall(calls, id, blank, claim), body)
        else new StreamableCall(calls, id, session.current, claim, traceHeaderText(request)).post(body)
      },
      post: (body, lost) => session.queue.enqueue(body, ending.signal, lost),
      asked: (id) => calls.open.get(id)?.asked(),
      drop(id) {
        const call = calls.open.get(id)
        calls.open.delete(id)
        if (call === undefined || handshake?.id !== id) return call?.abort()
        // The server may have begun a session: its id is waited for, so that the session can be ended.
        handshake.late = Promise.race([handshake.identified, pause(clock, endMs)]).then(() => call.abort())
      }
    }
  })
  const replay = createSessionReplay(name, rpc, log)
  const endLater = (over: SessionNames): void => void endSession(definition, egress, link, over)
  const session =
    loan === undefined
      ? createStreamableSession(definition, target, link, { rpc, series, endLater }, replay, ending.signal, lost)
      : createBorrowedSession(definition, target, link, loan, rpc, ids)
  const calls: StreamableCallContext = {
    target,
    rpc,
    clock,
    open: createOpenTable(),
    renew(forgotten, id) {
      awaitingRenewal.add(id)
      return session.renew(forgotten).finally(() => awaitingRenewal.delete(id))
    },
    upgraded,
    refused(suspect, status) {
      if (!retired) session.refused(suspect, status)
    }
  }
  const sharing: SessionSharing = {
    id: () => session.current.id,
    hear: (message) => rpc.receive(message),
    isBusy: rpc.isBusy,
    series: ids.series,
    isIn: ids.isIn,
    async lend(forgotten) {
      // A session of a caller's own credential is not lent: the server may bind it to that credential.
      const lent = link.credential === undefined ? await session.lend(forgotten) : undefined
      const from = lent && ids.lend()
      return lent !== undefined && from !== undefined ? { ...lent, ids: from } : undefined
    }
  }

  function shakeHands(id: number, call: StreamableCall, body: JsonText): void {
    const { promise: identified, resolve } = Promise.withResolvers<void>()
    handshake = { id, identified, late: undefined }
    call.post(body, (sessionId) => {
      session.identify(sessionId, rpc.isOpen(id))
      resolve()
    })
  }

  /** There is no new session. Calls that wait for it were not executed; the outcome of the others is unknown. */
  function lost(reason: Error): void {
    if (ending.signal.aborted) return
    for (const id of awaitingRenewal) rpc.fail(id, reason)
    destroy(failureError(name, target.origin, { kind: 'broken', cause: reason }))
    if (!retired) events.closed(reason)
  }

  /** Detects that the server was upgraded: a legacy server checks neither the headers nor the envelope. */
  function upgraded(used: HttpSession, id: number, code: number): boolean {
    // A refused handshake goes to `connect`, which selects the era.
    if (used === blank || !modernOnlyCodes.has(code)) return false
    const what = 'was upgraded and speaks another revision now'
    const text = `Upstream ${name} ${what}; the request was not executed. Try again.`
    rpc.fail(id, upstreamError(name, 'upstream_unavailable', text))
    if (retired || ending.signal.aborted) return true
    retired = true
    session.stop()
    link.eraChanged?.()
    events.closed(lostError(name, `ended: the server ${what}`))
    return true
  }

  function destroy(reason: Error): void {
    if (ending.signal.aborted) return
    ending.abort(noReason)
    session.stop()
    rpc.end(reason)
    target.release()
  }

  async function finish(say: () => Promise<unknown>): Promise<void> {
    if (ending.signal.aborted) return
    session.stop()
    rpc.end(closedError(name))
    await Promise.all([say(), handshake?.late])
    ending.abort(noReason)
    target.release()
  }

  return {
    serverRequestsNameCall: true,
    hasSession: () => session.current.id !== undefined,
    isContinued: () => kept !== undefined && session.current.id === kept.id,
    sharing,
    rpc: { ...rpc, request: replay.request },
    transport: 'streamable-http',
    handshakeResult: () => session.handshakeResult,
    handshake: session.begin,
    async goOn(signal) {
      const taken = kept ?? loan?.session
      return taken === undefined ? 'gone' : await session.goOn(taken, signal)
    },
    close: () => (closing ??= finish(session.close)),
    ...((place ?? loan) && {
      leave: () => (closing ??= finish(session.leave)),
      stopListening: session.stop
    }),
    destroy
  }
}
