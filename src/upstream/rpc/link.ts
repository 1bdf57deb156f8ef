// A connection to an upstream before and after its handshake, as every transport makes it.

import {
  type Implementation,
  isLegacyRevision,
  isObject,
  type JsonObject,
  latestLegacy,
  legacyRevisions,
  type Revision,
  RpcError,
  type ServerCapabilities,
  type UpstreamName
} from '../../protocol/messages.ts'
import { firstOf } from '../../protocol/own-text.ts'
import type { Log } from '../../observe/log.ts'
import type { RpcClient } from './rpc-client.ts'
import { type HandshakeParams, noClient, type Transport, type Upstream } from '../../protocol/seams.ts'
import { printable } from './decode-json.ts'
import { upstreamError } from './errors.ts'

export interface Link {
  readonly rpc: RpcClient
  /** See `Upstream.transport`. */
  readonly transport: Transport
  /** The answer to the handshake; to the latest one, where the transport had to repeat it. */
  handshakeResult(): HandshakeResult | undefined
  /** See `Upstream.serverRequestsNameCall`. */
  readonly serverRequestsNameCall?: boolean
  /** See `Upstream.hasSession`. */
  hasSession?(): boolean
  /** See `Upstream.isContinued`. */
  isContinued?(): boolean
  /** See `Upstream.sharing`. */
  readonly sharing?: Upstream['sharing']
  /** Does the handshake. Once. */
  handshake(signal: AbortSignal): Promise<HandshakeResult>
  close(): Promise<void>
  /** See `Upstream.leave`. */
  readonly leave?: Upstream['leave']
  /** See `Upstream.stopListening`. */
  readonly stopListening?: Upstream['stopListening']
  destroy(reason: Error): void
}

export interface HandshakeResult {
  readonly revision: Revision
  readonly capabilities: ServerCapabilities
  readonly serverInfo: Implementation
  readonly instructions: string | undefined
  /** For how long a server of 2026-07-28 says that this holds. */
  readonly ttlMs?: number
  /** A server of 2026-07-28 says that it has older revisions too. */
  readonly namesLegacy?: boolean
}

export async function withHandshake(link: Link, log: Log, signal: AbortSignal): Promise<Link> {
  try {
    await link.handshake(signal)
    return link
  } catch (error) {
    discard(link, log)
    throw error
  }
}

/** In the background. Idempotent. */
export function discard(link: Link, log: Log): void {
  link.close().catch((err: unknown) => log.debug({ err }, 'closing a failed connection failed'))
}

/**
 * The handshake of the legacy era (2025-11-25 basic/lifecycle "Initialization"). The link sends
 * `notifications/initialized` when its transport is ready.
 * @throws GatewayError upstream_unavailable: the server refuses; upstream_protocol: it names no legacy revision
 */
export async function initialize(
  rpc: RpcClient,
  name: UpstreamName,
  { capabilities, clientInfo }: HandshakeParams,
  signal: AbortSignal
): Promise<HandshakeResult> {
  const params = { protocolVersion: latestLegacy, capabilities, clientInfo }
  const result = await rpc.request({ method: 'initialize', params }, noClient, signal).catch((error: unknown) => {
    if (!(error instanceof RpcError)) throw error
    throw upstreamError(
      name,
      'upstream_unavailable',
      `Upstream ${name} refused to initialize: ${printable(error.message, 300)} (${error.error.code}).`,
      error
    )
  })
  const { protocolVersion } = result
  if (!isLegacyRevision(protocolVersion)) {
    const offered = typeof protocolVersion === 'string' ? JSON.stringify(printable(protocolVersion, 40)) : 'no revision'
    throw upstreamError(
      name,
      'upstream_protocol',
      `Upstream ${name} answered initialize with ${offered}; the gateway speaks ${legacyRevisions.join(', ')}.`
    )
  }
  return handshakeResultOf(name, protocolVersion, result, result['serverInfo'])
}

/** @param serverInfos the first that has the shape counts */
export function handshakeResultOf<R extends Revision>(
  name: UpstreamName,
  revision: R,
  { capabilities, instructions }: JsonObject,
  ...serverInfos: readonly unknown[]
): HandshakeResult & { readonly revision: R } {
  const serverInfo = serverInfos.find(
    (each) => isObject(each) && typeof each['name'] === 'string' && typeof each['version'] === 'string'
  )
  return {
    revision,
    capabilities: isObject(capabilities) ? cappedCapabilities(capabilities) : {},
    serverInfo: shortened((serverInfo as Implementation | undefined) ?? { name, version: 'unknown' }),
    instructions: typeof instructions === 'string' ? cappedInstructions(instructions) : undefined
  }
}

/** Kept with each connection and listing, merged for each endpoint, and told to each client. */
const maxCapabilityLength = 4_096
const maxCapabilities = 32
const maxInstructionsLength = 16_384
const maxServerInfoLength = 256

/** What a server calls itself; icons and the like are not kept. */
function shortened({ name, version, title }: Implementation): Implementation {
  const cut = (text: string): string => firstOf(text, maxServerInfoLength)
  return { name: cut(name), version: cut(version), ...(typeof title === 'string' && { title: cut(title) }) }
}

/** Without the capabilities that are larger than any that MCP knows: a client cannot miss what it cannot know. */
function cappedCapabilities(capabilities: JsonObject): JsonObject {
  const fitting = Object.entries(capabilities).filter(
    ([key, value]) => key.length + JSON.stringify(value).length <= maxCapabilityLength
  )
  return Object.fromEntries(fitting.slice(0, maxCapabilities))
}

const cappedInstructions = (text: string): string =>
  text.length > maxInstructionsLength ? `${firstOf(text, maxInstructionsLength)}…` : text
