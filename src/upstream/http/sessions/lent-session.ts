// What connections in one session at a server need to know of it: whether the server still knows it, and its names.

import type { UpstreamSession } from '../../../protocol/seams.ts'
import type { HandshakeResult } from '../../rpc/link.ts'
import type { HttpSession } from '../streamable-calls.ts'

/**
 * Some servers answer 400, not 404, once they have forgotten a session.
 * @param pingRefusal the status with which the server refuses a ping in it
 * @param forgotten called where that is 400, after which it may have it still, or 404
 */
export function createSessionCheck(
  pingRefusal: (suspect: HttpSession) => Promise<number | undefined>,
  forgotten: (suspect: HttpSession, status: number) => void
) {
  let isChecking = false
  return (suspect: HttpSession): void => {
    if (isChecking) return
    isChecking = true
    void pingRefusal(suspect).then((status) => {
      isChecking = false
      if (status === 400 || status === 404) forgotten(suspect, status)
    })
  }
}

/** Without what the client of another connection is not told again. */
export function lentOf(
  { current: { id }, handshakeResult }: { current: HttpSession; handshakeResult: HandshakeResult | undefined },
  series: Pick<UpstreamSession, 'secret' | 'turn'>
): UpstreamSession | undefined {
  if (id === undefined || handshakeResult === undefined) return undefined
  const { revision, capabilities, serverInfo } = handshakeResult
  return { id, revision, capabilities, serverInfo, instructions: undefined, ...series }
}
