// What a login front serves, and how often strangers may ask for what leaves something in the store, or has the
// gateway ask somebody.

import type { LoginConfig } from '../../config/auth/login-config.ts'
import { GatewayError } from '../../protocol/messages.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/**
 * What it serves. The library takes any case and a slash at the end, so that a limit could be got around by another
 * spelling.
 */
const ownPaths = new RegExp(
  '^/(auth(/[^/]+)?|callback|connections|consents(/[^/]+/revoke)?|' +
    'interaction/[^/]+(/(allow|deny))?|jwks|reg(/[^/]+)?|session/end(/(confirm|success))?|' +
    'token(/revocation)?|.well-known/(oauth-authorization-server|openid-configuration))$'
)

/** The most parameters of a query: the time in which the library reads one grows with the square of their number. */
const maxParameters = 100

/**
 * @param path what follows the path of the front, with its query; two slashes at its begin name another host, or none
 * @throws GatewayError not_found for what a front does not serve; invalid_request for too many parameters
 */
export function frontUrlOf(path: string, issuer: string): URL {
  const url = URL.parse(path, issuer)
  if (url === null || !ownPaths.test(url.pathname)) throw noPage(issuer)
  const { search } = url
  let parameters = 1
  for (let at = search.indexOf('&'); at !== -1; at = search.indexOf('&', at + 1))
    if (++parameters > maxParameters)
      throw new GatewayError('invalid_request', `The query has more than ${maxParameters} parameters.`)
  return url
}

const noPage = (issuer: string): GatewayError =>
  new GatewayError(
    'not_found',
    `The authorization server has nothing here. ${issuer}/.well-known/openid-configuration says what it has, and where.`
  )

export type StrangerLimit = 'registrations' | 'authorizations' | 'signIns' | 'clientDocuments'

/** @returns by what is counted: how often one address may have it in the window, and the key of the configuration */
export function limitsOf({ registrationsPerHour, authorizationsPerMinute }: LoginConfig) {
  const ofMinute = { key: 'authorizationsPerMinute', windowMs: minuteMs, most: authorizationsPerMinute }
  return {
    registrations: { key: 'registrationsPerHour', windowMs: hourMs, most: registrationsPerHour },
    authorizations: ofMinute,
    signIns: ofMinute,
    clientDocuments: ofMinute
  } satisfies Record<StrangerLimit, unknown>
}

/** @returns what a request begins, if it is one that strangers may make and that may leave something in the store */
export function begunBy(path: string, method = ''): StrangerLimit | undefined {
  if (path === '/reg' && method === 'POST') return 'registrations'
  // Who signs out has a session from then on, which keeps what the request said.
  if ((path === '/auth' || path === '/session/end') && method !== 'OPTIONS') return 'authorizations'
  return undefined
}
