// What an older upstream asks during a call, as an input request of 2026-07-28 (client/elicitation, client/sampling, client/roots), and
// the client's answers to it.

import type { Endpoint } from '../../config/snapshot.ts'
import { GatewayError, RpcError } from '../../protocol/errors.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import { isObject } from '../../protocol/messages.ts'
import type { ClientCapabilities, JsonObject, ServerRequest } from '../../protocol/messages.ts'
import { relatedTask } from '../../protocol/tasks.ts'
import { shapeInputRequest } from './input.ts'

/** @throws RpcError -32602: the client did not declare it, or it has not the form of 2026-07-28; the upstream is told, and its call goes on */
export function inputRequestOf ({ method, params }: ServerRequest, upstream: UpstreamName, endpoint: Endpoint, capabilities: ClientCapabilities): JsonObject {
  const fault = faultOf(method, params ?? {})
  // Clients fail the whole call over an input request that they cannot read, and nobody would ever answer it.
  if (fault !== undefined) throw new RpcError({ code: -32602, message: `${fault} in ${method}.` })
  try {
    return shapeInputRequest(params === undefined ? { method } : { method, params: withoutOld(params) }, upstream, endpoint, capabilities)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw error.cause instanceof RpcError ? error.cause : new RpcError({ code: -32602, message: 'The client cannot be asked this: it did not declare it, or the request is malformed.' })
  }
}

const fieldTypes: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'array'])

/** What 2026-07-28 requires of the params and is not there (schema: ElicitRequestFormParams, ElicitRequestURLParams, CreateMessageRequestParams). */
function faultOf (method: string, params: JsonObject): string | undefined {
  if (method === 'sampling/createMessage') {
    if (!Array.isArray(params['messages'])) return '"messages" must be an array'
    return typeof params['maxTokens'] === 'number' ? undefined : '"maxTokens" must be a number'
  }
  if (method !== 'elicitation/create') return undefined
  if (typeof params['message'] !== 'string') return '"message" must be a string'
  if (params['mode'] === 'url') return undefined // Its URL is looked at anyway.
  const schema = params['requestedSchema']
  if (!isObject(schema) || schema['type'] !== 'object' || !isObject(schema['properties'])) return '"requestedSchema" must be an object with "type": "object" and "properties"'
  const nested = Object.entries(schema['properties']).find(([, field]) => !isObject(field) || !fieldTypes.has(field['type']))
  return nested === undefined ? undefined : `"requestedSchema.properties.${nested[0].slice(0, 100)}" must be of type string, number, integer, boolean or array`
}

/** Members that 2026-07-28 does not have: ids of elicitations, tasks that clients host, progress of what is asked. */
function withoutOld (params: JsonObject): JsonObject {
  const { elicitationId: _id, task: _task, _meta, ...rest } = params
  if (!isObject(_meta)) return rest
  const { progressToken: _token, [relatedTask]: _related, ...meta } = _meta
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta }
}

/** Is it the result of such a request? What is in it beyond that is the upstream's to judge. */
export function isAnswerTo (method: string, answer: unknown): answer is JsonObject {
  if (!isObject(answer)) return false
  switch (method) {
    case 'elicitation/create': return actions.has(answer['action']) && (answer['content'] === undefined || isObject(answer['content']))
    case 'sampling/createMessage': return typeof answer['role'] === 'string' && typeof answer['model'] === 'string' && (isObject(answer['content']) || Array.isArray(answer['content']))
    default: return Array.isArray(answer['roots']) && answer['roots'].every((root) => isObject(root) && typeof root['uri'] === 'string')
  }
}

const actions: ReadonlySet<unknown> = new Set(['accept', 'decline', 'cancel'])

/** What an upstream is answered when nobody does: a person who turned away, or nobody to ask at all. @throws RpcError */
export function noAnswerTo ({ method }: ServerRequest): JsonObject {
  if (method === 'elicitation/create') return { action: 'cancel' }
  // The code that 2025-11-25 client/sampling has for a person who said no.
  throw new RpcError({ code: -1, message: 'The client did not answer.' })
}

/** For what is asked outside of the three requests that can come back with questions (basic/patterns/mrtr). */
export const nobodyAsked = ({ method }: ServerRequest): Promise<unknown> => method === 'elicitation/create'
  ? Promise.resolve({ action: 'cancel' })
  : Promise.reject(new RpcError({ code: -32601, message: 'A client of 2026-07-28 can only be asked during tools/call, prompts/get and resources/read.' }))
