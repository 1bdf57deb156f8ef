// Errors of upstreams as clients may get them: of 2026-07-28 (basic/index "Error Codes"), and of sessions (2025-11-25
// schema), among them web pages that a person has to visit (client/elicitation "URL Elicitation Required Error").

import { hasCapability, missingCapabilities } from '../../protocol/methods.ts'
import {
  type ClientCapabilities,
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
import { errorObject } from '../../protocol/translate/error-object.ts'
import { withoutParam } from '../../protocol/translate/rewrite.ts'
import { noteFailure } from '../../observe/call-notes.ts'
import { ConnectRequiredError } from '../../upstream/rpc/credential.ts'
import type { LegacyCall, ModernCall } from '../call/call.ts'
import { ClientCannotAnswer } from './ask-session.ts'
import { declaredCapabilities } from './declared-capabilities.ts'
import { isWebUrl, withUpstreamName } from './server-messages.ts'

/** More pages than anyone visits for one call. */
const maxUrls = 16
/** The longest message, in characters. */
const maxMessage = 300

/** @param capabilities as the client declared them */
export function errorForModern(error: unknown, upstream: UpstreamName, capabilities: ClientCapabilities): unknown {
  if (!(error instanceof RpcError)) return error
  const { code } = error.error
  if (error instanceof ConnectRequiredError)
    return new GatewayError('connect_required', error.message, { cause: error, data: { upstream } })
  if (code === rpcCodes.resourceNotFound) return new RpcError({ ...error.error, code: rpcCodes.invalidParams })
  if (code === rpcCodes.urlElicitationRequired)
    return ours(
      error,
      upstream,
      `Upstream ${upstream} wants a web page to be visited first, ` +
        `in a way (error ${code}) that 2026-07-28 does not have.`
    )
  const ofHop = errorOfHop(error, upstream, capabilities)
  if (ofHop !== undefined) return ofHop
  return isReservedForMcp(code) && code !== rpcCodes.missingCapability
    ? ours(error, upstream, `Upstream ${upstream} answered with error ${code}, which 2026-07-28 does not have.`)
    : error
}

/** The error that a task ended with. @param call that asks for it */
export function taskErrorForModern(
  error: RpcErrorObject,
  upstream: UpstreamName,
  { client, record }: Pick<ModernCall, 'client' | 'record'>
): RpcErrorObject {
  return errorObject(errorForModern(new RpcError(error), upstream, client.capabilities), record?.requestId ?? '')
}

/**
 * An error of a modern server for the client of a session.
 * @param declared as the server was told
 * @returns the result of a tool that could not do its work, where the client lacks a capability
 * @throws RpcError, GatewayError
 */
export function failureForSession(
  error: unknown,
  call: LegacyCall,
  upstream: UpstreamName,
  declared: ClientCapabilities
): Result {
  // A call that became a task ends with the result of the tool, not with a task.
  const request = withoutParam(call.request, 'task')
  if (error instanceof ClientCannotAnswer)
    return missingCapability(call, request, upstream, error.message, error.requiredCapabilities, error)
  if (!(error instanceof RpcError)) throw error
  const ofHop = errorOfHop(error, upstream, declared)
  if (ofHop !== undefined) throw ofHop
  const { code, data } = error.error
  const missing = code === rpcCodes.missingCapability ? missingOf(error, declared) : undefined
  if (missing !== undefined) {
    const message =
      `Upstream ${upstream} needs a capability that this client does not offer: ` +
      `${pathsOf(missing).join(', ')}. It said: ${error.message.slice(0, 300)}`
    return missingCapability(call, request, upstream, message, missing, error)
  }
  // 2026-07-28 server/resources "Error Handling": only the URI tells it from other invalid params; legacy revisions
  // have a code of its own.
  const isResource = call.request.method === 'resources/read' && isObject(data) && typeof data['uri'] === 'string'
  if (code === rpcCodes.invalidParams && isResource)
    throw new RpcError({ ...error.error, code: rpcCodes.resourceNotFound })
  const elicitations = elicitationsOf(error)
  if (elicitations === undefined || supportsUrlElicitation(call)) throw error
  return urlsAsText(error, elicitations, call, request, upstream)
}

/**
 * An error of a legacy server for the client of a session: -32042 without URLs that are no pages.
 * @returns, @throws as `missingCapability` where the client cannot be sent to pages
 */
export function urlElicitationForSession(
  error: unknown,
  call: LegacyCall,
  request: Request,
  upstream: UpstreamName
): Result {
  const elicitations = error instanceof RpcError ? elicitationsOf(error) : undefined
  if (!(error instanceof RpcError) || elicitations === undefined) throw error
  if (!supportsUrlElicitation(call)) return urlsAsText(error, elicitations, call, request, upstream)
  const named = elicitations
    .filter((each) => !isObject(each) || each['url'] === undefined || isWebUrl(each['url']))
    .map((each) => (isObject(each) ? withUpstreamName(each, upstream, call.endpoint) : each))
  throw new RpcError({ ...error.error, data: { ...(error.error.data as JsonObject), elicitations: named } })
}

const ours = (cause: RpcError, upstream: UpstreamName, message: string): GatewayError =>
  new GatewayError('upstream_protocol', message, { cause, data: { upstream } })

const missingOf = ({ error: { data } }: RpcError, declared: ClientCapabilities): JsonObject | undefined =>
  missingCapabilities(isObject(data) ? data['requiredCapabilities'] : undefined, declared)

/** Errors about headers, revisions and capabilities that concern the gateway and the upstream alone. */
function errorOfHop(error: RpcError, upstream: UpstreamName, declared: ClientCapabilities): GatewayError | undefined {
  const { code } = error.error
  if (code === rpcCodes.headerMismatch || code === rpcCodes.unsupportedRevision)
    return ours(error, upstream, `The gateway and upstream ${upstream} do not agree on the protocol (error ${code}).`)
  // The client can do nothing about a capability that it declared and the gateway did not pass on.
  if (code === rpcCodes.missingCapability && missingOf(error, declared) === undefined)
    return ours(error, upstream, `Upstream ${upstream} needs a capability that does not pass through the gateway.`)
  return undefined
}

/**
 * What a call ends with where the client lacks a capability: legacy revisions have no error for it. Of a tool it is a
 * result, which the model reads (2025-11-25 server/tools "Error Handling").
 * @param request as it was sent: with `task` where the answer has to be a task
 * @param requiredCapabilities as 2026-07-28 would have them
 * @throws GatewayError connect_required, client_lacks_capability for every other request
 */
function missingCapability(
  { record }: LegacyCall,
  { method, params }: Request,
  upstream: UpstreamName,
  message: string,
  requiredCapabilities: JsonObject,
  cause: Error
): Result {
  const reason = cause instanceof ConnectRequiredError ? 'connect_required' : 'client_lacks_capability'
  if (method !== 'tools/call' || params?.['task'] !== undefined)
    throw new GatewayError(reason, message, { cause, data: { requiredCapabilities, upstream } })
  noteFailure(record, reason, message)
  return { content: [{ type: 'text', text: message }], isError: true }
}

/** Of error -32042. Before 2025-11-25 any server could use the code for errors of its own, so its data decides. */
const elicitationsOf = ({ error: { code, data } }: RpcError): unknown[] | undefined =>
  code === rpcCodes.urlElicitationRequired && isObject(data) && Array.isArray(data['elicitations'])
    ? data['elicitations']
    : undefined

/** Can the client be sent to a page, and does its revision have error -32042? */
const supportsUrlElicitation = ({ endpoint, session }: LegacyCall): boolean =>
  hasCapability(declaredCapabilities(session.session.record, endpoint, 'legacy'), ['elicitation', 'url'])

/**
 * Writes the URLs of the pages into the message, for a client that cannot be sent to pages.
 * @returns,
 * @throws as `missingCapability`
 */
function urlsAsText(
  error: RpcError,
  elicitations: readonly unknown[],
  call: LegacyCall,
  request: Request,
  upstream: UpstreamName
): Result {
  const urls = elicitations
    .filter(isObject)
    .filter(({ url }) => isWebUrl(url))
    .slice(0, maxUrls)
    .map(({ url, message }) => {
      const { href } = new URL(String(url))
      const said = typeof message === 'string' ? message.slice(0, maxMessage + href.length) : ''
      // Those of the gateway itself name their page.
      if (said.includes(href)) return said
      return href + (said === '' ? '' : ` (${said.slice(0, maxMessage)})`)
    })
  const advice =
    urls.length === 0
      ? ', and names none that could be opened'
      : // On a line of their own: a full stop behind a URL would be taken for a part of it.
        `:\n${urls.join('\n')}\nVisit ${urls.length === 1 ? 'it' : 'them'}, then try again`
  const message =
    `Upstream ${upstream} wants ${urls.length > 1 ? 'web pages' : 'a web page'} to be visited first${advice}. ` +
    `This client did not declare, in revision ${call.session.session.record.revision}, "elicitation.url", ` +
    `so the gateway cannot have it open pages.`
  return missingCapability(call, request, upstream, message, { elicitation: { url: {} } }, error)
}

/** `{ sampling: { tools: {} } }` -> `sampling.tools`. */
function pathsOf(capabilities: JsonObject): string[] {
  return Object.entries(capabilities).flatMap(([name, inner]) => {
    const below = isObject(inner) ? pathsOf(inner) : []
    return below.length === 0 ? [name.slice(0, 100)] : below.map((path) => `${name.slice(0, 100)}.${path}`)
  })
}
