// Who somebody is, by the claims of the tenant's provider.

import { claimAt } from '../auth/claims.ts'
import type { LoginConfig } from '../config/auth/login-config.ts'
import { isObject, type JsonObject } from '../protocol/messages.ts'

/** Who somebody is, as the provider said it last. */
export interface Identity {
  readonly subject: string
  /** `sub` of the ID token, which userinfo has, too. */
  readonly sub?: string | undefined
  readonly name: string
  readonly groups: readonly string[]
  readonly roles: readonly string[]
  readonly refreshToken?: string | undefined
  /** The last one, for signing out at the provider. */
  readonly idToken?: string | undefined
  /** When the person signed in, and when the provider was asked last: epoch ms. */
  readonly signedInAt: number
  readonly askedAt: number
}

/** The provider says no: the person is not let in, and is told why. */
export class SignInRefused extends Error {
  readonly error: string

  constructor(error: string, message: string) {
    super(message)
    this.error = error
  }
}

/**
 * @param claims with the name of the subject
 * @throws SignInRefused where they cannot be used
 */
export function identityOf(
  { subjectClaim, groupsClaim, rolesClaim, requiredClaims = {} }: LoginConfig['provider'],
  claims: JsonObject,
  about: Pick<Identity, 'sub' | 'refreshToken' | 'idToken' | 'signedInAt' | 'askedAt'>
): Identity {
  const subject = claims[subjectClaim]
  if (typeof subject !== 'string' || subject === '' || subject.length > 255)
    throw new SignInRefused('server_error', `Its ID token has no usable claim ${subjectClaim}.`)
  const missing = Object.entries(requiredClaims).find(([path, values]) => !hasOneOf(claimAt(claims, path), values))
  if (missing !== undefined)
    throw new SignInRefused('access_denied', `Its claim ${missing[0]} has no value of requiredClaims.`)
  const name = [claims['email'], claims['preferred_username'], claims['name'], subject].find(
    (each) => typeof each === 'string' && each !== ''
  ) as string
  const [groups, roles] = [groupsClaim, rolesClaim].map((claim) => namesIn(claims, claim))
  // Not cut: a policy that denies a group would let its members in.
  if (groups === undefined || roles === undefined)
    throw new SignInRefused(
      'server_error',
      'It says only where the groups or roles are to be had (_claim_names), as of people who have many. ' +
        'Have it send only those that policies name.'
    )
  if (JSON.stringify([groups, roles]).length > maxTextChars)
    throw new SignInRefused(
      'server_error',
      `It names ${groups.length} groups and ${roles.length} roles, which are more than a token can hold. Have it ` +
        'send only those that policies name.'
    )
  return { ...about, subject, name: name.slice(0, 200), groups, roles }
}

/** Texts, numbers and truth values, or a list of them, compared as text. */
const hasOneOf = (claim: unknown, values: readonly string[]): boolean =>
  [claim].flat().some((each) => ['string', 'number', 'boolean'].includes(typeof each) && values.includes(String(each)))

/** Groups and roles of a person, as JSON: with all else that a token says, it is not longer than we accept. */
const maxTextChars = 4_000

/**
 * Groups or roles: an array, or one text, which may hold spaces and is one name.
 * @returns undefined where they are elsewhere (OpenID Connect Core 1.0 section 5.6.2; Entra, for more than 200 groups)
 */
function namesIn(claims: JsonObject, claim: string): string[] | undefined {
  const [value, elsewhere] = [claims[claim], claims['_claim_names']]
  if (value === undefined && isObject(elsewhere) && Object.hasOwn(elsewhere, claim)) return undefined
  return [value].flat().filter((each): each is string => typeof each === 'string')
}
