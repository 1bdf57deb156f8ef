// A link to a server over HTTP in the session that another process had there.

import { openStreamable } from '../http/streamable-link.ts'
import { discard, type Link } from '../rpc/link.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Egress } from '../http/socket-pool.ts'
import type { LinkContext } from '../rpc/transport.ts'

/**
 * @returns undefined where none is kept, or the server has forgotten it: a new one has to be begun
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
  const goesOn = await link.goOn(signal).catch((error: unknown) => {
    discard(link, context.log)
    throw error
  })
  const { name: upstream, tenant } = definition
  const what = goesOn ? 'goes on in' : 'the upstream has forgotten'
  context.log.info({ upstream, tenant }, `${what} the session that another process had there`)
  if (goesOn) return link
  discard(link, context.log)
  await place?.end()
  return undefined
}
