// Requests that a server sends to us: ping is answered here; sampling, elicitation and roots go to the client whose call they
// belong to. A request that belongs to nobody is refused, never guessed (2025-11-25 client/elicitation; SEP-2260).

import { errorObject, GatewayError } from '../protocol/errors.ts'
import { errorMessage, isObject, responseMessage } from '../protocol/messages.ts'
import { createBucket } from './bucket.ts'
import type { ClientCapabilities, JsonObject, RequestId, RpcErrorObject, ServerRequest } from '../protocol/messages.ts'
import type { Client } from '../protocol/seams.ts'
import type { Clock } from './clock.ts'

export interface Asks {
  /** Takes one request of the server; `ask`: how to reach the client it is for, if that is known. The answer is sent when there is one. */
  receive (id: RequestId, request: ServerRequest, ask: Client['ask'] | undefined): void
  /** The server withdrew its request: no answer is sent any more. */
  cancelled (id: RequestId): void
}

export interface AsksOptions {
  /** What our handshake declared: a server may not ask for more. */
  readonly declared: ClientCapabilities
  readonly clock: Clock
  send (message: JsonObject): void
}

const capabilityOf: ReadonlyMap<string, string> = new Map([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots']
])

// A server that asks more than this asks a machine, not a person (security: floods of server requests).
const asksPerSecond = 10
const askBurst = 20
const openAsks = 32

export function createAsks ({ declared, clock, send }: AsksOptions): Asks {
  const open = new Map<RequestId, symbol>()
  const bucket = createBucket(clock, asksPerSecond, askBurst)

  const refuse = (id: RequestId, error: RpcErrorObject): void => send(errorMessage(id, error))

  return {
    receive (id, request, ask) {
      // The server's own sign of life: no client has to hear of it (2025-11-25 basic/utilities/ping).
      if (request.method === 'ping') return send(responseMessage(id, {}))
      const capability = capabilityOf.get(request.method)
      if (capability === undefined || !isObject(declared[capability])) {
        return refuse(id, { code: -32601, message: 'This client does not offer the method.' })
      }
      if (ask === undefined) {
        return refuse(id, { code: -32602, message: 'The request belongs to no call in flight, so nobody can be asked.' })
      }
      if (open.has(id)) return refuse(id, { code: -32600, message: 'A request with this id is already open.' })
      if (open.size >= openAsks || !bucket.take()) {
        return refuse(id, errorObject(new GatewayError('too_many', 'Too many requests to the client; ask less often.'), ''))
      }
      const ticket = Symbol('ask')
      open.set(id, ticket)
      const close = (): boolean => open.get(id) === ticket && open.delete(id)
      ask(request).then(
        (result) => { if (close()) send(responseMessage(id, isObject(result) ? result : {})) },
        (error: unknown) => { if (close()) refuse(id, errorObject(error, '')) }
      )
    },

    cancelled (id) {
      open.delete(id)
    }
  }
}
