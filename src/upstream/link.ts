// A connection before its handshake, and the handshake of the legacy era. What every transport hands to `connect.ts`.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import { isLegacyRevision, latestLegacy, legacyRevisions } from '../protocol/revisions.ts'
import { printable } from './decode.ts'
import { nobody } from './exchange.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import type { Implementation, ServerCapabilities } from '../protocol/messages.ts'
import type { Revision } from '../protocol/revisions.ts'
import type { Handshake, UpstreamEvents } from '../protocol/seams.ts'
import type { Log } from '../observe/log.ts'
import type { AskRoom } from './ask-room.ts'
import type { Clock } from './clock.ts'
import type { Complaints } from './complaints.ts'
import type { Exchange } from './exchange.ts'
import type { Use } from './process.ts'

export interface Link {
  readonly exchange: Exchange
  /** The handshake's answer; the newest one, where the transport had to repeat the handshake. */
  readonly greeting: Greeting | undefined
  /** See `Upstream.namesCalls`. */
  readonly namesCalls?: boolean
  /** Does the handshake. Once. */
  greet (signal: AbortSignal): Promise<Greeting>
  close (): Promise<void>
  destroy (reason: Error): void
}

/** The link, once it has shaken hands; one that fails to is discarded. */
export async function greeted (link: Link, log: Log, signal: AbortSignal): Promise<Link> {
  try {
    await link.greet(signal)
    return link
  } catch (error) {
    discard(link, log)
    throw error
  }
}

/** Closes it: a server that got as far as a process or a session is told that it is over, but nobody waits for it. Idempotent. */
export function discard (link: Link, log: Log): void {
  link.close().catch((err: unknown) => log.debug({ err }, 'closing a failed connection failed'))
}

/** What a transport is made from, besides its definition. */
export interface LinkOptions {
  readonly handshake: Handshake
  readonly events: UpstreamEvents
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly complaints: Complaints
  readonly askRoom: AskRoom
  readonly use: Use
  /** The server does not speak the era any more that it was found to speak; `events.closed` follows. */
  disproved? (): void
}

export interface Greeting {
  readonly revision: Revision
  readonly capabilities: ServerCapabilities
  readonly serverInfo: Implementation
  readonly instructions: string | undefined
}

/**
 * Sends `initialize` with our latest revision and judges the answer (2025-11-25 basic/lifecycle "Initialization"). The caller
 * sends `notifications/initialized` when its transport is ready for it.
 * @throws GatewayError upstream_unavailable where the server refuses; upstream_protocol where its answer is none
 */
export async function initialize (exchange: Exchange, name: UpstreamName, handshake: Handshake, signal: AbortSignal): Promise<Greeting> {
  const params = { protocolVersion: latestLegacy, capabilities: handshake.capabilities, clientInfo: handshake.clientInfo }
  const result = await exchange.request({ method: 'initialize', params }, nobody, signal).catch((error: unknown) => {
    if (!(error instanceof RpcError)) throw error
    throw new GatewayError('upstream_unavailable', `Upstream ${name} refused to initialize: ${printable(error.message, 300)} (${error.error.code}).`, { cause: error, data: { upstream: name } })
  })
  const { protocolVersion, capabilities, serverInfo, instructions } = result
  if (!isLegacyRevision(protocolVersion)) {
    const offered = typeof protocolVersion === 'string' ? JSON.stringify(printable(protocolVersion, 40)) : 'no revision'
    throw new GatewayError('upstream_protocol', `Upstream ${name} answered initialize with ${offered}; the gateway speaks ${legacyRevisions.join(', ')}.`, { data: { upstream: name } })
  }
  return {
    revision: protocolVersion,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: isObject(serverInfo) && typeof serverInfo['name'] === 'string' && typeof serverInfo['version'] === 'string'
      ? serverInfo as Implementation
      : { name, version: 'unknown' },
    instructions: typeof instructions === 'string' ? instructions : undefined
  }
}
