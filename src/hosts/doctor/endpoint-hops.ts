// The hops at the endpoint itself: what its first answer shows, whether a credential is taken, and whether a session
// works.

import { capabilitiesKey, clientInfoKey, versionKey } from '../../protocol/envelope.ts'
import { isObject, latestLegacy, latestModern, type JsonObject } from '../../protocol/messages.ts'
import { cellText } from '../../observe/text-log.ts'
import { codeOfRefusal, facts, isOfGateway, reasonIn, type ExaminedEndpoint } from './answers.ts'
import { Diagnosis, type FaultCode } from './catalogue.ts'
import { ConnectionFault, diagnosisOf, noAnswerInTime, type Exchanged } from './exchange.ts'

const largeMessageBytes = 1_200_000

const message = (method: string, params?: JsonObject, id?: number): string =>
  JSON.stringify({ jsonrpc: '2.0', ...(id !== undefined && { id }), method, ...(params && { params }) })

const initializeBody = (version: string): string =>
  message(
    'initialize',
    {
      protocolVersion: latestLegacy,
      capabilities: {},
      clientInfo: { name: 'gatehouse-doctor', version }
    },
    1
  )

/** @throws Diagnosis where there is no answer */
export async function reached(
  { url, way, send }: Pick<ExaminedEndpoint, 'url' | 'way' | 'send'>,
  exchange: () => Promise<Exchanged>
): Promise<Exchanged> {
  try {
    return await exchange()
  } catch (error) {
    throw error instanceof ConnectionFault ? await diagnosisOf(error, url, way, send) : error
  }
}

/** @throws Diagnosis where there is no answer */
async function post(
  endpoint: ExaminedEndpoint,
  body: string,
  headers: Readonly<Record<string, string>>
): Promise<Exchanged> {
  const { url, origin, send } = endpoint
  const all = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...(origin !== undefined && { Origin: origin }),
    ...headers
  }
  return await reached(endpoint, () => send(url, { method: 'POST', body, headers: all }))
}

/** The head of its answer comes at once, and the rest when there is something to say. @throws Diagnosis */
async function openStream(endpoint: ExaminedEndpoint, headers: Readonly<Record<string, string>>): Promise<Exchanged> {
  const { url, send, way } = endpoint
  try {
    return await send(url, { headers: { ...headers, Accept: 'text/event-stream' }, head: 'of a stream' })
  } catch (error) {
    if (!(error instanceof ConnectionFault)) throw error
    if (error.code !== noAnswerInTime) throw await diagnosisOf(error, url, way, send)
    throw new Diagnosis('stream_held_back', { seconds: way.timeoutMs / 1_000 })
  }
}

const bearer = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { Authorization: `Bearer ${token}` }

export const postInitialize = (endpoint: ExaminedEndpoint, token?: string): Promise<Exchanged> =>
  post(endpoint, initializeBody(endpoint.version), bearer(token))

/** Words of a path that end with their segment: of `authors` it is none. */
const isLoginPath = /(?:^|[/_.-])(?:log-?in|sign-?in|auth|oauth2?|authorize|sso|saml2?|adfs|accounts?)(?:[/_.-]|$)/i

/** Does the answer come from the gateway, and from this endpoint? @throws Diagnosis where not */
export function judgeFirstAnswer(endpoint: ExaminedEndpoint, answer: Exchanged): void {
  const { status, headers, text } = answer
  const found = (code: FaultCode, more: Readonly<Record<string, string>> = {}): Diagnosis =>
    new Diagnosis(code, { ...facts(endpoint, answer), ...more })
  const code = codeOfRefusal(answer)
  if (code === 'endpoint_unknown' && !/\/(?:mcp|sse)\/?$/.test(endpoint.url.pathname))
    throw found('url_without_endpoint')
  if (code !== undefined) throw found(code)
  // A message that is no JSON any more is judged as what it was.
  if (isOfGateway(answer) || (status === 200 && answer.json === undefined && text.includes('"jsonrpc"'))) return
  const isPage = /html/.test(headers['content-type'] ?? '')
  if (status === 400 && /HTTPS? (?:port|server)|plain HTTP/i.test(text)) {
    const port = endpoint.url.port === '' ? '80' : endpoint.url.port
    throw found('plain_at_tls_port', { address: `${endpoint.url.hostname}:${port}` })
  }
  if (status >= 300 && status < 400) {
    const to = URL.parse(headers['location'] ?? '', endpoint.url.href)
    throw to !== null && to.pathname !== endpoint.url.pathname && isLoginPath.test(to.pathname)
      ? found('login_page', { detail: `a redirect to ${to?.href}` })
      : found('redirects')
  }
  const scheme = headers['www-authenticate']?.split(' ')[0]
  if (status === 407 || (status === 401 && scheme !== undefined))
    throw found('own_authentication', { detail: scheme ?? 'Proxy-Authenticate' })
  if (status === 502 || status === 503 || status === 504) throw found('bad_gateway')
  if (isPage && /type=["']?password|sign in|log ?in/i.test(text)) {
    throw found('login_page', { detail: /<title>([^<]*)/i.exec(text)?.[1]?.trim() ?? `HTTP ${status}` })
  }
  if (status === 413 || status === 429 || status >= 500 || status === 401 || status === 403)
    throw found('refused_on_the_way')
  if (status === 404 || status === 405) {
    throw found(endpoint.url.pathname.startsWith('/t/') ? 'path_not_passed' : 'not_mcp')
  }
  throw found('not_mcp')
}

/** Judges an answer to `initialize` with a credential. @throws Diagnosis */
export function judgeInitialize(endpoint: ExaminedEndpoint, answer: Exchanged): JsonObject {
  const { json, headers, status, text } = answer
  const result = json?.['result']
  if (isObject(result)) {
    if (headers['mcp-session-id'] === undefined) throw new Diagnosis('session_not_passed')
    return result
  }
  if (json === undefined && status === 200) {
    const type = headers['content-type'] ?? 'no content type'
    throw new Diagnosis('answer_changed', { detail: `${type}, beginning with ${JSON.stringify(text.slice(0, 60))}` })
  }
  throw new Diagnosis(codeOfRefusal(answer) ?? 'initialize_refused', facts(endpoint, answer))
}

/** The stream of a host that knows HTTP+SSE only. @throws Diagnosis where the gateway does not open it */
export async function openSseStream(endpoint: ExaminedEndpoint, token: string | undefined): Promise<void> {
  const answer = await openStream(endpoint, bearer(token))
  if (answer.status === 200 && isStream(answer)) return
  const code = isOfGateway(answer) ? (codeOfRefusal(answer) ?? 'request_refused') : 'method_refused'
  throw new Diagnosis(code, { ...facts(endpoint, answer), method: `GET ${endpoint.url.pathname}` })
}

/**
 * Sends what a host of 2026-07-28 sends first, without a session.
 * @throws Diagnosis.
 * @returns the revisions of the answer
 */
export async function discover(endpoint: ExaminedEndpoint, token: string | undefined): Promise<string> {
  const method = 'server/discover'
  const _meta = {
    [versionKey]: latestModern,
    [clientInfoKey]: { name: 'gatehouse-doctor', version: endpoint.version },
    [capabilitiesKey]: {}
  }
  const headers = { ...bearer(token), 'MCP-Protocol-Version': latestModern, 'Mcp-Method': method }
  const answer = await post(endpoint, message(method, { _meta }, 5), headers)
  const result = answer.json?.['result']
  if (isObject(result)) return [result['supportedVersions']].flat().map(cellText).join(', ')
  const found = { ...facts(endpoint, answer), method }
  if (!isOfGateway(answer)) throw new Diagnosis('discover_not_passed', found)
  throw new Diagnosis(
    reasonIn(answer) === 'header_mismatch' ? 'headers_not_passed' : (codeOfRefusal(answer) ?? 'request_refused'),
    found
  )
}

/** Lists, a ping, the stream, a large message and the end of a session. @throws Diagnosis. @returns what was seen */
export async function trySession(
  endpoint: ExaminedEndpoint,
  { headers: given }: Exchanged,
  revision: string,
  token: string | undefined,
  tell: (hop: 'list' | 'ping', text: string) => void
): Promise<void> {
  const { url, send } = endpoint
  const headers = {
    ...bearer(token),
    'Mcp-Session-Id': given['mcp-session-id'] ?? '',
    'MCP-Protocol-Version': revision
  }
  /** @throws Diagnosis where the answer is another than that of a gateway which has done it */
  const judge = (method: string, answer: Exchanged, isDone: boolean, ofProxy: FaultCode = 'method_refused'): void => {
    if (isDone) return
    const code = isOfGateway(answer) ? (codeOfRefusal(answer) ?? 'request_refused') : ofProxy
    throw new Diagnosis(code, { ...facts(endpoint, answer), method })
  }
  const request = async (method: string, id: number): Promise<JsonObject> => {
    const answer = await post(endpoint, message(method, {}, id), headers)
    const result = answer.json?.['result']
    judge(method, answer, isObject(result), 'request_not_passed')
    return isObject(result) ? result : {}
  }
  const begun = await post(endpoint, message('notifications/initialized'), headers)
  judge('notifications/initialized', begun, begun.status === 202, 'request_not_passed')
  const { tools } = await request('tools/list', 2)
  if (!Array.isArray(tools) || tools.length === 0) throw new Diagnosis('no_tools')
  tell('list', `${tools.length} tools on the first page`)
  await request('ping', 3)
  const stream = await openStream(endpoint, headers)
  judge('GET', stream, stream.status === 200 && isStream(stream))
  const large = await post(endpoint, message('ping', { _meta: { padding: 'x'.repeat(largeMessageBytes) } }, 4), headers)
  const size = `${(largeMessageBytes / 1e6).toFixed(1)} MB`
  const isLimited = reasonIn(large) === 'too_large'
  if (large.status === 413 && !isOfGateway(large))
    throw new Diagnosis('body_too_large_for_proxy', { size, status: large.status })
  judge(`A message of ${size}`, large, isLimited || isObject(large.json?.['result']), 'request_not_passed')
  const ended = await reached(endpoint, () => send(url, { method: 'DELETE', headers }))
  judge('DELETE', ended, ended.status >= 200 && ended.status < 300)
  const ofLarge = isLimited ? `one message of ${size} is more than limits.bodyBytes allows` : 'a large message passes'
  tell('ping', `answered; the stream opens, ${ofLarge}, and the session ends`)
}

const isStream = ({ headers }: Exchanged): boolean => headers['content-type']?.startsWith('text/event-stream') === true
