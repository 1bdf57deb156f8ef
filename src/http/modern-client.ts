// Whoever sent a request of 2026-07-28, as seen from below.

import type { Envelope } from '../protocol/envelope.ts'
import { RpcError, errorTable } from '../protocol/errors.ts'
import type { Notification } from '../protocol/messages.ts'
import type { Client } from '../protocol/seams.ts'

/** @param notify never throws */
export function clientOf ({ capabilities, logLevel }: Envelope, notify: (notification: Notification) => void): Client {
  return {
    era: 'modern',
    capabilities,
    logLevel,
    notify,
    // basic/transports/streamable-http "Receiving Messages": no requests to the client, on this stream or any other.
    ask: ({ method }) => Promise.reject(new RpcError({ code: errorTable.method_not_found.rpcCode, message: `The client speaks 2026-07-28 and takes no requests; ${method.slice(0, 64)} cannot be asked of it here.` }))
  }
}
