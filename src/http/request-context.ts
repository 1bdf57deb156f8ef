// One HTTP request at an endpoint, after it was let in.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../auth/principal.ts'
import type { EndpointContext } from '../relay/call/call.ts'
import type { ReplyHeaders } from './reply.ts'

/** What lets a caller in, and for how long. */
export interface Credential {
  /**
   * For streams and calls, which outlive the check of their request: rejects as the request itself would be refused
   * now.
   */
  revalidate(): Promise<void>
  /** Epoch ms, leeway included. */
  readonly validUntil: number
}

/** A request that has passed Host, Origin, authentication and the parser. */
export interface RequestContext extends EndpointContext, Credential {
  readonly principal: Principal
  readonly incoming: IncomingMessage
  readonly raw: ServerResponse
  /** CORS; sent with every reply. */
  readonly headers: ReplyHeaders
  readonly requestId: string
  /** Length of the body as it was sent; 0 until it was read. */
  bodyBytes: number
}
