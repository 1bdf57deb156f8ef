// What a server asks of a client, made fit for that client: which of its capabilities a server may use, who asks, and in which shape.

import type { Endpoint, UpstreamDefinition } from '../config/snapshot.ts'
import { RpcError } from '../protocol/errors.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import { isObject } from '../protocol/messages.ts'
import type { ClientCapabilities, JsonObject, Notification, ServerRequest } from '../protocol/messages.ts'
import { wrapUri } from '../protocol/naming.ts'
import { atLeast } from '../protocol/revisions.ts'
import type { Revision } from '../protocol/revisions.ts'
import { rewriteSampling } from '../protocol/rewrite.ts'
import { shapeRequestedSchema, shapeSamplingMessages } from '../protocol/shape.ts'
import { withoutRelatedTask } from '../protocol/task-bridge.ts'

/** Who would be asked: a session, or whoever made a request of 2026-07-28. */
export interface Asked {
  readonly revision: Revision
  readonly capabilities: ClientCapabilities
}

/**
 * What we declare to an upstream on behalf of a client: never more than the client declared and its revision knows. A connection that
 * several sessions share declares nothing, because its server could not say whom it asks.
 */
export function declaredTo (definition: UpstreamDefinition, endpoint: Endpoint, asked: Asked): ClientCapabilities {
  return definition.isolation === 'session' ? offered(endpoint, asked) : {}
}

/** What a client declared and its revision knows, in so far as it passes through the endpoint. */
export function offered (endpoint: Endpoint, { revision, capabilities }: Asked): ClientCapabilities {
  const declared: JsonObject = {}
  for (const name of ['roots', 'sampling', 'elicitation', 'tasks', 'extensions', ...aggregated(endpoint) ? [] : ['experimental']]) {
    if (isObject(capabilities[name])) declared[name] = capabilities[name]
  }
  // Elicitation came with 2025-06-18; its modes, tools in sampling, and tasks with 2025-11-25.
  if (!atLeast(revision, '2025-06-18')) delete declared['elicitation']
  if (!atLeast(revision, '2025-11-25')) delete declared['tasks']
  if (!atLeast(revision, '2025-11-25')) for (const name of ['sampling', 'elicitation']) if (declared[name] !== undefined) declared[name] = {}
  // "This server" would mean all the servers behind the endpoint.
  if (aggregated(endpoint) && isObject(declared['sampling'])) declared['sampling'] = without(declared['sampling'], 'context')
  return declared
}

/**
 * A request of an upstream as the client gets it.
 * @throws RpcError -32602 where the client did not declare what is asked for, or its revision has no form for it
 */
export function shapeAsk ({ method, params: given }: ServerRequest, upstream: UpstreamName, endpoint: Endpoint, asked: Asked): ServerRequest {
  if (given === undefined) return { method }
  // Of a task that the client knows nothing of: the gateway follows it (relay/fulfil).
  const params = atLeast(asked.revision, '2025-11-25') ? given : withoutRelatedTask(given)
  if (method === 'elicitation/create') return { method, params: shapeElicitation(params, upstream, endpoint, asked) }
  if (method === 'sampling/createMessage') return { method, params: shapeSampling(params, upstream, endpoint, asked) }
  return { method, params }
}

function shapeElicitation (params: JsonObject, upstream: UpstreamName, endpoint: Endpoint, { revision, capabilities }: Asked): JsonObject {
  const { mode: wanted = 'form' } = params
  if (wanted !== 'form' && wanted !== 'url') throw refusal('"mode" of an elicitation must be "form" or "url".')
  const url = wanted === 'url'
  const declared = isObject(capabilities['elicitation']) ? capabilities['elicitation'] : {}
  // 2025-11-25 client/elicitation: an empty object means form mode only; -32602 is what a client would answer.
  const offered = url ? isObject(declared['url']) && atLeast(revision, '2025-11-25') : isObject(declared['form']) || !isObject(declared['url'])
  if (!offered) throw refusal(`This client did not declare, in revision ${revision}, "elicitation.${url ? 'url' : 'form'}", so it cannot be asked in ${url ? 'URL' : 'form'} mode.`)
  // Whatever the client makes of it: nothing but a page is opened (security: javascript:, file:).
  if (url && !isPage(params['url'])) throw refusal('"url" of an elicitation must be an https:// or http:// URL.')
  const { url: _page, ...form } = params
  const given = url ? params : form
  const shaped = named(atLeast(revision, '2025-11-25') ? given : without(given, 'mode'), upstream, endpoint)
  if (!isObject(shaped['requestedSchema'])) return shaped
  const requestedSchema = shapeRequestedSchema(shaped['requestedSchema'], revision)
  if (requestedSchema === undefined) throw refusal(`The client speaks revision ${revision}, which has no form for a choice of several values.`)
  return { ...shaped, requestedSchema }
}

function shapeSampling (params: JsonObject, upstream: UpstreamName, endpoint: Endpoint, { revision, capabilities }: Asked): JsonObject {
  const declared = isObject(capabilities['sampling']) ? capabilities['sampling'] : {}
  // 2025-11-25 client/sampling: a client that has not declared sampling.tools must be sent none.
  const tools = isObject(declared['tools']) && atLeast(revision, '2025-11-25')
  if (!tools && (params['tools'] !== undefined || params['toolChoice'] !== undefined)) throw refusal(`This client did not declare, in revision ${revision}, "sampling.tools", so it cannot be asked for sampling with tools.`)
  const messages = Array.isArray(params['messages']) ? shapeSamplingMessages(params['messages'], revision) : params['messages']
  if (messages === undefined && params['messages'] !== undefined) throw refusal(`The client speaks revision ${revision}, which has no form for some of the content of the messages.`)
  const known = messages === params['messages'] ? params : { ...params, messages }
  if (!aggregated(endpoint)) return known
  const shown = rewriteSampling(known, (uri) => wrapUri(upstream, uri))
  return shown['includeContext'] === undefined ? shown : { ...shown, includeContext: 'none' }
}

export const isPage = (url: unknown): boolean => typeof url === 'string' && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

const refusal = (message: string): RpcError => new RpcError({ code: -32602, message })

/** An elicitation, asked or demanded by error -32042, with who asks (2025-11-25 client/elicitation) and an id unique in the endpoint. */
export function named (elicitation: JsonObject, upstream: UpstreamName, endpoint: Endpoint): JsonObject {
  if (!aggregated(endpoint)) return elicitation
  const { message, elicitationId } = elicitation
  return {
    ...elicitation,
    ...(typeof message === 'string' && { message: `[${upstream}] ${message}` }),
    ...(typeof elicitationId === 'string' && { elicitationId: elicitationIdOf(elicitationId, upstream) })
  }
}

/** `notifications/elicitation/complete` with the id that the client knows. */
export function namedCompletion (notification: Notification, upstream: UpstreamName, endpoint: Endpoint): Notification {
  const id = notification.params?.['elicitationId']
  if (!aggregated(endpoint) || typeof id !== 'string') return notification
  return { method: notification.method, params: { ...notification.params, elicitationId: elicitationIdOf(id, upstream) } }
}

// Reversible by nobody but unique: names of upstreams differ, and no id of one upstream can look like that of another.
const elicitationIdOf = (id: string, upstream: UpstreamName): string => `${upstream}:${id}`

export const aggregated = ({ members }: Endpoint): boolean => members.length > 1

function without (object: JsonObject, member: string): JsonObject {
  const { [member]: _left, ...rest } = object
  return rest
}
