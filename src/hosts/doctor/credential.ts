// Why a credential is not taken. A token is read, and not trusted: only the gateway can say that one is good.

import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { cellText } from '../../observe/text-log.ts'
import { Diagnosis } from './catalogue.ts'
import { reasonIn, saidIn } from './endpoint-hops.ts'
import type { Exchanged } from './exchange.ts'

/** What the metadata of the endpoint says; undefined: it has none. */
export interface Announced {
  readonly resource: string
  readonly issuers: readonly string[]
}

/** @throws Diagnosis where the answer to a request with this credential is 401 or 403 */
export function judgeCredential(token: string, announced: Announced | undefined, answer: Exchanged, now: number): void {
  const { status, headers } = answer
  if (reasonIn(answer) === 'insufficient_scope') {
    const [, scope = ''] = /scope="([^"]*)"/.exec(headers['www-authenticate'] ?? '') ?? []
    throw new Diagnosis('scope_missing', { scope })
  }
  if (status !== 401) return
  // RFC 6750 section 3.1: no error where no credential was presented.
  if (!/error=/.test(headers['www-authenticate'] ?? '')) throw new Diagnosis('authorization_not_passed')
  if (token.startsWith('gha_')) throw new Diagnosis('admin_key')
  if (announced === undefined || token.startsWith('gh_')) throw new Diagnosis('key_unknown')
  const claims = claimsOf(token)
  if (claims === undefined) throw new Diagnosis('token_opaque')
  const { iss, exp, nbf, aud } = claims
  if (typeof iss === 'string' && !announced.issuers.includes(iss))
    throw new Diagnosis('token_of_other_issuer', { issuer: iss, known: announced.issuers.join(', ') })
  const seconds = Math.floor(now / 1_000)
  if (typeof exp === 'number' && exp <= seconds) throw new Diagnosis('token_expired', { ago: lasting(seconds - exp) })
  if (typeof nbf === 'number' && nbf > seconds)
    throw new Diagnosis('token_not_yet_valid', { ahead: lasting(nbf - seconds) })
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(announced.resource))
    throw new Diagnosis('token_for_another', {
      audience: audiences.map(cellText).join(', ') || 'nobody in particular',
      resource: announced.resource
    })
  throw new Diagnosis('token_not_accepted', { said: saidIn(answer), request: headers['x-request-id'] ?? '' })
}

function claimsOf(token: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const lasting = (seconds: number): string =>
  seconds < 120
    ? `${seconds} s`
    : seconds < 7_200
      ? `${Math.round(seconds / 60)} min`
      : `${Math.round(seconds / 3_600)} h`
