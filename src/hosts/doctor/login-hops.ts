// The hops of a login as a host takes them: metadata of the endpoint (RFC 9728), discovery (RFC 8414, OpenID Connect),
// registration (RFC 7591), authorization with PKCE and resource (RFC 7636, RFC 8707), and the token.

import { createHash, randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { isLoopback } from '../../config/formats.ts'
import { nodeHttp } from '../../limits/node-http.ts'
import type { JsonObject } from '../../protocol/messages.ts'
import { cellText } from '../../observe/text-log.ts'
import { steadyClock } from '../../time/clock.ts'
import { Diagnosis } from './catalogue.ts'
import type { Announced } from './credential.ts'
import type { ExaminedEndpoint } from './answers.ts'
import { reached } from './endpoint-hops.ts'
import { ConnectionFault, type Exchanged, type SendOnce } from './exchange.ts'

export interface LoginServer {
  readonly issuer: string
  readonly authorize: URL
  readonly token: URL
  readonly register: URL | undefined
  /** The endpoint for hosts without a browser (RFC 8628 section 4). */
  readonly device: URL | undefined
  /** Whether the server issues refresh tokens. */
  readonly refreshes: boolean
}

export interface LoginClient {
  readonly clientId: string
  readonly redirectUri: string
}

/** @param url that the challenge names. @throws Diagnosis */
export async function readMetadata(endpoint: ExaminedEndpoint, url: string): Promise<Announced & { scope: string }> {
  const [place, own] = [URL.parse(url), endpoint.url]
  if (place === null) throw new Diagnosis('challenge_changed', { url })
  if (place.origin !== own.origin)
    throw new Diagnosis('public_url_differs', { announced: place.origin, reached: own.origin })
  const { status, json } = await reached(endpoint, () => endpoint.send(place))
  const { resource, authorization_servers: servers, scopes_supported: scopes } = json ?? {}
  if (status !== 200 || json === undefined) throw new Diagnosis('metadata_not_passed', { url, status })
  const changed = (detail: string): Diagnosis => new Diagnosis('metadata_changed', { url, detail })
  if (typeof resource !== 'string') throw changed('it has no "resource".')
  const issuers = Array.isArray(servers) ? servers.map(cellText) : []
  if (issuers.length === 0) throw changed('"authorization_servers" names none.')
  const wrong = issuers.find((issuer) => !URL.canParse(issuer))
  if (wrong !== undefined) throw changed(`"authorization_servers" has "${wrong}", which is no URL.`)
  if (resource !== own.href) throw new Diagnosis('resource_differs', { resource, url: own.href })
  return {
    resource,
    issuers,
    scope: Array.isArray(scopes) ? scopes.map(cellText).join(' ') : ''
  }
}

/** RFC 8414 section 3.1, and OpenID Connect Discovery with the path in front and behind. */
function metadataPlaces(issuer: string): URL[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '')
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`
  ].map((each) => new URL(each))
}

/** @throws Diagnosis issuer_unreachable */
export const atIssuer =
  (send: SendOnce, issuer: string): SendOnce =>
  async (url, wanted) => {
    try {
      return await send(url, wanted)
    } catch (error) {
      if (!(error instanceof ConnectionFault)) throw error
      throw new Diagnosis('issuer_unreachable', { issuer, reason: `${url.origin}: ${error.message || error.code}` })
    }
  }

/** @param hasClient the host has a client id already. @throws Diagnosis */
export async function discoverLogin(send: SendOnce, issuer: string, hasClient: boolean): Promise<LoginServer> {
  const tried: string[] = []
  for (const place of metadataPlaces(issuer)) {
    const answer = await atIssuer(send, issuer)(place)
    if (answer.status === 200 && typeof answer.json?.['issuer'] === 'string')
      return judgeServer(issuer, answer.json, hasClient)
    tried.push(`${place.pathname} ${answer.status}`)
  }
  throw new Diagnosis('issuer_without_metadata', { issuer, tried: tried.join(', ') })
}

function judgeServer(issuer: string, metadata: JsonObject, hasClient: boolean): LoginServer {
  if (metadata['issuer'] !== issuer)
    throw new Diagnosis('issuer_differs', { issuer, said: cellText(metadata['issuer']) })
  const urlOf = (name: string): URL | undefined => {
    const url = URL.parse(cellText(metadata[name])) ?? undefined
    if (url === undefined || url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)))
      return url
    throw new Diagnosis('issuer_url_unsafe', { issuer, name, url: url.href })
  }
  const [authorize, token] = [urlOf('authorization_endpoint'), urlOf('token_endpoint')]
  const [register, device] = [urlOf('registration_endpoint'), urlOf('device_authorization_endpoint')]
  if (authorize === undefined || token === undefined)
    throw new Diagnosis('issuer_incomplete', {
      issuer,
      missing: authorize === undefined ? 'authorization_endpoint' : 'token_endpoint'
    })
  const methods = metadata['code_challenge_methods_supported']
  if (!Array.isArray(methods) || !methods.includes('S256')) throw new Diagnosis('issuer_without_pkce', { issuer })
  const takesDocuments = metadata['client_id_metadata_document_supported'] === true
  if (register === undefined && !takesDocuments && !hasClient) throw new Diagnosis('no_registration', { issuer })
  const grants = metadata['grant_types_supported']
  const refreshes = Array.isArray(grants) && grants.includes('refresh_token')
  return { issuer, authorize, token, register, device, refreshes }
}

/**
 * Leaves a client behind there, as each host does.
 * @param way where the browser comes back to, or the grant without a browser
 * @throws Diagnosis
 */
export async function registerClient(
  send: SendOnce,
  { issuer, register, refreshes }: LoginServer,
  way: { readonly redirectUri: string } | { readonly grant: string }
): Promise<string> {
  if (register === undefined) throw new Diagnosis('no_registration', { issuer })
  const { status, json, text } = await atIssuer(send, issuer)(register, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      client_name: 'gatehouse doctor',
      redirect_uris: 'grant' in way ? [] : [way.redirectUri],
      application_type: 'native',
      grant_types: ['grant' in way ? way.grant : 'authorization_code', ...(refreshes ? ['refresh_token'] : [])],
      response_types: 'grant' in way ? [] : ['code'],
      token_endpoint_auth_method: 'none'
    })
  })
  const id = json?.['client_id']
  if (typeof id === 'string') return id
  throw new Diagnosis('registration_refused', { issuer, said: said(status, json, text) })
}

export const said = (status: number, json: JsonObject | undefined, text: string): string => {
  const { error, error_description: description } = json ?? {}
  const words = [cellText(error), cellText(description)].filter((each) => each !== '').join(', ')
  return `${
    words === ''
      ? text
          .replaceAll(/<[^>]*>|\s+/g, ' ')
          .trim()
          .slice(0, 120)
      : words
  } (HTTP ${status})`
}

/** Opens the listener to which the browser comes back. */
export async function openCallback() {
  const came = Promise.withResolvers<URLSearchParams>()
  const server = nodeHttp.createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1')
    if (pathname !== '/callback') return void response.writeHead(404).end()
    response.writeHead(200, { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' })
    response.end('Done. You can close this page and go back to the terminal.\n')
    came.resolve(searchParams)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    redirectUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`,
    came: came.promise,
    close: () => void server.close()
  }
}

/**
 * @param browse opens the page before a person
 * @returns the access token. @throws Diagnosis
 */
export async function logIn(
  send: SendOnce,
  server: LoginServer,
  { clientId, redirectUri }: LoginClient,
  { resource, scope }: { readonly resource: string; readonly scope: string },
  person: { browse(url: string): void; readonly came: Promise<URLSearchParams>; readonly waitMs: number }
): Promise<string> {
  const [verifier, state] = [randomBytes(32).toString('base64url'), randomBytes(16).toString('base64url')]
  const { authorize } = server
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    resource,
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...(scope !== '' && { scope })
  }
  for (const [name, value] of Object.entries(parameters)) authorize.searchParams.set(name, value)
  // Once without a person: what the server refuses at once is told without a browser.
  const first = await atIssuer(send, server.issuer)(authorize, { headers: { Accept: 'text/html' } })
  if (first.status >= 400)
    throw new Diagnosis('client_unknown', {
      status: first.status,
      said: said(first.status, first.json, first.text),
      redirect: redirectUri
    })
  const location = first.headers['location'] ?? ''
  if (location.startsWith(redirectUri)) judgeReturn(new URL(location).searchParams, { resource, scope, state })
  person.browse(authorize.href)
  const late = Promise.withResolvers<never>()
  const timer = steadyClock.timer(person.waitMs, () =>
    late.reject(new Diagnosis('login_not_finished', { seconds: person.waitMs / 1_000 }))
  )
  const returned = await Promise.race([person.came, late.promise]).finally(() => timer.close())
  const code = judgeReturn(returned, { resource, scope, state })
  const form = { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: redirectUri, resource }
  const answer = await atIssuer(send, server.issuer)(server.token, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
    body: new URLSearchParams({ ...form, code_verifier: verifier }).toString()
  })
  const token = answer.json?.['access_token']
  if (typeof token === 'string') return token
  throw new Diagnosis('token_refused', { said: said(answer.status, answer.json, answer.text) })
}

/** @param error its code, such as invalid_target (RFC 8707). @throws Diagnosis where it is about what was asked for */
export function judgeTarget(
  error: unknown,
  { resource, scope }: { readonly resource: string; readonly scope: string }
): void {
  if (error === 'invalid_target') throw new Diagnosis('resource_refused', { resource })
  if (error === 'invalid_scope') throw new Diagnosis('scope_refused', { scope })
}

/** @returns the code. @throws Diagnosis */
function judgeReturn(
  returned: URLSearchParams,
  asked: { readonly resource: string; readonly scope: string; readonly state: string }
): string {
  const [error, code] = [returned.get('error'), returned.get('code')]
  judgeTarget(error, asked)
  if (error === null && code !== null && returned.get('state') === asked.state) return code
  const description = returned.get('error_description')
  const words = error === null ? 'the answer does not belong to the question' : error
  throw new Diagnosis('login_refused', { said: description === null ? words : `${words}, ${description}` })
}

export const metadataUrlIn = ({ headers }: Exchanged): string | undefined =>
  /resource_metadata="([^"]+)"/.exec(headers['www-authenticate'] ?? '')?.[1]
