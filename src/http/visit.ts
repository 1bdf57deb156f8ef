// One HTTP request at an endpoint, let in.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../auth/principal.ts'
import type { Place } from '../relay/call.ts'
import type { Headers } from './reply.ts'

/** A request that has passed Host, Origin, authentication and the parser. */
export interface Visit extends Place {
  readonly principal: Principal
  /** For streams, which outlive their request: rejects as the request itself would be refused now. */
  recheck (): Promise<void>
  readonly incoming: IncomingMessage
  readonly raw: ServerResponse
  readonly headers: Headers
  readonly requestId: string
  /** Length of the body as it was sent; 0 until it was read. */
  bodyBytes: number
}
