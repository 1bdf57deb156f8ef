// Requests to a server of 2026-07-28: envelope, results, notifications. A request that was refused for its headers or
// its revision is sent once more, if the transport proves that it was not executed.

import {
  GatewayError,
  isModernRevision,
  isObject,
  type JsonObject,
  latestModern,
  metaOf,
  type ModernRevision,
  type Request,
  type Result,
  rpcCodes,
  RpcError,
  type UpstreamName
} from '../../protocol/messages.ts'
import { type Client, type SentAgain, isLogLevel, type LogLevel, noClient } from '../../protocol/seams.ts'
import { paramHeadersOf, withoutParamHeaders } from '../../protocol/translate/param-headers.ts'
import { printable } from '../rpc/decode-json.ts'
import { supportedVersions } from './discover.ts'
import { createToolReader, type ParamHeaderCache } from './param-header-cache.ts'
import { uncertainError, upstreamError } from '../rpc/errors.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext, MessageCodec, NotificationFilter } from '../rpc/transport.ts'
import type { UpstreamSubscriptions } from './listen-streams.ts'
import { logLevelKey, serverInfoKey, subscriptionIdKey, withEnvelope } from '../../protocol/envelope.ts'
import { modernClientRequests, listenNotifications, tasksExtension } from '../../protocol/methods.ts'

interface ModernCodec extends MessageCodec {
  revision: ModernRevision
  sessionLogLevel: LogLevel | undefined
}

const listMethods: ReadonlySet<string> = new Set(['tools/list', 'prompts/list', 'resources/list'])
/** How long log messages of a cancelled request are still dropped over stdio, in milliseconds. */
const echoMs = 10_000
const { headerMismatch, unsupportedRevision } = rpcCodes

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
      const running = [...calls].filter(({ filter }) => filter?.endless !== true)
      return running.length === 1 ? running[0]?.id : undefined
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
      // No notification may come before the acknowledgement.
      else if (!acknowledged || !listenNotifications.has(method)) return undefined
      return params === undefined ? notification : { method, params: withoutMeta(params, subscriptionIdKey) }
    }
  }
}

/** Removes one member of `_meta`, and an empty `_meta`. */
function withoutMeta(value: JsonObject, key: string): JsonObject {
  const meta = value['_meta']
  if (!isObject(meta) || !(key in meta)) return value
  const { [key]: _left, ...others } = meta
  const { _meta, ...rest } = value
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others }
}

/** @returns `Upstream.request` */
export function createModernRequests({
  definition,
  link,
  rpc,
  codec,
  subscriptions,
  paramHeaders,
  provesNotExecuted,
  eraLost
}: {
  readonly definition: UpstreamDefinition
  readonly link: LinkContext
  readonly rpc: RpcClient
  readonly codec: ModernCodec
  readonly subscriptions: UpstreamSubscriptions
  /** The cache of headers in which arguments are repeated. */
  readonly paramHeaders: ParamHeaderCache | undefined
  /** Whether the error, by which a server refuses a request without executing it, proves that on this transport. */
  provesNotExecuted(error: RpcError, request: Request): boolean
  /** Called when the server no longer has a revision of this era. */
  eraLost(): void
}): RpcClient['request'] {
  const { name } = definition
  const reader = paramHeaders === undefined ? undefined : createToolReader(definition, link, rpc, paramHeaders)

  async function send(request: Request, client: Client, signal: AbortSignal, again?: SentAgain): Promise<Result> {
    const { method, params } = request
    const [{ revision: sent }, readings] = [codec, reader?.count]
    if (again !== undefined) client.again?.(again)
    try {
      const result = await rpc.request(request, client, signal)
      if (listMethods.has(method)) subscriptions.listed()
      if (method === 'tools/list' && paramHeaders === undefined) return withoutInvalidHeaders(result)
      if (method === 'tools/list') paramHeaders?.learn(result, params?.['cursor'])
      return result
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      const { code, message } = error.error
      if (code !== headerMismatch && code !== unsupportedRevision) throw error
      const fault = (what: string, data = {}): GatewayError =>
        new GatewayError('upstream_protocol', `Upstream ${name} ${what} It said: ${printable(message, 300)}`, {
          cause: error,
          data: { ...data, upstream: name }
        })
      if (!provesNotExecuted(error, request))
        throw fault(
          `answered ${method} with error ${code}, but not in the way of a request that was not executed: ` +
            'whether it took effect is unknown.',
          { outcome: 'unknown' }
        )
      if (code === headerMismatch) {
        // 2026-07-28 basic/transports/streamable-http "Client Behavior": the schema may have changed.
        if (again !== undefined || method !== 'tools/call' || !(await toolsRead(readings)))
          throw fault(
            'does not accept the headers of the request, so it was not executed. ' +
              'Does a proxy in front of it change headers?'
          )
        return await send(request, client, signal, 'headers')
      }
      const supported = supportedVersions(error.error)
      if (supported.includes(sent))
        throw fault(`refuses revision ${sent} although it names it, so the request was not executed.`)
      const revision = supported.find(isModernRevision)
      if (revision !== undefined && again === undefined) {
        codec.revision = revision
        return await send(request, client, signal, 'revision')
      }
      if (revision === undefined) eraLost()
      throw upstreamError(
        name,
        'upstream_unavailable',
        `Upstream ${name} no longer speaks revision ${sent}, so the request was not executed. Try again.`,
        error
      )
    }
  }

  /** Have the tools been read since the request was sent? If not, reads them and reports a change of the list. */
  async function toolsRead(readings = 0): Promise<boolean> {
    if (reader === undefined) return false
    if (reader.count === readings) {
      await reader.read()
      if (reader.count > readings) link.events.listChanged('tools', 'gateway')
    }
    return reader.count > readings
  }

  return (request, client, signal) => {
    const { method, params } = request
    if (method === 'tools/call' && paramHeaders?.known === false)
      return Promise.resolve(reader?.read()).then(() => send(request, client, signal))
    if (method === 'ping') return Promise.resolve({})
    if (method === 'logging/setLevel') {
      const level = params?.['level']
      if (isLogLevel(level)) codec.sessionLogLevel = level
      return Promise.resolve({})
    }
    const uri = params?.['uri']
    if (method === 'resources/subscribe' && typeof uri === 'string') return subscriptions.subscribe(uri, signal)
    if (method === 'resources/unsubscribe' && typeof uri === 'string') {
      subscriptions.unsubscribe(uri)
      return Promise.resolve({})
    }
    return send(request, client, signal)
  }
}

/** Removes invalid annotations: over stdio no argument is repeated in a header, so that no tool is left out. */
function withoutInvalidHeaders(list: Result): Result {
  const { tools } = list
  if (!Array.isArray(tools)) return list
  return {
    ...list,
    tools: (tools as unknown[]).map((tool) =>
      isObject(tool) && isObject(tool['inputSchema']) && typeof paramHeadersOf(tool['inputSchema']) === 'string'
        ? { ...tool, inputSchema: withoutParamHeaders(tool['inputSchema']) }
        : tool
    )
  }
}
