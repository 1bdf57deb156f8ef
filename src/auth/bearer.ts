// Reads the bearer token from the Authorization header. Query, body and cookies are never read (RFC 6750 section 5.3).

import { ambiguous, refused } from './refusal.ts'

/** Bytes. Longer tokens are refused before any of them is decoded. */
export const maxTokenBytes = 8192

// RFC 6750 section 2.1: b64token. The scheme is case-insensitive (RFC 9110 section 11.1); only spaces stand between the
// two.
const credentials = /^bearer +([\w\-.~+/]+=*)$/i
const scheme = /^bearer(?:[ \t]|$)/i

/**
 * @param rawHeaders of node's IncomingMessage: name, value, name, value. In `headers` node drops a second Authorization
 * silently.
 * @returns the token, or undefined where there is no Authorization header
 * @throws GatewayError `invalid_request` for two headers, `unauthenticated` for anything that is not one bearer token
 */
export function readBearer(rawHeaders: readonly string[]): string | undefined {
  let value: string | undefined
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length !== 13 || name.toLowerCase() !== 'authorization') continue
    if (value !== undefined) throw ambiguous('The request carries two Authorization headers. Send one.')
    value = rawHeaders[index + 1] ?? ''
  }
  if (value === undefined) return undefined
  if (!scheme.test(value))
    throw refused(
      'scheme',
      'The Authorization header is not "Bearer" followed by a token. Other schemes are not used here.'
    )
  if (value.length > maxTokenBytes + 64) throw tooLong()
  const token = credentials.exec(value)?.[1]
  if (token === undefined)
    throw refused('syntax', 'The Authorization header must be "Bearer", one space and one token, and nothing else.')
  if (token.length > maxTokenBytes) throw tooLong()
  return token
}

function tooLong() {
  return refused('size', `The token is longer than ${maxTokenBytes} bytes. Ask the issuer for one with fewer claims.`)
}
