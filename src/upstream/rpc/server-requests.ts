// Requests that a server sends to us: ping is answered here; sampling, elicitation and roots go to the client whose
// call they belong to, or to the owner of the connection, as the receiver says (SEP-2260).

import { legacyServerRequests } from '../../protocol/methods.ts'
import {
  errorMessage,
  GatewayError,
  isObject,
  type JsonObject,
  notificationMessage,
  type RequestId,
  responseMessage,
  rpcCodes,
  type ServerRequest
} from '../../protocol/messages.ts'
import { errorObject } from '../../protocol/translate/error-object.ts'
import { createQuota, createTokenBucket, jsonSizeOf } from '../../limits/limits.ts'
import { createMemoryAccount, withMemory } from '../../limits/memory.ts'
import type { ServerRequestOptions } from '../../protocol/seams.ts'
import type { LinkContext } from './transport.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { OpenCall } from './receiver.ts'

type Ask = (
  request: ServerRequest,
  options: Required<Pick<ServerRequestOptions, 'signal' | 'progress'>>
) => Promise<unknown>

interface Origin {
  readonly call: OpenCall
  /** Whether the stream names the call, or there is only one that it can be. */
  readonly certain: boolean
}

// For each call: no person can answer more. A request on the stream of a call counts for that call, so that a flood
// there does not use up the limits of other calls.
const limitOfCall = { perSecond: 10, burst: 20, open: 32 }
// For each connection: one caller may have 64 calls that wait.
const limitOfConnection = { perSecond: 50, burst: 100, open: 256 }
const MiB = 1024 * 1024
/**
 * The most bytes, as `jsonSizeOf` counts them: of one request, and of all waiting ones of a connection (of a modern
 * server: of a session), of an upstream, of a tenant, and of the process.
 */
const defaultLimits = { request: MiB, connection: 4 * MiB, upstream: 8 * MiB, tenant: 16 * MiB, all: 64 * MiB }

/** A group of requests with one limit: those of one call, or all those whose call no stream names. */
export type Tally = ReturnType<typeof newTally>

const newTally = (clock: LinkContext['clock']) => ({
  bucket: createTokenBucket(clock, limitOfCall.perSecond, limitOfCall.burst),
  open: 0
})

interface OpenRequest {
  readonly withdrawn: AbortController
  readonly origin: Origin | undefined
  readonly tally: Tally
  /** Releases its bytes in the quota. */
  readonly release: () => void
}

export type ServerRequests = ReturnType<typeof createServerRequests>

/** @param send sends a response to the server; `call`: the call that goes on with it */
export function createServerRequests(
  { handshake: { capabilities }, serverRequestQuota: quota, clock, warnings }: LinkContext,
  send: (message: JsonObject, call?: OpenCall) => void
) {
  const open = new Map<RequestId, OpenRequest>()
  const bucket = createTokenBucket(clock, limitOfConnection.perSecond, limitOfConnection.burst)
  const unnamed = newTally(clock)
  let over = false

  function remove(id: RequestId): OpenRequest | undefined {
    const request = open.get(id)
    if (request === undefined) return undefined
    open.delete(id)
    request.tally.open--
    request.release()
    return request
  }

  const refuse = (id: RequestId, code: number, message: string): void => send(errorMessage(id, { code, message }))
  const refuseAs = (id: RequestId, code: 'cancelled' | 'too_many', message: string, call?: OpenCall): void =>
    send(errorMessage(id, errorObject(new GatewayError(code, message), '')), call)

  function withdraw(matches: (origin: Origin) => boolean): void {
    for (const [id, { withdrawn, origin }] of open) {
      if (origin === undefined || !matches(origin)) continue
      remove(id)
      refuseAs(id, 'cancelled', 'The call that this request belongs to has ended.')
      withdrawn.abort('the call has ended')
    }
  }

  /** Withdraws all requests without a response, because the server has forgotten them. */
  function withdrawAll(reason: string): void {
    const all = [...open.values()]
    for (const id of open.keys()) remove(id)
    for (const { withdrawn } of all) withdrawn.abort(reason)
  }

  function forward(id: RequestId, request: ServerRequest, ask: Ask, entry: OpenRequest): void {
    const isOpen = (): boolean => open.get(id) === entry
    const answer = (message: JsonObject): void => {
      if (!isOpen()) return
      remove(id)
      send(message, entry.origin?.call)
    }
    const progress = (params: JsonObject): void => {
      if (isOpen()) send(notificationMessage({ method: 'notifications/progress', params }))
    }
    open.set(id, entry)
    entry.tally.open++
    ask(request, { signal: entry.withdrawn.signal, progress }).then(
      (result) => answer(responseMessage(id, isObject(result) ? result : {})),
      (error: unknown) => answer(errorMessage(id, errorObject(error, '')))
    )
  }

  return {
    /** @param origin the call that the request is about */
    receive(id: RequestId, request: ServerRequest, ask: Ask, origin?: Origin): void {
      const { method, params } = request
      if (over) return
      // The gateway answers pings itself (2025-11-25 basic/utilities/ping).
      if (method === 'ping') return send(responseMessage(id, {}))
      const capability = legacyServerRequests.get(method)
      if (capability === undefined)
        return refuse(id, rpcCodes.methodNotFound, 'No client can be asked this: MCP has no such request of servers.')
      // Servers repeat this message in the result of their tool, so it says what to change.
      if (!isObject(capabilities[capability]))
        return refuse(
          id,
          rpcCodes.methodNotFound,
          `This client did not declare "${capability}", so it cannot be asked ${method}.`
        )
      if (open.has(id)) return refuse(id, rpcCodes.invalidRequest, 'A request with this id is already open.')
      const bytes = jsonSizeOf(params, quota.maxBytes)
      if (bytes > quota.maxBytes) {
        warnings.warn({ method }, 'refused a request of the upstream: it is too large')
        return refuse(
          id,
          rpcCodes.invalidParams,
          'This request is too large to be kept until a client answers it: ' +
            `more than ${quota.maxBytes} bytes, with 64 for each JSON value beside its text.`
        )
      }
      const tally = origin?.certain === true ? (origin.call.serverRequestTally ??= newTally(clock)) : unnamed
      const full = tally.open >= limitOfCall.open || open.size >= limitOfConnection.open
      if (full || !tally.bucket.take() || !bucket.take())
        return refuseAs(id, 'too_many', 'Too many requests to the client; ask less often.', origin?.call)
      const release = quota.take(bytes)
      if (release === undefined) {
        warnings.warn({ method }, 'refused a request of the upstream: too much waits for clients to answer already')
        const tooMuch = 'Too much waits for clients to answer already; ask again later, or for less.'
        return refuseAs(id, 'too_many', tooMuch, origin?.call)
      }
      forward(id, request, ask, { withdrawn: new AbortController(), origin, tally, release })
    },

    /** The server withdrew its request. */
    cancelled(id: RequestId, reason: string | undefined): void {
      remove(id)?.withdrawn.abort(reason)
    },

    /** A call has ended: requests on its stream are withdrawn at the client, and answered with an error. */
    ended(call: OpenCall): void {
      withdraw((origin) => origin.call === call && origin.certain)
    },
    /** A call was cancelled: also withdraws the requests that came meanwhile if no other call can be meant. */
    abandoned(call: OpenCall): void {
      withdraw((origin) => origin.call === call)
    },

    withdrawAll,
    /** The connection has ended: no request is accepted any more. */
    end(reason: string): void {
      over = true
      withdrawAll(reason)
    }
  }
}

export type ServerRequestQuota = ReturnType<ServerRequestQuotas['open']>

export type ServerRequestQuotas = ReturnType<typeof createServerRequestQuotas>

/**
 * Limits the memory of server requests that wait for an answer in one process. A request of a legacy server counts
 * until it is answered or withdrawn; `relay/bridge` counts the input requests of modern servers.
 */
export function createServerRequestQuotas(limits = defaultLimits, memory = createMemoryAccount()) {
  const quota = createQuota()
  let connections = 0
  return {
    /** @param holder whose requests count together; default: a new connection */
    open({ tenant, name }: Pick<UpstreamDefinition, 'tenant' | 'name'>, holder = `connection ${++connections}`) {
      const accounts = [
        [holder, limits.connection],
        [`upstream ${tenant} ${name}`, limits.upstream],
        [`tenant ${tenant}`, limits.tenant],
        ['all', limits.all]
      ] as const
      const share = memory.share(tenant, `requests of ${name}`)
      return {
        /** The most bytes of a single request. */
        maxBytes: limits.request,
        /** @returns a function that releases the bytes, to be called once; undefined: a limit is reached */
        take(bytes: number): (() => void) | undefined {
          const release = quota.take(bytes, accounts)
          return release && withMemory(share, bytes, release)
        }
      } as const
    },
    /** The number of quotas in use: of connections, upstreams, tenants and the process. */
    get size() {
      return quota.size
    }
  }
}
