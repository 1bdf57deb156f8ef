// Input requests of an upstream (2026-07-28 basic/patterns/mrtr) as the client gets them: only what it declared, and who asks.

import type { Endpoint } from '../../config/snapshot.ts'
import { GatewayError, RpcError } from '../../protocol/errors.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import { isObject } from '../../protocol/messages.ts'
import type { ClientCapabilities, JsonObject } from '../../protocol/messages.ts'
import { capabilityOf } from '../../protocol/required.ts'
import { latestModern } from '../../protocol/revisions.ts'
import { isPage, shapeAsk } from '../asking.ts'

/** For tasks, whose questions were agreed on when the task was made, by another request. */
export const anything: ClientCapabilities = { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} }

/**
 * Keys stay as they are: they mean something to nobody but this request.
 * @param capabilities of the client that is asked
 * @throws GatewayError upstream_protocol: no input request, or one for something that the client did not declare
 */
export function shapeInputRequests (requests: unknown, upstream: UpstreamName, endpoint: Endpoint, capabilities: ClientCapabilities): JsonObject {
  if (!isObject(requests)) throw fault(upstream, '"inputRequests" that are no object')
  // Not by assignment, which has its own idea of a key named __proto__.
  return Object.fromEntries(Object.entries(requests).map(([key, request]) => [key, shapeInputRequest(request, upstream, endpoint, capabilities)]))
}

export function shapeInputRequest (request: unknown, upstream: UpstreamName, endpoint: Endpoint, capabilities: ClientCapabilities): JsonObject {
  const capability = isObject(request) ? capabilityOf(request['method']) : undefined
  if (!isObject(request) || capability === undefined) throw fault(upstream, 'an input request of a kind that 2026-07-28 does not have')
  if (!isObject(capabilities[capability])) throw fault(upstream, `an input request for ${capability}, which the client did not declare`)
  const { method, params } = request
  if (params === undefined && capability === 'roots') return request
  if (!isObject(params)) throw fault(upstream, 'an input request without params')
  if (params['mode'] === 'url' && !isPage(params['url'])) throw fault(upstream, 'an elicitation whose URL is not http or https')
  try {
    return { ...request, ...shapeAsk({ method: String(method), params }, upstream, endpoint, { revision: latestModern, capabilities }) }
  } catch (error) {
    if (error instanceof RpcError) throw fault(upstream, 'an input request for something that the client did not declare', error)
    throw error
  }
}

const fault = (upstream: UpstreamName, what: string, cause?: unknown): GatewayError =>
  new GatewayError('upstream_protocol', `Upstream ${upstream} answered with ${what}.`, { cause, data: { upstream } })
