// The handshake of the legacy era, over any transport.

import {
  type Implementation,
  isLegacyRevision,
  isObject,
  latestLegacy,
  legacyRevisions,
  RpcError,
  type UpstreamName
} from '../../protocol/messages.ts'
import { type HandshakeParams, noClient } from '../../protocol/seams.ts'
import { printable } from './decode-json.ts'
import { upstreamError } from './errors.ts'
import type { HandshakeResult } from './link.ts'
import type { RpcClient } from './rpc-client.ts'

/**
 * 2025-11-25 basic/lifecycle "Initialization". The link sends `notifications/initialized` when its transport is ready.
 * @throws GatewayError upstream_unavailable: the server refuses; upstream_protocol: it names no legacy revision
 */
export async function initialize(
  rpc: RpcClient,
  name: UpstreamName,
  handshake: HandshakeParams,
  signal: AbortSignal
): Promise<HandshakeResult> {
  const params = {
    protocolVersion: latestLegacy,
    capabilities: handshake.capabilities,
    clientInfo: handshake.clientInfo
  }
  const result = await rpc.request({ method: 'initialize', params }, noClient, signal).catch((error: unknown) => {
    if (!(error instanceof RpcError)) throw error
    throw upstreamError(
      name,
      'upstream_unavailable',
      `Upstream ${name} refused to initialize: ${printable(error.message, 300)} (${error.error.code}).`,
      error
    )
  })
  const { protocolVersion, capabilities, serverInfo, instructions } = result
  if (!isLegacyRevision(protocolVersion)) {
    const offered = typeof protocolVersion === 'string' ? JSON.stringify(printable(protocolVersion, 40)) : 'no revision'
    throw upstreamError(
      name,
      'upstream_protocol',
      `Upstream ${name} answered initialize with ${offered}; the gateway speaks ${legacyRevisions.join(', ')}.`
    )
  }
  return {
    revision: protocolVersion,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: serverInfoIn(name, serverInfo),
    instructions: typeof instructions === 'string' ? instructions : undefined
  }
}

/** The first of the candidates that has the shape. */
export function serverInfoIn(name: UpstreamName, ...candidates: readonly unknown[]): Implementation {
  const found = candidates.find(
    (each) => isObject(each) && typeof each['name'] === 'string' && typeof each['version'] === 'string'
  )
  return (found as Implementation | undefined) ?? { name, version: 'unknown' }
}
