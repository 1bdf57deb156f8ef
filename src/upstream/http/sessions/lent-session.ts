// Checks whether a server still knows a session that several connections use, and selects the data of a session that
// another process gets with the loan.

import type { UpstreamSession } from '../../../protocol/seams.ts'
import type { HandshakeResult } from '../../rpc/link.ts'
import type { HttpSession } from '../streamable-calls.ts'

/**
 * Checks a session with a ping from this process. Some servers answer 400 instead of 404 once they have forgotten a
 * session. An error that another process got proves nothing, since a load balancer may have sent its request to an
 * instance that does not know the session.
 * @param pingRefusal the status with which the server refuses a ping in the session; undefined if it answers
 * @param forgotten called if the status is 404, or 400, which does not prove that the session is gone
 * @returns the check; simultaneous calls share one ping. Never rejects
 */
export function createSessionCheck(
  pingRefusal: (suspect: HttpSession) => Promise<number | undefined>,
  forgotten: (suspect: HttpSession, status: number) => void
) {
  const checking = new Map<HttpSession, Promise<void>>()

  async function check(suspect: HttpSession): Promise<void> {
    const status = await pingRefusal(suspect)
    checking.delete(suspect)
    if (status === 400 || status === 404) forgotten(suspect, status)
  }

  return (suspect: HttpSession): Promise<void> => {
    const running = checking.get(suspect) ?? check(suspect)
    checking.set(suspect, running)
    return running
  }
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
