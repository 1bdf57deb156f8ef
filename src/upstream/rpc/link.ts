// The interface `Link`: a connection to an upstream before and after its handshake, which every transport implements.

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
import { jsonSizeOf } from '../../limits/limits.ts'
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
  /** The result of the handshake; of the latest one if the transport had to repeat it. */
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
  /** How long the answer to `server/discover` is valid, in milliseconds (2026-07-28). */
  readonly ttlMs?: number
  /** Whether a server of 2026-07-28 lists legacy revisions too. */
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

/** Closes a link in the background. Idempotent. */
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

/** @param serverInfos candidates: the first with a name and a version is used */
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

/** The longest JSON of a capability: capabilities are stored for each connection and sent to each client. */
const maxCapabilityLength = 4_096
const maxCapabilities = 32
/** The most bytes of all of them, as `jsonSizeOf` counts them. */
const maxCapabilityBytes = 65_536
const maxInstructionsLength = 16_384
const maxServerInfoLength = 256

/** The name, version and title of a server; icons and other members are dropped. */
function shortened({ name, version, title }: Implementation): Implementation {
  const cut = (text: string): string => firstOf(text, maxServerInfoLength)
  return { name: cut(name), version: cut(version), ...(typeof title === 'string' && { title: cut(title) }) }
}

/** Drops capabilities that are larger than any that MCP defines. */
function cappedCapabilities(capabilities: JsonObject): JsonObject {
  const fitting = Object.entries(capabilities).filter(
    ([key, value]) => key.length + JSON.stringify(value).length <= maxCapabilityLength
  )
  let left = maxCapabilityBytes
  const kept = fitting.slice(0, maxCapabilities).filter((each) => {
    const bytes = jsonSizeOf(each)
    const fits = bytes <= left
    if (fits) left -= bytes
    return fits
  })
  return Object.fromEntries(kept)
}

const cappedInstructions = (text: string): string =>
  text.length > maxInstructionsLength ? `${firstOf(text, maxInstructionsLength)}…` : text
