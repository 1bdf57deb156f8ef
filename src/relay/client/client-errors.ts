// Errors of upstreams as a client of 2026-07-28 may get them (basic/index "Error Codes"). Errors about headers and
// revisions concern one hop each, so they become errors of the gateway.

import { hasCapability, missingCapabilities } from '../../protocol/methods.ts'
import {
  type ClientCapabilities,
  errorObject,
  GatewayError,
  isObject,
  isReservedForMcp,
  type JsonObject,
  type Request,
  type Result,
  rpcCodes,
  RpcError,
  type RpcErrorObject,
  type UpstreamName
} from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { withoutParam } from '../../protocol/translate/rewrite.ts'
import type { LegacyCall } from '../call/call.ts'
import { ClientCannotAnswer } from './ask-session.ts'
import type { Endpoint } from '../../config/snapshot.ts'
import { declaredCapabilities } from './declared-capabilities.ts'
import { isWebUrl, withUpstreamName } from './server-messages.ts'

/** @param capabilities as the client declared them */
export function errorForModern(error: unknown, upstream: UpstreamName, capabilities: ClientCapabilities): unknown {
  if (!(error instanceof RpcError)) return error
  const { code, data } = error.error
  const ours = (message: string): GatewayError =>
    new GatewayError('upstream_protocol', message, { cause: error, data: { upstream } })
  switch (code) {
    case rpcCodes.resourceNotFound:
      return new RpcError({ ...error.error, code: rpcCodes.invalidParams })
    case rpcCodes.missingCapability: {
      const missing = missingCapabilities(isObject(data) ? data['requiredCapabilities'] : undefined, capabilities)
      // The client can do nothing about a capability that it declared and the gateway did not pass on.
      return missing === undefined
        ? ours(`Upstream ${upstream} needs a capability that does not pass through the gateway.`)
        : error
    }
    case rpcCodes.headerMismatch:
    case rpcCodes.unsupportedRevision:
      return ours(`The gateway and upstream ${upstream} do not agree on the protocol (error ${code}).`)
    case rpcCodes.urlElicitationRequired:
      return ours(
        `Upstream ${upstream} wants a web page to be visited first, ` +
          `in a way (error ${code}) that 2026-07-28 does not have.`
      )
    default:
      return isReservedForMcp(code)
        ? ours(`Upstream ${upstream} answered with error ${code}, which 2026-07-28 does not have.`)
        : error
  }
}

/** The error that a task ended with: the same rules as for an error that is thrown. */
export function taskErrorForModern(
  error: RpcErrorObject,
  upstream: UpstreamName,
  capabilities: ClientCapabilities
): RpcErrorObject {
  return errorObject(errorForModern(new RpcError(error), upstream, capabilities), '')
}

// Errors of modern servers as the client of a session may get them (2025-11-25 schema).

/**
 * @param declared as the server was told
 * @returns the result of a tool that could not do its work, where the client lacks a capability
 * @throws RpcError, GatewayError
 */
export function failureForSession(
  error: unknown,
  call: LegacyCall,
  { name }: Upstream,
  declared: ClientCapabilities
): Result {
  // A call that became a task ends with the result of the tool, not with a task.
  const request = withoutParam(call.request, 'task')
  if (error instanceof ClientCannotAnswer)
    return missingCapability(request, name, error.message, error.requiredCapabilities, error)
  if (!(error instanceof RpcError)) throw error
  const { code, data } = error.error
  const ours = (message: string): GatewayError =>
    new GatewayError('upstream_protocol', message, { cause: error, data: { upstream: name } })
  switch (code) {
    case rpcCodes.missingCapability: {
      const missing = missingCapabilities(isObject(data) ? data['requiredCapabilities'] : undefined, declared)
      if (missing === undefined)
        throw ours(`Upstream ${name} needs a capability that does not pass through the gateway.`)
      const message =
        `Upstream ${name} needs a capability that this client does not offer: ` +
        `${pathsOf(missing).join(', ')}. It said: ${error.message.slice(0, 300)}`
      return missingCapability(request, name, message, missing, error)
    }
    case rpcCodes.headerMismatch:
    case rpcCodes.unsupportedRevision:
      throw ours(`The gateway and upstream ${name} do not agree on the protocol (error ${code}).`)
    case rpcCodes.invalidParams:
      // 2026-07-28 server/resources "Error Handling": only the URI tells it from other invalid params; legacy revisions
      // have a code of its own.
      if (call.request.method === 'resources/read' && isObject(data) && typeof data['uri'] === 'string') {
        throw new RpcError({ ...error.error, code: rpcCodes.resourceNotFound })
      }
      throw error
    default:
      if (isUrlElicitationRequired(error) && !supportsUrlElicitation(call))
        return urlsAsText(error, call, request, name)
      throw error
  }
}

/** `{ sampling: { tools: {} } }` -> `sampling.tools`. */
function pathsOf(capabilities: JsonObject): string[] {
  return Object.entries(capabilities).flatMap(([name, inner]) => {
    const below = isObject(inner) ? pathsOf(inner) : []
    return below.length === 0 ? [name.slice(0, 100)] : below.map((path) => `${name.slice(0, 100)}.${path}`)
  })
}

// Web pages that a person has to visit before a call can succeed (2025-11-25 client/elicitation "URL Elicitation
// Required Error"), for clients of sessions. Those that cannot be sent to a page read in words where it is.

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
