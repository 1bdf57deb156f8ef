// Requests to a server of 2026-07-28, beyond one exchange each: what clients of older revisions say to a session is answered here, and
// two refusals are mended once, where the transport proves that nothing was executed.

import { GatewayError, RpcError } from '../../protocol/errors.ts'
import { isLogLevel } from '../../protocol/levels.ts'
import { isObject } from '../../protocol/messages.ts'
import { paramHeadersOf, withoutParamHeaders } from '../../protocol/param-headers.ts'
import { isModernRevision } from '../../protocol/revisions.ts'
import { printable } from '../decode.ts'
import { supportedBy } from './probe.ts'
import { createToolReader } from './reading.ts'
import type { Log } from '../../observe/log.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { LogLevel } from '../../protocol/levels.ts'
import type { Request, Result } from '../../protocol/messages.ts'
import type { ModernRevision } from '../../protocol/revisions.ts'
import type { Client, UpstreamEvents } from '../../protocol/seams.ts'
import type { Clock } from '../clock.ts'
import type { Exchange } from '../exchange.ts'
import type { Schemas } from './schemas.ts'
import type { Watches } from './watches.ts'

export interface RequestsOptions {
  readonly name: UpstreamName
  readonly connectMs: number
  readonly clock: Clock
  readonly log: Log
  readonly events: Pick<UpstreamEvents, 'listChanged'>
  readonly watches: Watches
  /** Where arguments are repeated in headers. */
  readonly schemas: Schemas | undefined
  exchange (): Exchange
  /** Does an error that says that the request was not executed prove it? */
  proves (error: RpcError, request: Request): boolean
  /** The revision that the server is spoken to in. */
  version (): ModernRevision
  /** The server wants to be spoken to in this revision. */
  speak (version: ModernRevision): void
  /** The server has no revision of this era any more. */
  left (): void
}

/** What was known when a request went out. */
interface Sent {
  readonly version: ModernRevision
  readonly readings: number
  /** For the second time. */
  readonly again: boolean
}

export interface Requests {
  /** See `Upstream.request`. */
  readonly request: Exchange['request']
  /** What clients with a session have asked for by `logging/setLevel`. */
  level (): LogLevel | undefined
}

const mismatch = -32020
const unsupported = -32022

export function createRequests (options: RequestsOptions): Requests {
  const { name, watches, schemas } = options
  const reader = schemas === undefined ? undefined : createToolReader({ ...options, schemas })
  let level: LogLevel | undefined

  function send (request: Request, client: Client, signal: AbortSignal, again = false): Promise<Result> {
    const sent: Sent = { version: options.version(), readings: reader?.count ?? 0, again }
    const result = options.exchange().request(request, client, signal)
    const learnt = request.method !== 'tools/list' ? result : result.then((list) => {
      if (schemas === undefined) return legible(list)
      schemas.learn(list, request.params?.['cursor'])
      return list
    })
    return learnt.catch((error: unknown) => mended(error, request, client, signal, sent))
  }

  async function mended (error: unknown, request: Request, client: Client, signal: AbortSignal, sent: Sent): Promise<Result> {
    if (!(error instanceof RpcError)) throw error
    const { code, message } = error.error
    if (code !== mismatch && code !== unsupported) throw error
    const fault = (what: string, data = {}): GatewayError =>
      new GatewayError('upstream_protocol', `Upstream ${name} ${what} It said: ${printable(message, 300)}`, { cause: error, data: { ...data, upstream: name } })
    if (!options.proves(error, request)) throw fault(`answered ${request.method} with error ${code}, but not in the way of a request that was not executed: whether it took effect is unknown.`, { outcome: 'unknown' })
    if (code === mismatch) {
      // 2026-07-28 basic/transports/streamable-http "Client Behavior": the schema may have changed.
      if (sent.again || request.method !== 'tools/call' || !await renewed(sent)) throw fault('does not accept the headers of the request, so it was not executed. Does a proxy in front of it change headers?')
      return await send(request, client, signal, true)
    }
    const supported = supportedBy(error.error)
    if (supported.includes(sent.version)) throw fault(`refuses revision ${sent.version} although it names it, so the request was not executed.`)
    const version = supported.find(isModernRevision)
    if (version !== undefined && !sent.again) {
      options.speak(version)
      return await send(request, client, signal, true)
    }
    if (version === undefined) options.left()
    throw new GatewayError('upstream_unavailable', `Upstream ${name} no longer speaks revision ${sent.version}, so the request was not executed. Try again.`, { cause: error, data: { upstream: name } })
  }

  /** Have the tools been read since the request was sent? If not, reads them, and whoever publishes them has to as well. */
  async function renewed ({ readings }: Sent): Promise<boolean> {
    if (reader === undefined) return false
    if (reader.count === readings) {
      await reader.read()
      if (reader.count > readings) options.events.listChanged('tools')
    }
    return reader.count > readings
  }

  function request (request: Request, client: Client, signal: AbortSignal): Promise<Result> {
    const { method, params } = request
    if (method === 'tools/call' && schemas?.known === false) return Promise.resolve(reader?.read()).then(() => send(request, client, signal))
    if (method === 'ping') return Promise.resolve({})
    if (method === 'logging/setLevel') {
      if (isLogLevel(params?.['level'])) level = params['level']
      return Promise.resolve({})
    }
    const uri = params?.['uri']
    if (method === 'resources/subscribe' && typeof uri === 'string') return watches.subscribe(uri, signal)
    if (method === 'resources/unsubscribe' && typeof uri === 'string') {
      watches.unsubscribe(uri)
      return Promise.resolve({})
    }
    return send(request, client, signal)
  }

  return { request, level: () => level }
}

/** Over stdio no argument is repeated in a header, so an annotation that is invalid takes no tool away. */
function legible (list: Result): Result {
  const { tools } = list
  if (!Array.isArray(tools)) return list
  return {
    ...list,
    tools: (tools as unknown[]).map((tool) => isObject(tool) && isObject(tool['inputSchema']) && typeof paramHeadersOf(tool['inputSchema']) === 'string'
      ? { ...tool, inputSchema: withoutParamHeaders(tool['inputSchema']) }
      : tool)
  }
}
