// What a transport gives the exchange that it carries, and does for it.

import type { Log } from '../observe/log.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import type { ClientCapabilities, Request } from '../protocol/messages.ts'
import type { UpstreamEvents } from '../protocol/seams.ts'
import type { Clock } from './clock.ts'
import type { Complaints } from './complaints.ts'
import type { Dialect } from './modern/dialect.ts'

/** What a transport does for the exchange. None of these wait. */
export interface Carrier {
  /** Carries one request; the answer comes back by `receive`, a failure by `fail`. @throws GatewayError if it was not sent */
  request (id: number, body: string, request: Request): void
  /** Carries a notification or a response. Loss is the transport's to notice. */
  post (body: string): void
  /** Nobody waits for the answer to this request any more. */
  drop (id: number): void
}

export interface ExchangeOptions {
  readonly name: UpstreamName
  readonly timeoutMs: number
  readonly declared: ClientCapabilities
  /** Does the connection serve one client only? Else what names no call is nobody's: it may be about a call that is over. */
  readonly exclusive: boolean
  readonly carrier: Carrier
  readonly events: UpstreamEvents
  readonly clock: Clock
  readonly log: Log
  readonly complaints: Complaints
  /** Does the negotiated revision know batches? Only 2025-03-26 does. */
  batches (): boolean
  /** Set while the connection speaks 2026-07-28. Default: never. */
  dialect? (): Dialect | undefined
}
