// The input requests of a modern server (2026-07-28 basic/patterns/mrtr), put to the client of a session as requests of its own revision,
// and the answers in the words of the server.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import { has, tasksExtension, uiExtension } from '../protocol/merge.ts'
import { isObject } from '../protocol/messages.ts'
import type { ClientCapabilities, JsonObject, ServerCapabilities, ServerRequest } from '../protocol/messages.ts'
import { capabilityOf } from '../protocol/required.ts'
import { withRelated } from '../protocol/task-bridge.ts'
import { weightOf } from '../protocol/weight.ts'
import { unreachable } from '../session/asks.ts'
import type { AskRooms } from '../upstream/ask-room.ts'
import { isPage, offered, shapeAsk } from './asking.ts'
import type { Call } from './call.ts'

/** The client cannot be asked what a server wants to know. `message` says it to a person or a model. */
export class Unaskable extends Error {
  override readonly name = 'Unaskable'
  /** `data.requiredCapabilities`, as 2026-07-28 would have it. */
  readonly required: JsonObject

  constructor (message: string, required: JsonObject) {
    super(message)
    this.required = required
  }
}

/** What a modern server is told of the client of a session. Tasks are told of where it has them: whether the client knows them is our business. */
export function declaredToModern ({ endpoint, live }: Call, server: ServerCapabilities): ClientCapabilities {
  const { tasks: _old, roots, extensions, ...declared } = offered(endpoint, live.session.record)
  if (isObject(roots)) {
    const { listChanged: _gone, ...rest } = roots
    declared['roots'] = rest
  }
  const known: JsonObject = {}
  if (isObject(extensions) && isObject(extensions[uiExtension])) known[uiExtension] = extensions[uiExtension]
  if (has(server, ['extensions', tasksExtension])) known[tasksExtension] = {}
  if (Object.keys(known).length > 0) declared['extensions'] = known
  return declared
}

export interface AskAll {
  readonly upstream: UpstreamName
  /** `inputRequests` as the server sent them. */
  readonly requests: unknown
  /** All that the server sent with them: it stays in memory until the last answer is there. */
  readonly kept: JsonObject
  readonly askRooms: Pick<AskRooms, 'open'>
  /** Ids of elicitations by URL, which 2025-11-25 has and 2026-07-28 has not. */
  readonly mint: () => string
  /** The task that the questions belong to, as the client knows it. */
  readonly taskId?: string
}

// As many as a server may have open at a client of its own revision.
const maxAsks = 32

/**
 * Asks everything at once; the first failure withdraws the rest.
 * @returns `inputResponses`
 * @throws Unaskable, before anything is asked where that can be known; RpcError the client's own error; GatewayError upstream_protocol, cancelled, upstream_timeout, too_many
 */
export async function askAll (call: Call, { upstream, requests, kept, askRooms, mint, taskId }: AskAll): Promise<JsonObject> {
  if (!isObject(requests)) throw fault(upstream, '"inputRequests" that are no object')
  const entries = Object.entries(requests)
  if (entries.length > maxAsks) throw fault(upstream, `more than ${maxAsks} input requests at once`)
  const shaped = entries.map(([key, request]): [string, ServerRequest] => [key, shapeInput(call, upstream, request, mint)])
  const room = askRooms.open({ tenant: call.live.tenant, name: upstream }, `session ${call.live.key}`)
  if (entries.some(([, request]) => weightOf(request, room.one) > room.one)) throw fault(upstream, `an input request that is too large to be kept until the client answers it: more than ${room.one} bytes, with 64 for each JSON value beside its text`)
  const letGo = room.take(weightOf(kept))
  if (letGo === undefined) throw new GatewayError('too_many', `Upstream ${upstream} asks for input, but too much waits for clients to answer already. Try again later.`, { data: { upstream } })
  const withdrawn = new AbortController()
  const signal = AbortSignal.any([call.signal, withdrawn.signal])
  try {
    const answers = await Promise.all(shaped.map(async ([key, request]) =>
      [key, await ask(call, upstream, taskId === undefined ? request : { ...request, params: withRelated(request.params ?? {}, taskId) }, signal)] as const))
    return Object.fromEntries(answers)
  } catch (error) {
    withdrawn.abort('another question of the same call was not answered')
    throw error
  } finally {
    letGo()
  }
}

async function ask (call: Call, upstream: UpstreamName, request: ServerRequest, signal: AbortSignal): Promise<unknown> {
  try {
    return await call.client.ask(request, { signal })
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    const { code, message, data } = error.error
    if (isObject(data) && data['reason'] === unreachable) {
      throw new Unaskable(`Upstream ${upstream} asks for ${request.method}, and this client has no stream open on which it could be asked. Accept text/event-stream, and try again.`, needed(request.method))
    }
    // Those of 2026-07-28 would be taken for ours.
    throw new RpcError({ code: code <= -32_020 && code >= -32_099 ? -32_603 : code, message: `The client did not answer ${request.method}, which upstream ${upstream} needs: ${message.slice(0, 300)}` })
  }
}

function shapeInput (call: Call, upstream: UpstreamName, request: unknown, mint: () => string): ServerRequest {
  const capability = isObject(request) ? capabilityOf(request['method']) : undefined
  if (!isObject(request) || capability === undefined) throw fault(upstream, 'an input request of a kind that 2026-07-28 does not have')
  const method = String(request['method'])
  const params = request['params'] ?? (capability === 'roots' ? {} : undefined)
  if (!isObject(params)) throw fault(upstream, 'an input request without params')
  const url = capability === 'elicitation' && params['mode'] === 'url'
  if (url && !isPage(params['url'])) throw fault(upstream, 'an elicitation whose URL is not http or https')
  const { endpoint, live: { session: { record } } } = call
  const cannot = (why: string): Unaskable => url
    ? new Unaskable(`Upstream ${upstream} asks the user to visit ${String(params['url'])} first${typeof params['message'] === 'string' ? ` (${params['message']})` : ''}. ${why} Visit it, then try again.`, { elicitation: { url: {} } })
    : new Unaskable(`Upstream ${upstream} asks for ${capability}. ${why}`, needed(method))
  if (!isObject(offered(endpoint, record)[capability])) throw cannot(`This client, which speaks revision ${record.revision}, does not offer ${capability}.`)
  try {
    // 2025-11-25 client/elicitation: required there, for a notification that no modern server sends.
    return shapeAsk({ method, params: url ? { ...params, elicitationId: mint() } : params }, upstream, endpoint, record)
  } catch (error) {
    if (error instanceof RpcError) throw cannot(error.message)
    throw error
  }
}

function needed (method: string): JsonObject {
  return { [capabilityOf(method) ?? method]: {} }
}

const fault = (upstream: UpstreamName, what: string): GatewayError =>
  new GatewayError('upstream_protocol', `Upstream ${upstream} answered with ${what}.`, { data: { upstream } })
