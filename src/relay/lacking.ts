// What a session's client lacks for what it wants, as it may hear it: a model learns of it as the result of its tool (2025-11-25 server/tools
// "Error Handling"), others as an error. Among it the pages of error -32042 (client/elicitation "URL Elicitation Required Error").

import type { Endpoint } from '../config/snapshot.ts'
import { GatewayError, RpcError } from '../protocol/errors.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import { has } from '../protocol/merge.ts'
import { isObject } from '../protocol/messages.ts'
import type { JsonObject, Request, Result } from '../protocol/messages.ts'
import { isPage, named, offered } from './asking.ts'
import type { Call } from './call.ts'

const demandCode = -32_042
/** More pages than anybody visits for one call. */
const maxPages = 16

/**
 * @param request as it was sent: with `task` where the answer has to be a task
 * @param required as `data.requiredCapabilities` of 2026-07-28 has it
 * @returns the result of a tool that could not do its work
 * @throws GatewayError upstream_protocol for every other request
 */
export function lacking ({ method, params }: Request, upstream: string, message: string, required: JsonObject, cause: Error): Result {
  if (method === 'tools/call' && params?.['task'] === undefined) return { content: [{ type: 'text', text: message }], isError: true }
  throw new GatewayError('upstream_protocol', message, { cause, data: { requiredCapabilities: required, upstream } })
}

/** Is it a demand for pages? Before 2025-11-25 the code was any server's own. */
export const isDemand = ({ error: { code, data } }: RpcError): boolean => code === demandCode && isObject(data) && Array.isArray(data['elicitations'])

/** Can the client be sent to a page, and knows its revision such a demand? */
export const opensPages = ({ endpoint, live }: Call): boolean => has(offered(endpoint, live.session.record), ['elicitation', 'url'])

/** A demand for pages, for a client that opens none: where they are, in words. @returns, @throws as `lacking` */
export function withoutPages (error: RpcError, { live: { session: { record } } }: Call, request: Request, upstream: UpstreamName): Result {
  const pages = elicitationsOf(error).filter(isObject).filter(({ url }) => isPage(url)).slice(0, maxPages)
  const where = pages.map(({ url, message }) => `${new URL(String(url)).href}${typeof message === 'string' ? ` (${message.slice(0, 300)})` : ''}`)
  const said = where.length === 0 ? 'and names none that could be opened' : `${where.join(', ')}. Visit ${where.length === 1 ? 'it' : 'them'}, then try again`
  const message = `Upstream ${upstream} wants ${where.length > 1 ? 'web pages' : 'a web page'} to be visited first${where.length === 0 ? ',' : ':'} ${said}. This client did not declare, in revision ${record.revision}, "elicitation.url", so the gateway cannot have it open pages.`
  return lacking(request, upstream, message, { elicitation: { url: {} } }, error)
}

/**
 * What went wrong at an upstream, where it may be a demand for pages: as it is for whoever opens them, with who asks.
 * @returns, @throws as `withoutPages`; the error
 */
export function demanded (error: unknown, call: Call, request: Request, upstream: UpstreamName): Result {
  if (!(error instanceof RpcError) || !isDemand(error)) throw error
  if (opensPages(call)) throw namedDemand(error, upstream, call.endpoint)
  return withoutPages(error, call, request, upstream)
}

/** None that leads to anything but a page. */
function namedDemand (error: RpcError, upstream: UpstreamName, endpoint: Endpoint): RpcError {
  const elicitations = elicitationsOf(error)
    .filter((each) => !isObject(each) || each['url'] === undefined || isPage(each['url']))
    .map((each) => isObject(each) ? named(each, upstream, endpoint) : each)
  return new RpcError({ ...error.error, data: { ...error.error.data as JsonObject, elicitations } })
}

function elicitationsOf ({ error: { data } }: RpcError): unknown[] {
  return isObject(data) && Array.isArray(data['elicitations']) ? data['elicitations'] : []
}
