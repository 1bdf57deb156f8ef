// Requests to a server of 2026-07-28: what legacy clients say to a session is answered here, and a request that was
// refused for its headers or its revision is sent once more, where the transport proves that it was not executed.

import {
  GatewayError,
  isModernRevision,
  isObject,
  type ModernRevision,
  type Request,
  type Result,
  rpcCodes,
  RpcError
} from '../../protocol/messages.ts'
import { type Client, isLogLevel } from '../../protocol/seams.ts'
import { paramHeadersOf, withoutParamHeaders } from '../../protocol/translate/param-headers.ts'
import { printable } from '../rpc/decode-json.ts'
import { supportedVersions } from './discover.ts'
import { createToolReader } from './tool-reader.ts'
import { upstreamError } from '../rpc/errors.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { UpstreamSubscriptions } from './listen-streams.ts'
import type { ModernCodec } from './modern-codec.ts'
import type { ParamHeaderCache } from './param-header-cache.ts'

export interface ModernRequestsOptions {
  readonly definition: UpstreamDefinition
  readonly link: LinkContext
  readonly rpc: RpcClient
  readonly codec: ModernCodec
  readonly subscriptions: UpstreamSubscriptions
  /** Where arguments are repeated in headers. */
  readonly paramHeaders: ParamHeaderCache | undefined
  /** Does an error that says that the request was not executed prove it? */
  provesNotExecuted(error: RpcError, request: Request): boolean
  /** The server has no revision of this era any more. */
  eraLost(): void
}

/** What was known when a request went out. */
interface Attempt {
  readonly revision: ModernRevision
  readonly readings: number
  readonly isSecond: boolean
}

const { headerMismatch, unsupportedRevision } = rpcCodes

/** @returns `Upstream.request` */
export function createModernRequests(options: ModernRequestsOptions): RpcClient['request'] {
  const { definition, link, rpc, codec, subscriptions, paramHeaders } = options
  const { name } = definition
  const reader = paramHeaders === undefined ? undefined : createToolReader(definition, link, rpc, paramHeaders)

  function send(request: Request, client: Client, signal: AbortSignal, isSecond = false): Promise<Result> {
    const attempt: Attempt = { revision: codec.revision, readings: reader?.count ?? 0, isSecond }
    const retry = (error: unknown): Promise<Result> => sendAgain(error, request, client, signal, attempt)
    const result = rpc.request(request, client, signal)
    if (request.method !== 'tools/list') return result.catch(retry)
    return result.then((list) => learnTools(list, request)).catch(retry)
  }

  function learnTools(list: Result, { params }: Request): Result {
    if (paramHeaders === undefined) return withoutInvalidHeaders(list)
    paramHeaders.learn(list, params?.['cursor'])
    return list
  }

  async function sendAgain(
    error: unknown,
    request: Request,
    client: Client,
    signal: AbortSignal,
    attempt: Attempt
  ): Promise<Result> {
    if (!(error instanceof RpcError)) throw error
    const { code, message } = error.error
    if (code !== headerMismatch && code !== unsupportedRevision) throw error
    const fault = (what: string, data = {}): GatewayError =>
      new GatewayError('upstream_protocol', `Upstream ${name} ${what} It said: ${printable(message, 300)}`, {
        cause: error,
        data: { ...data, upstream: name }
      })
    if (!options.provesNotExecuted(error, request))
      throw fault(
        `answered ${request.method} with error ${code}, but not in the way of a request that was not executed: ` +
          'whether it took effect is unknown.',
        { outcome: 'unknown' }
      )
    if (code === headerMismatch) {
      // 2026-07-28 basic/transports/streamable-http "Client Behavior": the schema may have changed.
      if (attempt.isSecond || request.method !== 'tools/call' || !(await toolsRead(attempt)))
        throw fault(
          'does not accept the headers of the request, so it was not executed. ' +
            'Does a proxy in front of it change headers?'
        )
      return await send(request, client, signal, true)
    }
    const supported = supportedVersions(error.error)
    if (supported.includes(attempt.revision))
      throw fault(`refuses revision ${attempt.revision} although it names it, so the request was not executed.`)
    const revision = supported.find(isModernRevision)
    if (revision !== undefined && !attempt.isSecond) {
      codec.revision = revision
      return await send(request, client, signal, true)
    }
    if (revision === undefined) options.eraLost()
    throw upstreamError(
      name,
      'upstream_unavailable',
      `Upstream ${name} no longer speaks revision ${attempt.revision}, so the request was not executed. Try again.`,
      error
    )
  }

  /** Have the tools been read since the request was sent? If not, reads them, and so must the owner of the listing. */
  async function toolsRead({ readings }: Attempt): Promise<boolean> {
    if (reader === undefined) return false
    if (reader.count === readings) {
      await reader.read()
      if (reader.count > readings) link.events.listChanged('tools')
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

/** Over stdio no argument is repeated in a header, so an annotation that is invalid takes no tool away. */
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
