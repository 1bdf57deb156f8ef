// Input requests (2026-07-28 basic/patterns/mrtr) as the client gets them, from modern servers and from server requests
// of legacy ones. Refuses what the client did not declare and what 2026-07-28 has no form for.

import type { Endpoint } from '../../config/snapshot.ts'
import { inputRequestCapabilities } from '../../protocol/methods.ts'
import {
  type ClientCapabilities,
  GatewayError,
  isObject,
  type JsonObject,
  latestModern,
  rpcCodes,
  RpcError,
  type ServerRequest,
  type UpstreamName
} from '../../protocol/messages.ts'
import { relatedTaskKey } from '../../protocol/translate/tasks.ts'
import { isWebUrl, shapeServerRequest } from './server-messages.ts'

/** @throws GatewayError invalid_params where the `inputResponses` of a request are no object */
export function requireInputResponses(responses: unknown): JsonObject {
  if (isObject(responses)) return responses
  throw new GatewayError('invalid_params', '"inputResponses" must be an object.')
}

/** The capabilities for tasks: what they may ask for was agreed on when the task was made, by another request. */
export const allInputCapabilities: ClientCapabilities = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: {}
}

/**
 * Input requests of a modern server. Keys stay as they are: they mean something in this request only.
 * @param capabilities of the client that is asked
 * @throws GatewayError upstream_protocol: no input request, or one for something that the client did not declare
 */
export function shapeInputRequests(
  requests: unknown,
  upstream: UpstreamName,
  endpoint: Endpoint,
  capabilities: ClientCapabilities
): JsonObject {
  if (!isObject(requests)) throw malformedInput(upstream, '"inputRequests" that are no object')
  // Assignment would take a key named __proto__ for the prototype.
  return Object.fromEntries(
    Object.entries(requests).map(([key, request]) => [
      key,
      shapeInputRequest(request, upstream, endpoint, capabilities)
    ])
  )
}

function shapeInputRequest(
  request: unknown,
  upstream: UpstreamName,
  endpoint: Endpoint,
  capabilities: ClientCapabilities
): JsonObject {
  const { method, params } = inputRequestOf(request, upstream, capabilities)
  if (params === undefined) {
    const { params: _absent, ...others } = request as JsonObject
    return others
  }
  try {
    return {
      ...(request as JsonObject),
      ...shapeServerRequest({ method, params }, upstream, endpoint, { revision: latestModern, capabilities })
    }
  } catch (error) {
    throw error instanceof RpcError
      ? malformedInput(upstream, 'an input request for something that the client did not declare', error)
      : error
  }
}

/**
 * @param capabilities what may be asked; any where they are checked elsewhere
 * @returns without params: a request for roots
 * @throws GatewayError upstream_protocol
 */
export function inputRequestOf(
  request: unknown,
  upstream: UpstreamName,
  capabilities?: ClientCapabilities
): { readonly method: string; readonly capability: string; readonly params: JsonObject | undefined } {
  const capability = isObject(request) ? inputRequestCapabilities.get(request['method']) : undefined
  if (!isObject(request) || capability === undefined)
    throw malformedInput(upstream, 'an input request of a kind that 2026-07-28 does not have')
  if (capabilities !== undefined && !isObject(capabilities[capability]))
    throw malformedInput(upstream, `an input request for ${capability}, which the client did not declare`)
  const method = String(request['method'])
  // Some serialisers write what is absent as null.
  const params = request['params'] ?? undefined
  if (params === undefined && capability === 'roots') return { method, capability, params }
  if (!isObject(params)) throw malformedInput(upstream, 'an input request without params')
  if (capability === 'elicitation' && params['mode'] === 'url' && !isWebUrl(params['url']))
    throw malformedInput(upstream, 'an elicitation whose URL is not http or https')
  return { method, capability, params }
}

export const malformedInput = (upstream: UpstreamName, what: string, cause?: unknown): GatewayError =>
  new GatewayError('upstream_protocol', `Upstream ${upstream} answered with ${what}.`, { cause, data: { upstream } })

/** @throws RpcError -32602, for the upstream: the client did not declare it, or it has not the form of 2026-07-28 */
export function toInputRequest(
  { method, params }: ServerRequest,
  upstream: UpstreamName,
  endpoint: Endpoint,
  capabilities: ClientCapabilities
): JsonObject {
  const problem = problemWith(method, params ?? {})
  // Clients fail the whole call over an input request that they cannot read, and the upstream would wait for ever.
  if (problem !== undefined) throw new RpcError({ code: rpcCodes.invalidParams, message: `${problem} in ${method}.` })
  try {
    return shapeInputRequest(
      params === undefined ? { method } : { method, params: withoutLegacyMembers(params) },
      upstream,
      endpoint,
      capabilities
    )
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw error.cause instanceof RpcError
      ? error.cause
      : new RpcError({
          code: rpcCodes.invalidParams,
          message: 'The client cannot be asked this: it did not declare it, or the request is malformed.'
        })
  }
}

const fieldTypes: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'array'])

/**
 * Checks params by the schema of 2026-07-28: ElicitRequestFormParams, ElicitRequestURLParams,
 * CreateMessageRequestParams.
 */
function problemWith(method: string, params: JsonObject): string | undefined {
  if (method === 'sampling/createMessage') {
    if (!Array.isArray(params['messages'])) return '"messages" must be an array'
    return typeof params['maxTokens'] === 'number' ? undefined : '"maxTokens" must be a number'
  }
  if (method !== 'elicitation/create') return undefined
  if (typeof params['message'] !== 'string') return '"message" must be a string'
  if (params['mode'] === 'url') return undefined // `shapeInputRequest` checks the URL.
  const schema = params['requestedSchema']
  if (!isObject(schema) || schema['type'] !== 'object' || !isObject(schema['properties'])) {
    return '"requestedSchema" must be an object with "type": "object" and "properties"'
  }
  const invalid = Object.entries(schema['properties']).find(
    ([, field]) => !isObject(field) || !fieldTypes.has(field['type'])
  )
  return (
    invalid &&
    `"requestedSchema.properties.${invalid[0].slice(0, 100)}" must be of type string, number, integer, boolean or array`
  )
}

/** 2026-07-28 has no ids of elicitations, no tasks that clients host, and no progress of server requests. */
function withoutLegacyMembers({ elicitationId: _id, task: _task, _meta, ...params }: JsonObject): JsonObject {
  if (!isObject(_meta)) return params
  const { progressToken: _token, [relatedTaskKey]: _related, ...meta } = _meta
  return Object.keys(meta).length === 0 ? params : { ...params, _meta: meta }
}
