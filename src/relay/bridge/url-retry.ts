// Error -32042 of 2025-11-25 (client/elicitation "URL Elicitation Required Error") becomes input requests: the client
// is asked to visit the pages, and the request is sent once more when it did. The state may come twice, for it opens
// nothing that the same request without it would not: the server alone knows whether the page was visited.

import { noteFailure } from '../../observe/call-notes.ts'
import type { ErrorCode } from '../../protocol/error-table.ts'
import {
  GatewayError,
  isObject,
  type JsonObject,
  type Result,
  rpcCodes,
  RpcError,
  type UpstreamName
} from '../../protocol/messages.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { ConnectRequiredError } from '../../upstream/rpc/credential.ts'
import type { ModernCall } from '../call/call.ts'
import { requireInputResponses, shapeInputRequests } from '../client/input-requests.ts'
import { withoutInputResponses } from '../client/modern-client.ts'
import type { RequestStates } from './request-state.ts'

/** More pages than anybody visits for one call. */
const maxPages = 16

/**
 * The request as its upstream is to get it: without responses that were for the gateway.
 * @returns `declined`, the result of a call whose client did not visit the page
 * @throws GatewayError invalid_params, invalid_state, declined
 */
export function openUrlRetry(
  call: ModernCall,
  states: RequestStates,
  upstream: UpstreamName
): { readonly call: ModernCall } | { readonly declined: Result } {
  const { inputResponses, requestState } = call.request.params ?? {}
  const keys = requestState === undefined ? undefined : states.open(call, upstream, requestState).pages
  if (keys === undefined) return { call }
  if (isDeclined(inputResponses, keys)) return { declined: declinedResult(call, upstream) }
  // What was not answered, the server demands again, if it still wants it.
  return { call: { ...call, request: withoutInputResponses(call.request) } }
}

/**
 * The pages that an upstream demanded, as input requests.
 * @throws GatewayError missing_capability; `error` where it is no such demand, or names no page
 */
export async function urlElicitationOf(
  call: ModernCall,
  states: RequestStates,
  upstream: UpstreamName,
  error: unknown
): Promise<Result> {
  const demand = demandOf(error)
  const pages = demand === undefined ? [] : pagesOf(demand)
  if (pages.length === 0) throw error
  const { capabilities } = call.client
  const isOurs = demand instanceof ConnectRequiredError
  if (!hasCapability(capabilities, ['elicitation', 'url'])) {
    if (isOurs && call.request.method === 'tools/call') return failedTool(call, 'connect_required', demand.message)
    const message =
      `Upstream ${upstream} wants a web page to be visited first. ` +
      'That is for clients that declare elicitation.url in io.modelcontextprotocol/clientCapabilities.'
    throw new GatewayError('missing_capability', message, {
      cause: demand,
      data: { requiredCapabilities: { elicitation: { url: {} } } }
    })
  }
  const requests = Object.fromEntries(
    pages.map((params, at) => [`page-${at + 1}`, { method: 'elicitation/create', params }])
  )
  await states.prepare(call)
  return {
    resultType: 'input_required',
    inputRequests: shapeInputRequests(requests, upstream, call.endpoint, capabilities),
    requestState: states.seal(call, upstream, { pages: Object.keys(requests), ...(isOurs && { isOurs }) })
  }
}

/** The elicitations without their ids: 2026-07-28 has none, and nothing that would tell of their completion. */
function pagesOf({ error: { data } }: RpcError): JsonObject[] {
  const elicitations = isObject(data) && Array.isArray(data['elicitations']) ? data['elicitations'] : []
  return elicitations
    .filter(isObject)
    .slice(0, maxPages)
    .map(({ elicitationId: _known, ...page }) => ({
      message: 'A web page has to be visited first.',
      ...page,
      mode: 'url'
    }))
}

/** @throws GatewayError invalid_params for what is no answer to an elicitation (basic/patterns/mrtr) */
function isDeclined(given: unknown, keys: readonly string[]): boolean {
  if (given === undefined) return false
  const responses = requireInputResponses(given)
  const actions = keys
    .filter((key) => Object.hasOwn(responses, key))
    .map((key) => {
      const response = responses[key]
      const action = isObject(response) ? response['action'] : undefined
      if (action !== 'accept' && action !== 'decline' && action !== 'cancel') {
        throw new GatewayError(
          'invalid_params',
          `"inputResponses.${key}" must have an "action" of "accept", "decline" or "cancel".`
        )
      }
      return action
    })
  return actions.some((action) => action !== 'accept')
}

/** Makes the result of a call whose page was declined: the server would demand the page again, so it is not asked. */
function declinedResult(call: ModernCall, upstream: UpstreamName): Result {
  const message = `Upstream ${upstream} wants a web page to be visited first, which was declined. Nothing was done.`
  if (call.request.method !== 'tools/call') throw new GatewayError('declined', message, { data: { upstream } })
  return failedTool(call, 'declined', message)
}

function failedTool({ record }: ModernCall, code: ErrorCode, message: string): Result {
  noteFailure(record, code, message)
  return { resultType: 'complete', content: [{ type: 'text', text: message }], isError: true }
}

/** Finds the demand of an upstream behind the error that a client gets where it cannot be asked. */
function demandOf(error: unknown): RpcError | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof RpcError) return error.error.code === rpcCodes.urlElicitationRequired ? error : undefined
  return demandOf(error.cause)
}
