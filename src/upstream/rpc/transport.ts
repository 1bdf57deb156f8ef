// What a transport, and the codec of an era, do for the RPC client.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { MemoryShare } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import type { GatewayError, Notification, Request, Result, Revision } from '../../protocol/messages.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import type { Client, HandshakeParams, UpstreamEvents } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'
import type { UpstreamCredential } from './credential.ts'
import type { LimitedWarnings } from './notifications.ts'
import type { ServerRequestQuota } from './server-requests.ts'

export type ConnectionUse = 'listing' | 'view' | 'calls'

/** Serves all parts of one connection. */
export interface LinkContext {
  readonly handshake: HandshakeParams
  readonly events: UpstreamEvents
  readonly clock: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: Log
  readonly warnings: LimitedWarnings
  readonly serverRequestQuota: ServerRequestQuota
  /** What messages of the server take up while they come in. */
  readonly memory: MemoryShare
  readonly use: ConnectionUse
  /** Undefined: the headers of the definition are all that the server is shown. */
  readonly credential?: UpstreamCredential | undefined
  /** The server no longer speaks the era that it was found to speak; `events.closed` follows. */
  eraChanged?(): void
}

/** None of these wait. */
interface Transport {
  /**
   * The answer comes back by `RpcClient.receive`, a failure by `fail`. `RpcClient.written` says that a long one has
   * left. @throws GatewayError if it was not sent
   */
  request(id: number, body: JsonText, request: Request, client: Pick<Client, 'quotaKey'>): void
  /** A notification or a response. @param lost called where the server says that it has not taken it */
  post(body: JsonText, lost?: () => void): void
  drop(id: number): void
  /** What becomes of a part of a long body; a short one comes as it is. */
  readonly changePart?: (part: string) => string
}

/** Bytes or characters: of a request that is let go of once it is sent, at least. */
export const longRequestLength = 16_384

/** Set by an era whose messages differ from those of the legacy one. */
export interface MessageCodec {
  encode(request: Request, client: Client): Request
  /** @returns the result as the client may have it; upstream_protocol for what it cannot take */
  checkResult(result: Result, method: string, client: Client): Result | GatewayError
  notificationFilter(id: number, outgoing: Request): NotificationFilter
  /** A request that asked for log messages was given up: those still to come must reach no other client. */
  abandoned(): void
  /** @returns the id of the request that a notification belongs to, as far as its content says */
  requestIdOf(
    notification: Notification,
    calls: Iterable<{ readonly id: number; readonly filter: NotificationFilter | undefined }>
  ): number | undefined
}

export interface NotificationFilter {
  /** A stream without end, on which silence is no timeout. */
  readonly endless: boolean
  /** The request asked for log messages. */
  readonly logs: boolean
  /** @returns what the client is told; `end` where the server ended the stream; undefined for what was not asked for */
  accept(notification: Notification): Notification | 'end' | undefined
}

export interface RpcClientOptions {
  readonly definition: Pick<UpstreamDefinition, 'name' | 'timeoutMs' | 'isolation'>
  readonly link: LinkContext
  readonly transport: Transport
  /** Gives the ids of requests; undefined where it has none left. Default: of this connection alone. */
  nextId?(): number | undefined
  /** Each request is answered on a stream of its own. */
  readonly streamPerCall?: boolean
  /** The negotiated one; undefined before the handshake. */
  revision?(): Revision | undefined
  /** Set while the connection speaks 2026-07-28. */
  codec?(): MessageCodec | undefined
}
