// The interfaces that a transport and the message codec of an era implement for the RPC client.

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

/** What all parts of one connection share. */
export interface LinkContext {
  readonly handshake: HandshakeParams
  readonly events: UpstreamEvents
  readonly clock: Clock
  /** Returns a number from 0 to 1 (1 excluded). */
  readonly random: () => number
  readonly log: Log
  readonly warnings: LimitedWarnings
  readonly serverRequestQuota: ServerRequestQuota
  /** Counts the memory of messages while they are received. */
  readonly memory: MemoryShare
  readonly use: ConnectionUse
  /** The caller's credential; undefined: only the headers of the definition are sent. */
  readonly credential?: UpstreamCredential | undefined
  /** The server no longer speaks the era that it was found to speak; `events.closed` follows. */
  eraChanged?(): void
}

/** Sends messages. All methods return at once. */
interface Transport {
  /**
   * Sends a request. Its response comes by `RpcClient.receive`, a failure by `fail`; `RpcClient.written` reports that a
   * long one was sent. @throws GatewayError if it was not sent
   */
  request(id: number, body: JsonText, request: Request, client: Pick<Client, 'quotaKey'>): void
  /** Sends a notification or a response. @param lost called if the server refuses it */
  post(body: JsonText, lost?: () => void): void
  drop(id: number): void
  /** The server asked something about a request, elsewhere than in its answer: it is not sent again. */
  asked?(id: number): void
  /** Changes each part of a long body before it is sent; short bodies are passed unchanged. */
  readonly changePart?: (part: string) => string
}

/** From this length on, in bytes or characters, the memory of a request is freed as soon as it is sent. */
export const longRequestLength = 16_384

/** Translates the messages of 2026-07-28; the legacy era has no codec. */
export interface MessageCodec {
  encode(request: Request, client: Client): Request
  /** @returns the result for the client; GatewayError upstream_protocol for an invalid one */
  checkResult(result: Result, method: string, client: Client): Result | GatewayError
  notificationFilter(id: number, outgoing: Request): NotificationFilter
  /** A request that asked for log messages was cancelled: later ones must reach no other client. */
  abandoned(): void
  /** @returns the id of the request that a notification belongs to, as far as its content says */
  requestIdOf(
    notification: Notification,
    calls: Iterable<{ readonly id: number; readonly filter: NotificationFilter | undefined }>
  ): number | undefined
}

export interface NotificationFilter {
  /** Whether the response is a stream without end, which has no timeout. */
  readonly endless: boolean
  /** Whether the request asked for log messages. */
  readonly logs: boolean
  /** @returns the notification for the client; `end`: the server ended the stream; undefined: it was not asked for */
  accept(notification: Notification): Notification | 'end' | undefined
}

export interface RpcClientOptions {
  readonly definition: Pick<UpstreamDefinition, 'name' | 'timeoutMs' | 'maxTimeoutMs' | 'isolation'>
  readonly link: LinkContext
  readonly transport: Transport
  /** Returns the next request id; undefined: none is left. Default: ids of this connection alone. */
  nextId?(): number | undefined
  /** Whether each request is answered on a stream of its own. */
  readonly streamPerCall?: boolean
  /** The negotiated revision; undefined before the handshake. */
  revision?(): Revision | undefined
  /** Set while the connection speaks 2026-07-28. */
  codec?(): MessageCodec | undefined
}
