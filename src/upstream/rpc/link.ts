// A connection to an upstream before and after its handshake, as every transport makes it.

import type { Implementation, Revision, ServerCapabilities } from '../../protocol/messages.ts'
import type { Log } from '../../observe/log.ts'
import type { RpcClient } from './rpc-client.ts'

export interface Link {
  readonly rpc: RpcClient
  /** The answer to the handshake; to the latest one, where the transport had to repeat it. */
  readonly handshakeResult: HandshakeResult | undefined
  /** See `Upstream.serverRequestsNameCall`. */
  readonly serverRequestsNameCall?: boolean
  /** Does the handshake. Once. */
  handshake(signal: AbortSignal): Promise<HandshakeResult>
  close(): Promise<void>
  destroy(reason: Error): void
}

/** @returns the link after its handshake; a link whose handshake fails is discarded */
export async function withHandshake(link: Link, log: Log, signal: AbortSignal): Promise<Link> {
  try {
    await link.handshake(signal)
    return link
  } catch (error) {
    discard(link, log)
    throw error
  }
}

/** Closes the link in the background, so that a process or a session of it ends. Idempotent. */
export function discard(link: Link, log: Log): void {
  link.close().catch((err: unknown) => log.debug({ err }, 'closing a failed connection failed'))
}

export interface HandshakeResult {
  readonly revision: Revision
  readonly capabilities: ServerCapabilities
  readonly serverInfo: Implementation
  readonly instructions: string | undefined
}
