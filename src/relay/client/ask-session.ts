// Input requests of a modern server (2026-07-28 basic/patterns/mrtr), sent to the client of a session as server
// requests of its own revision; its responses in the form that the server expects.

import { inputRequestCapabilities } from '../../protocol/methods.ts'
import {
  GatewayError,
  isObject,
  isReservedForMcp,
  type JsonObject,
  rpcCodes,
  RpcError,
  type ServerRequest,
  type UpstreamName
} from '../../protocol/messages.ts'
import { withRelatedTask } from '../../protocol/translate/tasks.ts'
import { jsonSizeOf, jsonSizeSteps } from '../../limits/limits.ts'
import type { HeldMemory } from '../../limits/memory.ts'
import { unreachable } from '../../session/pending-server-requests.ts'
import { runSteps } from '../../time/turns.ts'
import type { ServerRequestQuotas } from '../../upstream/rpc/server-requests.ts'
import type { LegacyCall } from '../call/call.ts'
import { declaredCapabilities } from './declared-capabilities.ts'
import { inputRequestOf, malformedInput } from './input-requests.ts'
import { shapeServerRequest } from './server-messages.ts'

/** The client cannot be asked what a server wants to know. `message` is for a person or a model. */
export class ClientCannotAnswer extends Error {
  override readonly name = 'ClientCannotAnswer'
  /** `data.requiredCapabilities`, as 2026-07-28 has it. */
  readonly requiredCapabilities: JsonObject

  constructor(message: string, requiredCapabilities: JsonObject) {
    super(message)
    this.requiredCapabilities = requiredCapabilities
  }
}

// As many as a server may have open at a client of its own revision.
const maxRequests = 32

/**
 * Sends all requests at once; the first failure withdraws the others.
 * @returns `inputResponses`
 * @throws ClientCannotAnswer, where that can be known before any request is sent; RpcError the client's own error;
 * GatewayError upstream_protocol, cancelled, upstream_timeout, too_many
 */
export async function askSession(
  call: LegacyCall,
  {
    upstream,
    requests,
    retained,
    quotas,
    held,
    newElicitationId,
    taskId
  }: {
    readonly upstream: UpstreamName
    /** `inputRequests`. */
    readonly requests: unknown
    /** The requests that stay in memory until the last response is there. */
    readonly retained: JsonObject
    readonly quotas: Pick<ServerRequestQuotas, 'open'>
    /** The responses are counted here; whoever gave it releases it when the server has them, or there was an error. */
    readonly held: HeldMemory
    /** 2025-11-25 requires an id of elicitations by URL; 2026-07-28 has none. */
    readonly newElicitationId: () => string
    /** The id of the task as the client knows it. */
    readonly taskId?: string
  }
): Promise<JsonObject> {
  if (!isObject(requests)) throw malformedInput(upstream, '"inputRequests" that are no object')
  const entries = Object.entries(requests)
  if (entries.length > maxRequests) throw malformedInput(upstream, `more than ${maxRequests} input requests at once`)
  const shaped = entries.map(([key, request]) => {
    const asked = shapeForSession(call, upstream, request, newElicitationId)
    const params = taskId === undefined ? asked.params : withRelatedTask(asked.params ?? {}, taskId)
    return [key, params === undefined ? asked : { ...asked, params }] as const
  })
  const { maxBytes, take } = quotas.open({ tenant: call.session.tenant, name: upstream }, `session ${call.session.key}`)
  if (entries.some(([, request]) => jsonSizeOf(request, maxBytes) > maxBytes)) {
    throw malformedInput(
      upstream,
      `an input request that is too large to be kept until the client answers it: ` +
        `more than ${maxBytes} bytes, with 64 for each JSON value beside its text`
    )
  }
  const release = take(jsonSizeOf(retained))
  if (release === undefined) {
    throw new GatewayError(
      'too_many',
      `Upstream ${upstream} asks for input, but too much waits for clients to answer already. Try again later.`,
      { data: { upstream } }
    )
  }
  const withdrawn = new AbortController()
  const signal = AbortSignal.any([call.signal, withdrawn.signal])
  try {
    return Object.fromEntries(
      await Promise.all(
        shaped.map(async ([key, request]) => {
          const response = await ask(call, upstream, request, signal)
          held.require(await runSteps(jsonSizeSteps(response), held.share), 'The responses to an upstream')
          return [key, response] as const
        })
      )
    )
  } catch (error) {
    withdrawn.abort('another input request of the same call was not answered')
    throw error
  } finally {
    release()
  }
}

async function ask(
  call: LegacyCall,
  upstream: UpstreamName,
  request: ServerRequest,
  signal: AbortSignal
): Promise<unknown> {
  try {
    return await call.client.ask(request, { signal })
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    const { code, message, data } = error.error
    if (isObject(data) && data['reason'] === unreachable) {
      throw new ClientCannotAnswer(
        `Upstream ${upstream} asks for ${request.method}, ` +
          'and this client has no stream open on which it could be asked.' +
          ` Accept text/event-stream, and try again.`,
        requiredFor(request.method)
      )
    }
    const reason = 'client_no_answer'
    throw new RpcError(
      {
        // One that 2026-07-28 reserves would be taken for an error of the gateway.
        code: isReservedForMcp(code) ? rpcCodes.internalError : code,
        message:
          `The client did not answer ${request.method}, which upstream ${upstream} needs: ` + message.slice(0, 300),
        data: { reason, upstream }
      },
      reason
    )
  }
}

function shapeForSession(
  call: LegacyCall,
  upstream: UpstreamName,
  request: unknown,
  newElicitationId: () => string
): ServerRequest {
  const { method, capability, params = {} } = inputRequestOf(request, upstream)
  const byUrl = capability === 'elicitation' && params['mode'] === 'url'
  const { endpoint, session } = call
  const { record } = session.session
  const cannotAnswer = (why: string): ClientCannotAnswer => {
    if (!byUrl)
      return new ClientCannotAnswer(`Upstream ${upstream} asks for ${capability}. ${why}`, requiredFor(method))
    const said = typeof params['message'] === 'string' ? ` (${params['message']})` : ''
    return new ClientCannotAnswer(
      `Upstream ${upstream} asks the user to visit ${String(params['url'])} first${said}. ` +
        `${why} Visit it, then try again.`,
      { elicitation: { url: {} } }
    )
  }
  if (!isObject(declaredCapabilities(record, endpoint, 'legacy')[capability])) {
    throw cannotAnswer(`This client, which speaks revision ${record.revision}, does not offer ${capability}.`)
  }
  try {
    return shapeServerRequest(
      { method, params: byUrl ? { ...params, elicitationId: newElicitationId() } : params },
      upstream,
      endpoint,
      record
    )
  } catch (error) {
    throw error instanceof RpcError ? cannotAnswer(error.message) : error
  }
}

const requiredFor = (method: string): JsonObject => ({ [inputRequestCapabilities.get(method) ?? method]: {} })
