// A link to a server over HTTP in the session that another process had there.

import { openStreamable } from '../http/streamable-link.ts'
import { discard, type Link } from '../rpc/link.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Egress } from '../http/socket-pool.ts'
import type { LinkContext } from '../rpc/transport.ts'

/** Of processes that have a session one after the other, each has ids of its own for so many (request-ids.ts). */
const maxTurns = 127

const reasons = {
  unknown: 'the upstream does not know it any more',
  unclear: 'the upstream refuses it',
  held: 'another process has it, or it could not be taken over'
}

/**
 * @returns undefined where none is kept, or it cannot be gone on with: a new one has to be begun
 * @throws GatewayError upstream_*: the server cannot be asked now
 */
export async function continuedLink(
  definition: UpstreamDefinition,
  egress: Egress,
  context: LinkContext,
  signal: AbortSignal
): Promise<Link | undefined> {
  const { place } = context.handshake
  if (definition.type !== 'http') return undefined
  const kept = await place?.load()
  if (kept === undefined) return undefined
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
  // Where it is not known to be gone, it is replaced when there is a new one.
  if (outcome === 'unknown') await place?.end()
  return undefined

  function given(error: unknown): never {
    discard(link, context.log)
    throw error
  }
}
