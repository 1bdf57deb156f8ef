// Reads the bodies of requests as JSON, long ones in steps. Those of one session are read in the order in which they
// came, so that a cancellation does not overtake its request.

import { freeBuffer } from '../limits/free-buffer.ts'
import { parseJson, parseJsonSteps, shortLength } from '../protocol/json.ts'
import { runSteps, type Steps } from '../time/turns.ts'
import type { RouteRequest, RequestContext } from './admission.ts'
import { recountBody, recountBodySteps, reserveValues } from './request-memory.ts'

const nobody = { tenant: '', caller: '' }

export function createBodyReader() {
  /** The last body of each session that is read in steps, or waits for one that is. Never rejects. */
  const underWay = new Map<string, Promise<void>>()

  /** @throws GatewayError as `parseJsonSteps`, too_many; a promise rejects with it */
  return (request: RouteRequest, bytes: Buffer): unknown => {
    const { context } = request
    const owner = context?.memory.share ?? nobody
    const isShort = bytes.length <= shortLength
    // Short ones do not wait for the long ones of others.
    const read = (): unknown => (isShort ? shortBody(context, bytes) : runSteps(longBody(context, bytes), owner))
    const session = isShort && underWay.size === 0 ? undefined : sessionOf(request)
    if (session === undefined) return read()
    const before = underWay.get(session)
    const message = before === undefined ? read() : before.then(read)
    if (!(message instanceof Promise)) return message
    const done = (): void => {
      if (underWay.get(session) === last) underWay.delete(session)
    }
    const last: Promise<void> = message.then(done, done)
    underWay.set(session, last)
    return message
  }
}

function shortBody(context: RequestContext | undefined, bytes: Buffer): unknown {
  const value = parseJson(bytes)
  if (context !== undefined) recountBody(context, bytes.length, value)
  return value
}

function* longBody(context: RequestContext | undefined, bytes: Buffer): Steps<unknown> {
  if (context === undefined) return yield* parseJsonSteps(bytes)
  const value = yield* parseJsonSteps(bytes, (values) => reserveValues(context, bytes.length, values))
  const { length } = bytes
  freeBuffer(bytes)
  yield* recountBodySteps(context, length, value)
  return value
}

/** A session as its caller names it: others who name it too wait for nobody. Undefined where there is no session. */
function sessionOf({ context, headers, url }: RouteRequest): string | undefined {
  const id = headers['mcp-session-id'] ?? (url.includes('sessionId=') ? url : undefined)
  if (context === undefined || id === undefined) return undefined
  const { tenant, issuer, subject, clientId } = context.principal
  return JSON.stringify([tenant, issuer, subject, clientId, id])
}
