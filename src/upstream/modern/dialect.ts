// What is different in the messages of 2026-07-28, for the exchange of both eras: the envelope of requests, what a result may be, and
// to which request a notification belongs.

import { logLevelKey, serverInfoKey, subscriptionIdKey, withEnvelope } from '../../protocol/envelope.ts'
import { GatewayError } from '../../protocol/errors.ts'
import { isObject, metaOf } from '../../protocol/messages.ts'
import { printable } from '../decode.ts'
import { nobody } from '../exchange.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { LogLevel } from '../../protocol/levels.ts'
import type { Implementation, JsonObject, Notification, Request, Result } from '../../protocol/messages.ts'
import type { ModernRevision } from '../../protocol/revisions.ts'
import type { Client } from '../../protocol/seams.ts'
import type { Clock } from '../clock.ts'

export interface Dialect {
  /** The request as it goes out, in its envelope. */
  dress (request: Request, client: Client): Request
  /** @returns the result as the client may have it; upstream_protocol for what it cannot take */
  judge (result: Result, method: string, client: Client): Result | GatewayError
  /** How one request hears what the server says meanwhile. */
  ear (id: number, outgoing: Request): Ear
  /** A request that asked for log messages was given up: what the server still says of it must reach nobody else. */
  abandoned (): void
  /** Where nothing else says which request is meant: its id. */
  addressee (notification: Notification, calls: Iterable<readonly [id: number, call: { readonly ear: Ear | undefined }]>): number | undefined
}

export interface Ear {
  /** A stream that goes on until somebody ends it: silence says nothing. */
  readonly endless: boolean
  /** Did the request ask for log messages? */
  readonly logs: boolean
  /** @returns what the client is to be told; `end` where the server ended the stream; undefined for what it did not ask for */
  hear (notification: Notification): Notification | 'end' | undefined
}

export interface DialectOptions {
  readonly name: UpstreamName
  readonly clientInfo: Implementation
  /** Which revision the server is spoken to in. */
  version (): ModernRevision
  /** What clients with a session have asked for by `logging/setLevel`. */
  sessionLevel (): LogLevel | undefined
  readonly clock: Clock
  /** Does the connection serve one caller only? Default false: what names no request is nobody's. */
  readonly exclusive?: boolean
}

/** How long a server may go on with a request that was cancelled before it notices. */
const echoMs = 10_000

const tasksExtension = 'io.modelcontextprotocol/tasks'
/** 2026-07-28 basic/patterns/mrtr: nothing else may be answered with questions. */
const mayAsk: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])
/** basic/patterns/subscriptions; `notifications/tasks` is of the tasks extension. */
const onStreams: ReadonlySet<string> = new Set([
  'notifications/tools/list_changed', 'notifications/prompts/list_changed', 'notifications/resources/list_changed',
  'notifications/resources/updated', 'notifications/tasks'
])

export function createDialect ({ name, clientInfo, version, sessionLevel, clock, exclusive = false }: DialectOptions): Dialect {
  let quietUntil = 0
  return {
    dress (request, client) {
      // Who is not of this era cannot be asked by way of a result, so nothing is declared that could be asked.
      const modern = client.era === 'modern'
      const logLevel = client.logLevel ?? (modern || client === nobody ? undefined : sessionLevel())
      return withEnvelope(request, { version: version(), capabilities: modern ? client.capabilities : {}, logLevel }, clientInfo)
    },
    judge: (result, method, client) => method === 'server/discover' ? result : judged(name, result, method, client),
    ear: (id, outgoing) => outgoing.method === 'subscriptions/listen' ? streamEar(id) : callEar(outgoing),
    abandoned () { quietUntil = clock.now() + echoMs },
    addressee (notification, calls) {
      const subscription = metaOf(notification.params)[subscriptionIdKey]
      if (subscription !== undefined) return typeof subscription === 'number' ? subscription : undefined
      if (notification.method === 'notifications/cancelled') return notification.params?.['requestId'] as number
      if (!exclusive || notification.method !== 'notifications/message' || clock.now() < quietUntil) return undefined
      // Over stdio a log message does not say which request it is about: only where there is one alone it is known.
      const running = [...calls].filter(([, { ear }]) => ear?.endless !== true)
      return running.length === 1 ? running[0]?.[0] : undefined
    }
  }
}

function judged (name: UpstreamName, result: Result, method: string, client: Client): Result | GatewayError {
  const { resultType = 'complete' } = result
  if (resultType === 'input_required' && mayAsk.has(method)) {
    if (client.era === 'modern') return withoutMeta(result, serverInfoKey)
    return fault(name, 'asks for input in the way of 2026-07-28 on behalf of somebody who does not know it')
  }
  const known = resultType === 'complete' || (resultType === 'task' && method === 'tools/call' && takesTasks(client))
  if (!known) return fault(name, `answered ${method} with a result of type ${typeof resultType === 'string' ? JSON.stringify(printable(resultType, 40)) : 'that is no string'}, which is not allowed there`)
  const plain = withoutMeta(result, serverInfoKey)
  return method === 'subscriptions/listen' ? withoutMeta(plain, subscriptionIdKey) : plain
}

const takesTasks = ({ era, capabilities }: Client): boolean =>
  era === 'modern' && isObject(capabilities['extensions']) && capabilities['extensions'][tasksExtension] !== undefined

function fault (name: UpstreamName, what: string): GatewayError {
  return new GatewayError('upstream_protocol', `Upstream ${name} ${what}.`, { data: { outcome: 'unknown', upstream: name } })
}

function callEar ({ params }: Request): Ear {
  const logs = logLevelKey in metaOf(params)
  return { endless: false, logs, hear: (notification) => logs && notification.method === 'notifications/message' ? notification : undefined }
}

function streamEar (id: number): Ear {
  let acknowledged = false
  return {
    endless: true,
    logs: false,
    hear (notification) {
      const { method, params } = notification
      if (method === 'notifications/cancelled') return params?.['requestId'] === id ? 'end' : undefined
      const own = metaOf(params)[subscriptionIdKey]
      if (own !== undefined && own !== id) return undefined
      if (method === 'notifications/subscriptions/acknowledged' && !acknowledged) acknowledged = true
      // Nothing may come ahead of it.
      else if (!acknowledged || !onStreams.has(method)) return undefined
      return params === undefined ? notification : { method, params: withoutMeta(params, subscriptionIdKey) }
    }
  }
}

/** The same without one member of its `_meta`, and without `_meta` where nothing is left of it. */
function withoutMeta (value: JsonObject, key: string): JsonObject {
  const meta = value['_meta']
  if (!isObject(meta) || !(key in meta)) return value
  const { [key]: _left, ...others } = meta
  const { _meta, ...rest } = value
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others }
}
