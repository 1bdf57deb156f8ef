// A session at a server that several connections use: the check whether the server still knows it, and its data as they
// are lent to another process.

import type { UpstreamSession } from '../../../protocol/seams.ts'
import type { HandshakeResult } from '../../rpc/link.ts'
import type { HttpSession } from '../streamable-calls.ts'

/**
 * Some servers answer 400, not 404, once they have forgotten a session. What another process is answered proves
 * nothing, since a balancer may send its requests to where the session is not known.
 * @param pingRefusal the status with which the server refuses a ping in it
 * @param forgotten called where that is 400, after which it may have it still, or 404
 * @returns asks, once for all who want to know at the same time. Never rejects
 */
export function createSessionCheck(
  pingRefusal: (suspect: HttpSession) => Promise<number | undefined>,
  forgotten: (suspect: HttpSession, status: number) => void
) {
  let checking: Promise<void> | undefined

  async function check(suspect: HttpSession): Promise<void> {
    const status = await pingRefusal(suspect)
    checking = undefined
    if (status === 400 || status === 404) forgotten(suspect, status)
  }

  return (suspect: HttpSession): Promise<void> => (checking ??= check(suspect))
}

/** The data of a session that are lent: without the instructions, which the borrower's client has already. */
export function lentOf(
  { current: { id }, handshakeResult }: { current: HttpSession; handshakeResult: HandshakeResult | undefined },
  series: Pick<UpstreamSession, 'secret' | 'turn'>
): UpstreamSession | undefined {
  if (id === undefined || handshakeResult === undefined) return undefined
  const { revision, capabilities, serverInfo } = handshakeResult
  return { id, revision, capabilities, serverInfo, instructions: undefined, ...series }
}
