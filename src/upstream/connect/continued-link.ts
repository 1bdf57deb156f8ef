// Opens a link in an existing session at a server over HTTP: one that another process stored when it stopped (kept), or
// one that another process still has and lends.

import { endSession } from '../http/post-queue.ts'
import { openStreamable } from '../http/streamable-link.ts'
import { upstreamError } from '../rpc/errors.ts'
import { discard, type Link } from '../rpc/link.ts'
import type { HttpDefinition, UpstreamDefinition } from '../../config/snapshot.ts'
import type { SessionLoan } from '../../protocol/seams.ts'
import type { Egress } from '../http/socket-pool.ts'
import type { LinkContext } from '../rpc/transport.ts'

/**
 * How many processes may use one session one after the other: request-ids.ts has a range of ids for each of so many.
 */
const maxTurns = 127

const reasons = {
  gone: 'the upstream does not know it any more',
  unknown: 'the upstream does not answer for it',
  unclear: 'the upstream refuses it',
  held: 'another process has it, or it could not be taken over'
}

/**
 * A server, or a balancer in front of it, may know the session only where it comes from the process that began it: that
 * is found out before any call.
 * @throws GatewayError upstream_*
 */
async function borrowedLink(
  definition: HttpDefinition,
  egress: Egress,
  context: LinkContext,
  loan: SessionLoan,
  signal: AbortSignal
): Promise<Link> {
  const link = openStreamable(definition, egress, context)
  const outcome = await link.goOn(signal).catch((error: unknown) => {
    discard(link, context.log)
    throw error
  })
  if (outcome === 'known') return link
  discard(link, context.log)
  // Where the server did forget it, another one is lent the next time.
  if (outcome === 'gone') loan.refused(loan.session.id)
  const what = `does not take calls in a session of another process: ${reasons[outcome]}`
  throw upstreamError(definition.name, 'upstream_unavailable', `Upstream ${definition.name} ${what}.`)
}

/**
 * @param begin opens a link in a new session
 * @returns a link in the session that is lent or kept; in a new session where the kept one cannot be used
 * @throws GatewayError upstream_*
 */
export async function continuedLink(
  definition: UpstreamDefinition,
  egress: Egress,
  context: LinkContext,
  signal: AbortSignal,
  begin: () => Promise<Link>
): Promise<Link> {
  const { place, loan } = context.handshake
  if (definition.type === 'http' && loan !== undefined)
    return await borrowedLink(definition, egress, context, loan, signal)
  if (definition.type !== 'http' || place === undefined) return await begin()
  const kept = await place.load()
  if (kept === undefined) return await begin()
  const link = openStreamable(definition, egress, context, kept)
  const outcome = kept.turn + 1 < maxTurns ? await link.goOn(signal).catch(given) : 'held'
  const { name: upstream, tenant } = definition
  if (outcome === 'known') {
    context.log.info({ upstream, tenant }, 'goes on in the session that another process had there')
    return link
  }
  context.log.info(
    { upstream, tenant, reason: reasons[outcome] },
    'a new session is begun in place of the one that another process had there'
  )
  discard(link, context.log)
  const end = async (): Promise<void> => {
    if ((await place.end(kept.id)) && outcome !== 'gone') void endSession(definition, egress, context, kept)
  }
  // A session that the server may still accept is ended only once there is another one.
  const mayBeWanted = outcome === 'unclear' || outcome === 'held'
  if (!mayBeWanted) await end()
  const begun = await begin()
  if (mayBeWanted) void end()
  return begun

  function given(error: unknown): never {
    discard(link, context.log)
    throw error
  }
}
