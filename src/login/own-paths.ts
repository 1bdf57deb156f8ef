// What a login front serves, and how often strangers may ask for what leaves something in the store.

import type { LoginConfig } from '../config/auth/login-config.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/**
 * What it serves. The library takes any case and a slash at the end, so that a limit could be got around by another
 * spelling.
 */
export const ownPaths = new RegExp(
  '^/(auth(/[^/]+)?|callback|connections|consents(/[^/]+/revoke)?|' +
    'interaction/[^/]+(/(allow|deny))?|jwks|reg(/[^/]+)?|session/end(/(confirm|success))?|' +
    'token(/revocation)?|.well-known/(oauth-authorization-server|openid-configuration))$'
)

/** @returns the limit of what strangers may do and leaves something in the store; undefined for all else */
export function limitOf(config: LoginConfig, path: string, method = '') {
  if (path === '/reg' && method === 'POST')
    return { name: 'registrationsPerHour', windowMs: hourMs, most: config.registrationsPerHour }
  // Who signs out has a session from then on, which keeps what the request said.
  if ((path === '/auth' || path === '/session/end') && method !== 'OPTIONS')
    return { name: 'authorizationsPerMinute', windowMs: minuteMs, most: config.authorizationsPerMinute }
  return undefined
}
