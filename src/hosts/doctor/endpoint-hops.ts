// The hops at the endpoint itself: what its first answer shows, whether a credential is taken, and whether a session
// works.

import { capabilitiesKey, clientInfoKey, versionKey } from '../../protocol/envelope.ts'
import { isObject, latestLegacy, latestModern, type JsonObject } from '../../protocol/messages.ts'
import { cellText } from '../../observe/text-log.ts'
import { Diagnosis, type FaultCode } from './catalogue.ts'
import { ConnectionFault, diagnosisOf, noAnswerInTime, type Exchanged, type SendOnce, type Way } from './exchange.ts'

export interface ExaminedEndpoint {
  readonly url: URL
  readonly origin: string | undefined
  readonly send: SendOnce
  readonly way: Way
  readonly version: string
}

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
    return await send(url, { headers: { ...headers, Accept: 'text/event-stream' }, headOnly: true })
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

const errorOf = ({ json }: Exchanged): JsonObject => (isObject(json?.['error']) ? json['error'] : {})
const dataOf = (answer: Exchanged): JsonObject => {
  const { data } = errorOf(answer)
  return isObject(data) ? data : {}
}
/** The code of docs/errors.md, where the gateway refused. */
export const reasonIn = (answer: Exchanged): string | undefined => {
  const { reason } = dataOf(answer)
  return typeof reason === 'string' ? reason : undefined
}
export const saidIn = (answer: Exchanged): string =>
  cellText(errorOf(answer)['message']) ||
  answer.text.replaceAll(/\s+/g, ' ').trim().slice(0, 200) ||
  `HTTP ${answer.status}`

/** Every answer of an endpoint names its request; a proxy's own does not. */
const isOfGateway = ({ headers }: Exchanged): boolean => headers['x-request-id'] !== undefined

const facts = ({ url, origin }: ExaminedEndpoint, answer: Exchanged) => ({
  url: url.href,
  path: url.pathname,
  host: url.host,
  origin: origin ?? '',
  status: answer.status,
  type: answer.headers['content-type'] ?? 'no content type',
  location: answer.headers['location'] ?? '',
  said: saidIn(answer),
  request: answer.headers['x-request-id'] ?? ''
})

const ofReason: Readonly<Record<string, FaultCode>> = {
  forbidden_host: 'host_refused',
  forbidden_origin: 'origin_refused',
  not_found: 'endpoint_unknown',
  stopped: 'tenant_stopped',
  rate_limited: 'gateway_busy',
  too_many: 'gateway_busy',
  overloaded: 'gateway_busy',
  unavailable: 'gateway_busy',
  shutting_down: 'gateway_busy'
}

/** Words of a path that end with their segment: of `authors` it is none. */
const isLoginPath = /(?:^|[/_.-])(?:log-?in|sign-?in|auth|oauth2?|authorize|sso|saml2?|adfs|accounts?)(?:[/_.-]|$)/i

/** Does the answer come from the gateway, and from this endpoint? @throws Diagnosis where not */
export function judgeFirstAnswer(endpoint: ExaminedEndpoint, answer: Exchanged): void {
  const { status, headers, text } = answer
  const found = (code: FaultCode, more: Readonly<Record<string, string>> = {}): Diagnosis =>
    new Diagnosis(code, { ...facts(endpoint, answer), ...more })
  const code = ofReason[reasonIn(answer) ?? '']
  if (code === 'endpoint_unknown' && !/\/(?:mcp|sse)\/?$/.test(endpoint.url.pathname))
    throw found('url_without_endpoint')
  if (code !== undefined) throw found(code)
  if (isOfGateway(answer)) return
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

/** Of an answer to `initialize` with a credential. @throws Diagnosis */
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
  throw new Diagnosis('initialize_refused', facts(endpoint, answer))
}

/** The stream of a host that knows HTTP+SSE only. @throws Diagnosis where the gateway does not open it */
export async function openSseStream(endpoint: ExaminedEndpoint, token: string | undefined): Promise<void> {
  const answer = await openStream(endpoint, bearer(token))
  if (answer.status !== 200)
    throw new Diagnosis('request_refused', { ...facts(endpoint, answer), method: `GET ${endpoint.url.pathname}` })
}

/** What a host of 2026-07-28 asks first, without a session. @throws Diagnosis. @returns the revisions that it hears */
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
  throw new Diagnosis(reasonIn(answer) === 'header_mismatch' ? 'headers_not_passed' : 'request_refused', found)
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
  const request = async (method: string, id: number, params: JsonObject = {}): Promise<JsonObject> => {
    const answer = await post(endpoint, message(method, params, id), headers)
    if (isObject(answer.json?.['result'])) return answer.json['result']
    throw new Diagnosis('request_refused', { ...facts(endpoint, answer), method })
  }
  const passed = (method: string, { status, headers: given }: Exchanged): void => {
    if (given['x-request-id'] === undefined) throw new Diagnosis('method_refused', { method, status })
  }
  await post(endpoint, message('notifications/initialized'), headers)
  const { tools } = await request('tools/list', 2)
  if (!Array.isArray(tools) || tools.length === 0) throw new Diagnosis('no_tools')
  tell('list', `${tools.length} tools on the first page`)
  await request('ping', 3)
  passed('GET', await openStream(endpoint, headers))
  const large = await post(endpoint, message('ping', { _meta: { padding: 'x'.repeat(largeMessageBytes) } }, 4), headers)
  if (!isOfGateway(large)) {
    const size = `${(largeMessageBytes / 1e6).toFixed(1)} MB`
    throw new Diagnosis('body_too_large_for_proxy', { size, status: large.status })
  }
  passed('DELETE', await reached(endpoint, () => send(url, { method: 'DELETE', headers })))
  tell('ping', 'answered; the stream opens, a large message passes, and the session ends')
}
