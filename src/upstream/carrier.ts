// What a transport gives the exchange that it carries, and does for it.

import type { Log } from '../observe/log.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import type { Request } from '../protocol/messages.ts'
import type { UpstreamEvents } from '../protocol/seams.ts'
import type { AsksOptions } from './asks.ts'
import type { Dialect } from './modern/dialect.ts'

/** What a transport does for the exchange. None of these wait. */
export interface Carrier {
  /** Carries one request; the answer comes back by `receive`, a failure by `fail`. @throws GatewayError if it was not sent */
  request (id: number, body: string, request: Request): void
  /** Carries a notification or a response. Loss is the transport's to notice. @param lost the server has not taken it, where it says so */
  post (body: string, lost?: () => void): void
  /** Nobody waits for the answer to this request any more. */
  drop (id: number): void
}

export interface ExchangeOptions extends Omit<AsksOptions, 'send'> {
  readonly name: UpstreamName
  readonly timeoutMs: number
  /** Does the connection serve one client only? Else what names no call is nobody's: it may be about a call that is over. */
  readonly exclusive: boolean
  readonly carrier: Carrier
  readonly events: UpstreamEvents
  readonly log: Log
  /** Does the negotiated revision know batches? Only 2025-03-26 does. */
  batches (): boolean
  /** Set while the connection speaks 2026-07-28. Default: never. */
  dialect? (): Dialect | undefined
}
