// Requests to a server of 2026-07-28, beyond one exchange each: what clients of older revisions say to a session is answered here, and
// two refusals, which mean that nothing was executed, are mended once.

import { GatewayError, RpcError } from '../../protocol/errors.ts'
import { isLogLevel } from '../../protocol/levels.ts'
import { isModernRevision } from '../../protocol/revisions.ts'
import { deadline } from '../clock.ts'
import { nobody } from '../exchange.ts'
import { supportedBy } from './probe.ts'
import type { Log } from '../../observe/log.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { LogLevel } from '../../protocol/levels.ts'
import type { Request, Result } from '../../protocol/messages.ts'
import type { ModernRevision } from '../../protocol/revisions.ts'
import type { Client } from '../../protocol/seams.ts'
import type { Clock } from '../clock.ts'
import type { Exchange } from '../exchange.ts'
import type { Schemas } from './schemas.ts'
import type { Watches } from './watches.ts'

export interface RequestsOptions {
  readonly name: UpstreamName
  readonly connectMs: number
  readonly clock: Clock
  readonly log: Log
  readonly watches: Watches
  /** Where arguments are repeated in headers. */
  readonly schemas: Schemas | undefined
  exchange (): Exchange
  /** The server wants to be spoken to in this revision. */
  speak (version: ModernRevision): void
  /** The server has no revision of this era any more. */
  left (): void
}

export interface Requests {
  /** See `Upstream.request`. */
  readonly request: Exchange['request']
  /** What clients with a session have asked for by `logging/setLevel`. */
  level (): LogLevel | undefined
}

const maxPages = 100
const mismatch = -32020
const unsupported = -32022

export function createRequests (options: RequestsOptions): Requests {
  const { name, connectMs, clock, log, watches, schemas } = options
  let level: LogLevel | undefined
  let listing: Promise<void> | undefined

  /** Reads the tools again, for the headers of calls. Once for all who need it at the same time. */
  function relist (): Promise<void> {
    return listing ??= readTools().finally(() => { listing = undefined })
  }

  async function readTools (): Promise<void> {
    const limit = deadline(clock, connectMs, undefined)
    const cursors = new Set<unknown>()
    try {
      for (let cursor: unknown; cursors.size < maxPages;) {
        const result = await options.exchange().request({ method: 'tools/list', ...cursor === undefined ? {} : { params: { cursor } } }, nobody, limit.signal)
        schemas?.learn(result)
        cursor = result['nextCursor']
        if (typeof cursor !== 'string' || cursors.has(cursor)) return
        cursors.add(cursor)
      }
    } catch (err) {
      log.warn({ err, upstream: name }, 'the tools of the upstream could not be read for the headers of calls')
    } finally {
      limit.close()
    }
  }

  function send (request: Request, client: Client, signal: AbortSignal, again = false): Promise<Result> {
    const result = options.exchange().request(request, client, signal)
    const learnt = request.method !== 'tools/list' || schemas === undefined ? result : result.then((list) => {
      schemas.learn(list)
      return list
    })
    return learnt.catch((error: unknown) => mended(error, request, client, signal, again))
  }

  async function mended (error: unknown, request: Request, client: Client, signal: AbortSignal, again: boolean): Promise<Result> {
    if (!(error instanceof RpcError)) throw error
    const { code, message } = error.error
    if (code === mismatch) {
      // 2026-07-28 basic/transports/streamable-http "Client Behavior": the schema may have changed.
      if (again || schemas === undefined || request.method !== 'tools/call') {
        throw new GatewayError('upstream_protocol', `Upstream ${name} does not accept the headers of the request, so it was not executed. Does a proxy in front of it change headers? It said: ${message.slice(0, 300)}`, { cause: error, data: { upstream: name } })
      }
      await relist()
      return await send(request, client, signal, true)
    }
    if (code === unsupported) {
      const supported = supportedBy(error.error)
      const version = supported.find(isModernRevision)
      if (version !== undefined && !again) {
        options.speak(version)
        return await send(request, client, signal, true)
      }
      if (version === undefined) options.left()
      throw new GatewayError('upstream_unavailable', `Upstream ${name} no longer speaks revision 2026-07-28, so the request was not executed. Try again.`, { cause: error, data: { upstream: name } })
    }
    throw error
  }

  function request (request: Request, client: Client, signal: AbortSignal): Promise<Result> {
    const { method, params } = request
    if (method === 'tools/call' && schemas?.known === false) return relist().then(() => send(request, client, signal))
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
