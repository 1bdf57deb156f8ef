// Web pages that a person has to visit before a call can succeed (2025-11-25 client/elicitation "URL Elicitation
// Required Error"), for clients of sessions. Those that cannot be sent to a page read in words where it is.

import type { Endpoint } from '../../config/snapshot.ts'
import {
  GatewayError,
  isObject,
  type JsonObject,
  type Request,
  type Result,
  rpcCodes,
  RpcError,
  type UpstreamName
} from '../../protocol/messages.ts'
import { hasCapability } from '../../protocol/translate/merge.ts'
import type { LegacyCall } from '../call/call.ts'
import { declaredCapabilities } from './declared-capabilities.ts'
import { isWebUrl, withUpstreamName } from './server-request.ts'

/** More pages than anyone visits for one call. */
const maxUrls = 16

/**
 * What a call ends with where the client lacks a capability: legacy revisions have no error for it. Of a tool it is a
 * result, which the
 * model reads (2025-11-25 server/tools "Error Handling").
 * @param request as it was sent: with `task` where the answer has to be a task
 * @param requiredCapabilities as 2026-07-28 would have them
 * @throws GatewayError upstream_protocol for every other request
 */
export function missingCapability(
  { method, params }: Request,
  upstream: string,
  message: string,
  requiredCapabilities: JsonObject,
  cause: Error
): Result {
  if (method === 'tools/call' && params?.['task'] === undefined)
    return { content: [{ type: 'text', text: message }], isError: true }
  throw new GatewayError('upstream_protocol', message, { cause, data: { requiredCapabilities, upstream } })
}

/** Before 2025-11-25 any server could use the code for errors of its own, so its data decides. */
export const isUrlElicitationRequired = ({ error: { code, data } }: RpcError): boolean =>
  code === rpcCodes.urlElicitationRequired && isObject(data) && Array.isArray(data['elicitations'])

/** Can the client be sent to a page, and does its revision have error -32042? */
export const supportsUrlElicitation = ({ endpoint, session }: LegacyCall): boolean =>
  hasCapability(declaredCapabilities(session.session.record, endpoint, 'legacy'), ['elicitation', 'url'])

/**
 * Error -32042 for a client that cannot be sent to pages: their URLs in words. @returns, @throws as `missingCapability`
 */
export function urlsAsText(error: RpcError, { session }: LegacyCall, request: Request, upstream: UpstreamName): Result {
  const urls = elicitationsOf(error)
    .filter(isObject)
    .filter(({ url }) => isWebUrl(url))
    .slice(0, maxUrls)
    .map(
      ({ url, message }) =>
        new URL(String(url)).href + (typeof message === 'string' ? ` (${message.slice(0, 300)})` : '')
    )
  const advice =
    urls.length === 0
      ? ', and names none that could be opened'
      : `: ${urls.join(', ')}. Visit ${urls.length === 1 ? 'it' : 'them'}, then try again`
  const message =
    `Upstream ${upstream} wants ${urls.length > 1 ? 'web pages' : 'a web page'} to be visited first${advice}. ` +
    `This client did not declare, in revision ${session.session.record.revision}, "elicitation.url", ` +
    `so the gateway cannot have it open pages.`
  return missingCapability(request, upstream, message, { elicitation: { url: {} } }, error)
}

/**
 * An error of an upstream for the client of a session: -32042 with the name of the upstream and without URLs that are
 * no pages.
 * @returns, @throws as `urlsAsText` where the client cannot be sent to pages; throws every other error as it is
 */
export function urlElicitationForSession(
  error: unknown,
  call: LegacyCall,
  request: Request,
  upstream: UpstreamName
): Result {
  if (!(error instanceof RpcError) || !isUrlElicitationRequired(error)) throw error
  if (!supportsUrlElicitation(call)) return urlsAsText(error, call, request, upstream)
  throw withUpstreamNames(error, upstream, call.endpoint)
}

function withUpstreamNames(error: RpcError, upstream: UpstreamName, endpoint: Endpoint): RpcError {
  const elicitations = elicitationsOf(error)
    .filter((each) => !isObject(each) || each['url'] === undefined || isWebUrl(each['url']))
    .map((each) => (isObject(each) ? withUpstreamName(each, upstream, endpoint) : each))
  return new RpcError({ ...error.error, data: { ...(error.error.data as JsonObject), elicitations } })
}

function elicitationsOf({ error: { data } }: RpcError): unknown[] {
  return isObject(data) && Array.isArray(data['elicitations']) ? data['elicitations'] : []
}
