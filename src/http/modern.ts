// The door for 2026-07-28: one POST, one request, one answer (basic/transports/streamable-http). What has passed the ladder comes here, and
// leaves for the relay when its method exists and its headers repeat its arguments.

import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/errors.ts'
import type { ModernRequest } from '../protocol/ladder.ts'
import { reaches } from '../protocol/levels.ts'
import type { LogLevel } from '../protocol/levels.ts'
import type { JsonObject, Notification } from '../protocol/messages.ts'
import { paramHeaderPrefix, paramHeadersOf, paramMismatch } from '../protocol/param-headers.ts'
import type { ParamHeader } from '../protocol/param-headers.ts'
import { latestModern } from '../protocol/revisions.ts'
import type { ModernCall } from '../relay/call.ts'
import { modernMethods } from '../relay/modern/relay.ts'
import type { ModernRelay } from '../relay/modern/relay.ts'
import { readAccept } from './accept.ts'
import { createCallers } from './modern-callers.ts'
import { clientOf } from './modern-client.ts'
import { createExchanges } from './modern-exchange.ts'
import type { ExchangeOptions } from './modern-exchange.ts'
import { createModernListen } from './modern-listen.ts'
import type { Visit } from './visit.ts'
import { createWelcome } from './welcome.ts'

export interface ModernDoorOptions extends Omit<ExchangeOptions, 'welcome'> {
  readonly relay: ModernRelay
  readonly clock: { now (): number }
  readonly log: Log
}

export interface ModernDoor {
  /** Rejects with what is refused before it began: GatewayError unknown_method, not_acceptable, too_many, and what `listen` is refused with. */
  post (visit: Visit, request: ModernRequest): Promise<void>
  /** The configuration changed: ends calls and streams of those who would not be let in any more. */
  recheckAll (): void
  /** The gateway stops: ends every listen stream, and says so on it. Calls go on. */
  leave (): void
}

export function createModernDoor (options: ModernDoorOptions): ModernDoor {
  const { relay, log } = options
  const welcome = createWelcome(options)
  const exchange = createExchanges({ ...options, welcome })
  const { listen, leave } = createModernListen({ ...options, welcome })
  const callers = createCallers()
  const checkParams = createParamCheck(relay)

  return {
    async post (visit, rung) {
      const { id, request, envelope } = rung
      const { method } = request
      if (!modernMethods.has(method)) throw new GatewayError('unknown_method', `Revision ${latestModern} has no method ${JSON.stringify(method.slice(0, 64))}, or this gateway does not serve it.`)
      if (method === 'subscriptions/listen') return listen(visit, id, request, envelope) // Not awaited, as in eras.ts.
      const accepts = readAccept(visit.incoming.headers.accept)
      if (!accepts.json && !accepts.stream) throw new GatewayError('not_acceptable', 'The answer is application/json or text/event-stream; allow both in Accept.')
      if (visit.raw.destroyed) return
      callers.enter(visit)
      await exchange(visit, id, async ({ push, signal }) => {
        const client = clientOf(envelope, (notification) => {
          // What is left out here is progress or a log message, never the result.
          if (isWanted(notification, envelope.logLevel)) push(notification)
        })
        const { snapshot, tenant, endpoint, principal } = visit
        const call = { snapshot, tenant, endpoint, principal, request, client, signal }
        if (method === 'tools/call') {
          await checkParams(visit.incoming.rawHeaders, call).catch((error: unknown) => {
            if (error instanceof GatewayError) log[error.row.level]({ reason: error.code, tenant: visit.tenant.id, endpoint: visit.endpoint.name, method }, 'refused')
            throw error
          })
          // It may have waited for upstreams on their way.
          if (signal.aborted) throw signal.reason
        }
        return await relay.call(call)
      })
    },
    recheckAll: welcome.recheckAll,
    leave
  }
}

/** "Receiving Messages": what rides the answer is about the request, and log messages are for those only who ask for them (server/utilities/logging). */
function isWanted ({ method, params }: Notification, level: LogLevel | undefined): boolean {
  if (method === 'notifications/message') return level !== undefined && reaches(params?.['level'], level)
  return method === 'notifications/progress'
}

/** @returns the check of `Mcp-Param-*` against the schema that the endpoint publishes. It rejects with GatewayError header_mismatch */
function createParamCheck (relay: ModernRelay): (rawHeaders: readonly string[], call: ModernCall) => Promise<void> {
  // Read once for each schema object, which lives as long as its listing.
  const read = new WeakMap<JsonObject, readonly ParamHeader[]>()

  function annotationsOf (schema: JsonObject): readonly ParamHeader[] {
    const known = read.get(schema)
    if (known !== undefined) return known
    const found = paramHeadersOf(schema)
    // An invalid one is nobody's to follow: clients leave such a tool out.
    const annotations = typeof found === 'string' ? [] : found
    read.set(schema, annotations)
    return annotations
  }

  return async (rawHeaders, call) => {
    const { name, arguments: args } = call.request.params ?? {}
    const schema = typeof name === 'string' ? await relay.schemaOf(call, name) : undefined
    if (schema === undefined) return // Unknown here: the relay says so.
    const annotations = annotationsOf(schema)
    if (annotations.length === 0) return
    const mismatch = paramMismatch(annotations, args, paramHeadersIn(rawHeaders))
    if (mismatch !== undefined) throw new GatewayError('header_mismatch', mismatch)
  }
}

/** Each as often as it came: Node would join them, and somebody on the way may have read the first only. */
function paramHeadersIn (rawHeaders: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (!name.startsWith(paramHeaderPrefix)) continue
    const values = found.get(name)
    if (values === undefined) found.set(name, [rawHeaders[at + 1] ?? ''])
    else values.push(rawHeaders[at + 1] ?? '')
  }
  return found
}
