// POSTs to an endpoint in the form that nearly all of them have go past Fastify and, where they come in one piece, past
// Node's server; so do DELETEs that come in one piece. They pass the same checks in the same order as all others, and
// whatever is unusual about a request, or refused by its path, leaves it to those.

import type { IncomingHttpHeaders, IncomingMessage, RequestListener, Server } from 'node:http'
import type { Snapshot } from '../../config/snapshot.ts'
import type { RouteReply, RouteRequest, PathParams, ServerState } from '../admission.ts'
import type { createBodyReader } from '../body.ts'
import { steadyClock } from '../../time/clock.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'
import { turnShares } from '../../time/turn-shares.ts'
import { freeBuffer } from '../../limits/free-buffer.ts'
import { CountedRequest } from '../counted-request.ts'
import type { ClientReply, ClientRequest, ReadId, ReplyHeaders } from '../reply.ts'
import type { AdmittedRoute } from '../routes.ts'
import type { RequestHead } from './request-head.ts'

interface UsualRequestsOptions {
  readonly state: ServerState
  /** In bytes. */
  readonly bodyLimit: number
  readonly routes: Readonly<Record<RequestHead['method'], AdmittedRoute>>
  readonly requestId: () => string
  /** @throws GatewayError */
  readonly checkHostAndOrigin: (incoming: ClientRequest, isOriginAllowed: boolean) => void
  readonly readBody: ReturnType<typeof createBodyReader>
  readonly refuse: (request: RouteRequest, reply: RouteReply, error: unknown, id: ReadId) => void
}

/** What Fastify's router would find. */
interface Found {
  readonly params: PathParams
  readonly routeOptions: { readonly url: string }
}

/**
 * Puts itself in front of the listener that the server has for requests.
 * @returns serves those, too, that were read past the server
 */
export function serveUsualRequests(server: Server, options: UsualRequestsOptions) {
  const { state, bodyLimit, requestId, checkHostAndOrigin, routes, readBody, refuse } = options
  const [routed] = server.listeners('request') as [RequestListener]
  let known: { readonly snapshot: Snapshot; readonly paths: ReadonlyMap<string, Found> } | undefined

  function find(method: RequestHead['method'], url: string, headers: IncomingHttpHeaders): Found | undefined {
    // CORS has headers to say.
    if (headers.origin !== undefined) return undefined
    const isPost = method === 'POST'
    if (isPost && headers['content-type'] !== 'application/json') return undefined
    if (isPost && !(Number(headers['content-length']) <= bodyLimit)) return undefined
    const { snapshot, leaving, draining } = state
    if (leaving || draining || !server.listening) return undefined
    if (known?.snapshot !== snapshot) known = { snapshot, paths: pathsOf(snapshot) }
    return known.paths.get(url)
  }

  /** @param receive calls back with the body */
  function serve(
    { raw, response }: { readonly raw: ClientRequest; readonly response: ClientReply },
    found: Found,
    receive: (read: (bytes: Buffer) => void, failed: (error: unknown) => void, owner: WorkOwner) => void
  ): void {
    const { method = '', url = '', headers } = raw
    const route = routes[method === 'DELETE' ? method : 'POST']
    const reply = new Reply(response)
    const request: RouteRequest = {
      raw,
      id: requestId(),
      method,
      url,
      headers,
      body: undefined,
      context: undefined,
      since: steadyClock.now(),
      ...found
    }
    const refused = (error: unknown): void => refuse(request, reply, error, null)
    const handle = (message: unknown): void => {
      request.body = message
      route.handler(request, reply)
    }
    // In one go, so that bodies of a session are read in the order in which they came, whichever way.
    const read = (bytes: Buffer): void => {
      try {
        const message = method === 'DELETE' ? undefined : readBody(request, bytes)
        if (message instanceof Promise) message.then(handle, refused)
        else handle(message)
      } catch (error) {
        refused(error)
      }
    }
    try {
      checkHostAndOrigin(raw, true)
      const waits = route.onRequest(request, reply)
      const begin = (): void => receive(read, refused, request.context?.memory.share ?? nobody)
      if (waits === undefined) begin()
      else waits.then(begin, refused)
    } catch (error) {
      refused(error)
    }
  }

  server.off('request', routed).on('request', (raw, response) => {
    const found = raw.method === 'POST' ? find('POST', raw.url ?? '', raw.headers) : undefined
    if (found === undefined) return routed(raw, response)
    if (raw instanceof CountedRequest) raw.response = response
    serve({ raw, response }, found, (read, failed, owner) => receiveBody(raw, owner, read, failed))
  })

  return {
    isOpen: (): boolean => server.listening && !state.leaving,
    /** @returns whether `serve` takes it */
    accepts: ({ method, url, headers }: RequestHead): boolean => find(method, url, headers) !== undefined,
    /** Answers a request that was accepted in this turn of the event loop. */
    serve(raw: ClientRequest, response: ClientReply, body: Buffer): void {
      const found = find(raw.method === 'DELETE' ? 'DELETE' : 'POST', raw.url ?? '', raw.headers)
      if (found === undefined) throw new Error('a request is served that was not accepted')
      serve({ raw, response }, found, (read) => read(body))
    }
  }
}

/** Of the endpoints, as their configuration spells them. */
function pathsOf({ tenants }: Snapshot): ReadonlyMap<string, Found> {
  const paths = new Map<string, Found>()
  for (const { id: tenant, endpoints } of tenants.values()) {
    for (const { name, path } of endpoints.values()) {
      if (name === 'default') paths.set(path, { params: { tenant }, routeOptions: { url: '/t/:tenant/mcp' } })
      else paths.set(path, { params: { tenant, endpoint: name }, routeOptions: { url: '/t/:tenant/:endpoint/mcp' } })
    }
  }
  return paths
}

/** Without an origin no header is prepared. */
class Reply implements RouteReply {
  readonly raw: RouteReply['raw']
  constructor(raw: RouteReply['raw']) {
    this.raw = raw
  }
  hijack(): void {}
  hasHeader(): boolean {
    return false
  }
  getHeaders(): ReplyHeaders {
    return {}
  }
}

const nobody: WorkOwner = { tenant: '', caller: '' }
/** What Node takes for a part of a body, of 64 KiB at most. */
const partMs = 0.1

/**
 * Node ends a body where its Content-Length says, and fails one that is shorter. It reads all sockets that are ready in
 * one turn of the event loop: one whose tenant has had its share of the turn is read on in a later one.
 */
function receiveBody(
  raw: IncomingMessage,
  owner: WorkOwner,
  read: (bytes: Buffer) => void,
  failed: (error: Error) => void
): void {
  const chunks: Buffer[] = []
  const onData = (chunk: Buffer): void => {
    chunks.push(chunk)
    if (turnShares.take(owner.tenant)) return
    raw.pause()
    turnShares.later(() => raw.resume(), owner, partMs)
  }
  const stop = (): unknown => raw.off('data', onData).off('end', onEnd).off('error', onError)
  const onEnd = (): void => {
    stop()
    const [first] = chunks
    if (first !== undefined && chunks.length === 1) return read(first)
    const whole = Buffer.concat(chunks)
    chunks.forEach(freeBuffer)
    read(whole)
  }
  const onError = (error: Error): void => {
    stop()
    failed(error)
  }
  raw.on('data', onData).on('end', onEnd).on('error', onError)
}
