// What is different in the messages of 2026-07-28: the envelope of requests, what a result may be, and to which request
// a notification belongs.

import { logLevelKey, serverInfoKey, subscriptionIdKey, withEnvelope } from '../../protocol/envelope.ts'
import {
  type GatewayError,
  isObject,
  type JsonObject,
  latestModern,
  metaOf,
  type ModernRevision,
  type Result,
  type UpstreamName
} from '../../protocol/messages.ts'
import { type Client, type LogLevel, noClient } from '../../protocol/seams.ts'
import { modernClientRequests, modernServerNotifications, tasksExtension } from '../../protocol/methods.ts'
import { printable } from '../rpc/decode-json.ts'
import { uncertainError } from '../rpc/errors.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { LinkContext, MessageCodec, NotificationFilter } from '../rpc/transport.ts'

export interface ModernCodec extends MessageCodec {
  /** In which requests are sent from now on. */
  revision: ModernRevision
  /** What clients with a session have asked for by `logging/setLevel`. */
  sessionLogLevel: LogLevel | undefined
}

/** How long a server may go on with a request that was cancelled before it notices. */
const echoMs = 10_000

export function createModernCodec(definition: UpstreamDefinition, { clock, handshake }: LinkContext): ModernCodec {
  // Over stdio a log message does not say which request it is about.
  const exclusive = definition.type === 'stdio' && definition.isolation !== 'shared'
  let quietUntil = 0
  const codec: ModernCodec = {
    revision: latestModern,
    sessionLogLevel: undefined,
    encode(request, client) {
      // A legacy client cannot be asked by way of a result, so nothing is declared for it.
      const modern = client.era === 'modern'
      const logLevel = client.logLevel ?? (modern || client === noClient ? undefined : codec.sessionLogLevel)
      const capabilities = modern ? client.capabilities : {}
      return withEnvelope(request, { version: codec.revision, capabilities, logLevel }, handshake.clientInfo)
    },
    checkResult: (result, method, client) =>
      method === 'server/discover' ? result : checkedResult(definition.name, result, method, client),
    notificationFilter(id, { method, params }) {
      if (method === 'subscriptions/listen') return streamFilter(id)
      return logLevelKey in metaOf(params) ? logFilter : noFilter
    },
    abandoned() {
      quietUntil = clock.now() + echoMs
    },
    requestIdOf({ method, params }, calls) {
      const subscription = metaOf(params)[subscriptionIdKey]
      if (subscription !== undefined) return typeof subscription === 'number' ? subscription : undefined
      if (method === 'notifications/cancelled') return params?.['requestId'] as number
      if (!exclusive || method !== 'notifications/message' || clock.now() < quietUntil) return undefined
      const running = [...calls].filter(([, { filter }]) => filter?.endless !== true)
      return running.length === 1 ? running[0]?.[0] : undefined
    }
  }
  return codec
}

function checkedResult(name: UpstreamName, result: Result, method: string, client: Client): Result | GatewayError {
  const { resultType = 'complete' } = result
  const protocolError = (what: string): GatewayError =>
    uncertainError(name, 'upstream_protocol', `Upstream ${name} ${what}.`)
  if (resultType === 'input_required' && modernClientRequests.get(method)?.takesInput === true) {
    if (client.era === 'modern') return withoutMeta(result, serverInfoKey)
    return protocolError('asks for input in the way of 2026-07-28 on behalf of somebody who does not know it')
  }
  const known = resultType === 'complete' || (resultType === 'task' && method === 'tools/call' && takesTasks(client))
  if (!known) {
    const type = typeof resultType === 'string' ? JSON.stringify(printable(resultType, 40)) : 'that is no string'
    return protocolError(`answered ${method} with a result of type ${type}, which is not allowed there`)
  }
  const plain = withoutMeta(result, serverInfoKey)
  return method === 'subscriptions/listen' ? withoutMeta(plain, subscriptionIdKey) : plain
}

const takesTasks = ({ era, capabilities }: Client): boolean =>
  era === 'modern' && isObject(capabilities['extensions']) && capabilities['extensions'][tasksExtension] !== undefined

const noFilter: NotificationFilter = { endless: false, logs: false, accept: () => undefined }
const logFilter: NotificationFilter = {
  endless: false,
  logs: true,
  accept: (notification) => (notification.method === 'notifications/message' ? notification : undefined)
}

function streamFilter(id: number): NotificationFilter {
  let acknowledged = false
  return {
    endless: true,
    logs: false,
    accept(notification) {
      const { method, params } = notification
      if (method === 'notifications/cancelled') return params?.['requestId'] === id ? 'end' : undefined
      const own = metaOf(params)[subscriptionIdKey]
      if (own !== undefined && own !== id) return undefined
      if (method === 'notifications/subscriptions/acknowledged' && !acknowledged) acknowledged = true
      // Nothing may come ahead of it.
      else if (!acknowledged || modernServerNotifications.get(method)?.onListenStream !== true) return undefined
      return params === undefined ? notification : { method, params: withoutMeta(params, subscriptionIdKey) }
    }
  }
}

/** The same without one member of its `_meta`, and without `_meta` where nothing is left of it. */
function withoutMeta(value: JsonObject, key: string): JsonObject {
  const meta = value['_meta']
  if (!isObject(meta) || !(key in meta)) return value
  const { [key]: _left, ...others } = meta
  const { _meta, ...rest } = value
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others }
}
