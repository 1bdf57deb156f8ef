// Why a credential is not taken. A token is read, and not trusted: only the gateway can say that one is good.

import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { cellText } from '../../observe/text-log.ts'
import { reasonIn, refusalIn, saidIn } from './answers.ts'
import { Diagnosis, type FaultCode } from './catalogue.ts'
import type { Exchanged } from './exchange.ts'

/** The metadata of the endpoint; undefined: it has none. */
export interface Announced {
  readonly resource: string
  readonly issuers: readonly string[]
}

/** The fault by the check that a credential did not pass, where that says enough. */
const ofRefusal: Readonly<Record<string, FaultCode>> = {
  endpoint: 'key_not_usable',
  inactive: 'token_not_active',
  bound: 'proof_missing',
  unbound: 'proof_missing',
  proof: 'proof_missing',
  nonce: 'proof_missing'
}

/** @throws Diagnosis where the answer to a request with this credential is 401 or 403 */
export function judgeCredential(token: string, announced: Announced | undefined, answer: Exchanged, now: number): void {
  const { status, headers } = answer
  const challenge = headers['www-authenticate'] ?? ''
  const [refusal = '', said] = [refusalIn(answer), saidIn(answer)]
  // Keys of a file may have any form; whatever a tenant without issuers is given is meant as one.
  const isKey = announced === undefined || token.startsWith('gatehouse_')
  if (reasonIn(answer) === 'insufficient_scope') {
    const [, scope = ''] = /scope="([^"]*)"/.exec(challenge) ?? []
    throw new Diagnosis(isKey ? 'key_without_scope' : 'scope_missing', { scope, said })
  }
  if (status !== 401) return
  // RFC 6750 section 3.1: no error where no credential was presented.
  if (!/error=/.test(challenge)) throw new Diagnosis('authorization_not_passed', { said })
  if (token.startsWith('gha_')) throw new Diagnosis('admin_key')
  const code = ofRefusal[refusal]
  if (code !== undefined) throw new Diagnosis(code, { said })
  const claims = claimsOf(token)
  if (claims === undefined && refusal === 'expired') throw new Diagnosis('key_not_usable', { said })
  if (isKey || claims === undefined) throw new Diagnosis(isKey ? 'key_unknown' : 'token_opaque', { said })
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
  throw new Diagnosis('token_not_accepted', { said, request: headers['x-request-id'] ?? '' })
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
