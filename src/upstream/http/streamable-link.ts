// MCP over Streamable HTTP as a client of the legacy era (2025-11-25 basic/transports "Streamable HTTP"): puts together
// the session, its calls and its end.

import { GatewayError, modernOnlyCodes } from '../../protocol/messages.ts'
import { closedError, failureError, lostError } from '../rpc/errors.ts'
import { createRpcClient } from '../rpc/rpc-client.ts'
import { createSessionReplay } from './session-replay.ts'
import { createStreamableCalls, type HttpSession } from './streamable-calls.ts'
import { blankSession, createStreamableSession } from './streamable-session.ts'
import { openTarget } from './target.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { Link } from '../rpc/link.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { Egress } from './egress.ts'

export function openStreamable(definition: HttpDefinition, egress: Egress, link: LinkContext): Link {
  const { name } = definition
  const { handshake, events, clock, log } = link
  const target = openTarget(definition, egress, handshake.clientInfo)
  const blank = blankSession(target)
  const ending = new AbortController()
  const awaitingRenewal = new Set<number>()
  /** It takes no new requests. */
  let retired = false
  let closing: Promise<void> | undefined

  const rpc = createRpcClient({
    definition,
    link,
    revision: () => session.handshakeResult?.revision,
    transport: {
      request(id, body, { method }) {
        if (method === 'initialize') calls.send(id, body, blank, session.identify)
        else calls.send(id, body, session.current)
      },
      post: (body, lost) => session.queue.enqueue(body, ending.signal, lost),
      drop: (id) => calls.drop(id)
    }
  })
  const replay = createSessionReplay(name, rpc, log)
  const session = createStreamableSession({ definition, target, link, rpc, replay, ended: ending.signal, lost })
  const calls = createStreamableCalls({
    target,
    rpc,
    clock,
    session: {
      get current() {
        return session.current
      },
      renew(forgotten, id) {
        awaitingRenewal.add(id)
        return session.renew(forgotten).finally(() => awaitingRenewal.delete(id))
      },
      upgraded,
      check(suspect) {
        if (!retired) session.check(suspect)
      }
    }
  })

  /** The session cannot be had again. Calls that wait for it were not executed; of the others nobody knows. */
  function lost(reason: Error): void {
    if (ending.signal.aborted) return
    for (const id of awaitingRenewal) rpc.fail(id, reason)
    destroy(failureError(name, target.origin, { kind: 'broken', cause: reason }))
    if (!retired) events.closed(reason)
  }

  /**
   * These errors, with this status, come of the headers and the envelope alone, which a server of this era does not
   * look for.
   */
  function upgraded(used: HttpSession, id: number, code: number): boolean {
    // The refusal of the handshake is for `connect`, which finds out the era.
    if (used === blank || !modernOnlyCodes.has(code)) return false
    const what = 'was upgraded and speaks another revision now'
    rpc.fail(
      id,
      new GatewayError('upstream_unavailable', `Upstream ${name} ${what}; the request was not executed. Try again.`, {
        data: { upstream: name }
      })
    )
    if (retired || ending.signal.aborted) return true
    retired = true
    session.stop()
    link.eraChanged?.()
    events.closed(lostError(name, `ended: the server ${what}`))
    return true
  }

  function destroy(reason: Error): void {
    if (ending.signal.aborted) return
    ending.abort()
    session.stop()
    rpc.end(reason)
    target.release()
  }

  async function close(): Promise<void> {
    if (ending.signal.aborted) return
    session.stop()
    rpc.end(closedError(name))
    await session.close()
    ending.abort()
    target.release()
  }

  return {
    serverRequestsNameCall: true,
    rpc: { ...rpc, request: replay.request },
    get handshakeResult() {
      return session.handshakeResult
    },
    handshake: session.begin,
    close: () => (closing ??= close()),
    destroy
  }
}
