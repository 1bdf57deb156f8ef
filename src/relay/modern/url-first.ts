// Error -32042 of 2025-11-25 (client/elicitation "URL Elicitation Required Error") for clients of 2026-07-28, which have questions in its
// place: the client is asked to visit the pages, and the request is sent once more when it did. The client holds the state, no process does;
// it may come twice, for it opens nothing that the same request without it would not: the server alone knows whether the page was visited.

import { GatewayError, RpcError } from '../../protocol/errors.ts'
import { has } from '../../protocol/merge.ts'
import { isObject } from '../../protocol/messages.ts'
import type { JsonObject, Result } from '../../protocol/messages.ts'
import { without } from '../../protocol/rewrite.ts'
import type { ModernCall } from '../call.ts'
import type { Route } from '../catalog.ts'
import type { ModernFloor } from './floor.ts'
import { shapeInputRequests } from './input.ts'

type Floor = Pick<ModernFloor, 'states'>

const demandCode = -32_042
/** More pages than anybody visits for one call. */
const maxPages = 16

/**
 * @param send the request on its way, with the call as its upstream is to see it: without answers that were for us
 * @throws GatewayError invalid_params, invalid_state, missing_capability; whatever `send` throws
 */
export async function withPages (call: ModernCall, floor: Floor, route: Route, send: (call: ModernCall) => Promise<Result>): Promise<Result> {
  const { inputResponses, requestState } = call.request.params ?? {}
  const keys = requestState === undefined ? undefined : floor.states.open(call, route.upstream, requestState).pages
  if (keys !== undefined && refused(inputResponses, keys)) return declined(call, route)
  try {
    // What was not answered, the server demands again, if it still wants it.
    return await send(keys === undefined ? call : { ...call, request: without(without(call.request, 'inputResponses'), 'requestState') })
  } catch (error) {
    const demand = demandOf(error)
    if (demand === undefined) throw error
    return ask(call, floor, route, demand, error)
  }
}

/** @throws GatewayError missing_capability; `error` where it names no page */
function ask (call: ModernCall, { states }: Floor, { upstream }: Route, demand: RpcError, error: unknown): Result {
  const pages = pagesOf(demand)
  if (pages.length === 0) throw error
  const { capabilities } = call.client
  if (!has(capabilities, ['elicitation', 'url'])) {
    throw new GatewayError('missing_capability', `Upstream ${upstream} wants a web page to be visited first. That is for clients that declare elicitation.url in io.modelcontextprotocol/clientCapabilities.`, {
      cause: demand,
      data: { requiredCapabilities: { elicitation: { url: {} } } }
    })
  }
  const requests = Object.fromEntries(pages.map((params, at) => [`page-${at + 1}`, { method: 'elicitation/create', params }]))
  return {
    resultType: 'input_required',
    inputRequests: shapeInputRequests(requests, upstream, call.endpoint, capabilities),
    requestState: states.seal(call, upstream, { pages: Object.keys(requests) })
  }
}

/** The elicitations without their ids: 2026-07-28 has none, and nothing that would tell of their completion. */
function pagesOf ({ error: { data } }: RpcError): JsonObject[] {
  const elicitations = isObject(data) && Array.isArray(data['elicitations']) ? data['elicitations'] : []
  return elicitations.filter(isObject).slice(0, maxPages).map(({ elicitationId: _known, ...page }) => ({ message: 'A web page has to be visited first.', ...page, mode: 'url' }))
}

/** @throws GatewayError invalid_params for what is no answer to an elicitation (basic/patterns/mrtr) */
function refused (responses: unknown, keys: readonly string[]): boolean {
  if (responses === undefined) return false
  if (!isObject(responses)) throw new GatewayError('invalid_params', '"inputResponses" must be an object.')
  const actions = keys.filter((key) => Object.hasOwn(responses, key)).map((key) => {
    const response = responses[key]
    const action = isObject(response) ? response['action'] : undefined
    if (action !== 'accept' && action !== 'decline' && action !== 'cancel') {
      throw new GatewayError('invalid_params', `"inputResponses.${key}" must have an "action" of "accept", "decline" or "cancel".`)
    }
    return action
  })
  return actions.some((action) => action !== 'accept')
}

/** Without the page the server would demand it again: it is not asked. */
function declined (call: ModernCall, { upstream }: Route): Result {
  const message = `Upstream ${upstream} wants a web page to be visited first, which was declined. Nothing was done.`
  if (call.request.method !== 'tools/call') throw new GatewayError('declined', message, { data: { upstream } })
  return { resultType: 'complete', content: [{ type: 'text', text: message }], isError: true }
}

/** What an upstream demanded, behind the error that a client gets where it cannot be asked. */
function demandOf (error: unknown): RpcError | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof RpcError) return error.error.code === demandCode ? error : undefined
  return demandOf(error.cause)
}
