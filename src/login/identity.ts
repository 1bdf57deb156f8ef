// Who somebody is, by the claims of the tenant's provider.

import { claimAt, isElsewhere, isName, maxClaimLength, maxNames } from '../auth/claims.ts'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { JsonObject } from '../protocol/messages.ts'

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
  { subjectClaim, groupsClaim, rolesClaim, requiredClaims = {}, neededWhole = [] }: LoginConfig['provider'],
  claims: JsonObject,
  about: Pick<Identity, 'sub' | 'refreshToken' | 'idToken' | 'signedInAt' | 'askedAt'>
): Identity {
  const subject = claims[subjectClaim]
  if (!isName(subject) || subject.length > 255)
    throw new SignInRefused('server_error', `Its ID token has no usable claim ${subjectClaim}.`)
  const missing = Object.entries(requiredClaims).find(([path, values]) => !hasOneOf(claimAt(claims, path), values))
  if (missing !== undefined)
    throw new SignInRefused('access_denied', `Its claim ${missing[0]} has no value of requiredClaims.`)
  const name = [claims['email'], claims['preferred_username'], claims['name'], subject].find(
    (each) => typeof each === 'string' && each !== ''
  ) as string
  const groups = namesIn(claims, groupsClaim, neededWhole.includes('groups'), claims['hasgroups'] === true)
  const roles = namesIn(claims, rolesClaim, neededWhole.includes('roles'))
  if (Buffer.byteLength(JSON.stringify([subject, groups, roles])) > maxTextBytes)
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

/** Name, groups and roles of a person, as JSON: with all else that a token says, it is not longer than we accept. */
const maxTextBytes = 4_000

/**
 * Groups or roles: an array, or one text, which may hold spaces and is one name.
 * @param isNeededWhole none is left out, or cut: a policy that denies a group would let its members in. Otherwise what
 * is no name is left out, since some providers give objects or numbers.
 * @param hasMore the provider says that it has left some out
 * @throws SignInRefused where they cannot all be told, or are elsewhere (Entra, for more than 200 groups)
 */
function namesIn(claims: JsonObject, path: string, isNeededWhole: boolean, hasMore = false): readonly string[] {
  const value = claimAt(claims, path)
  if ((hasMore && isNeededWhole) || (value === undefined && isElsewhere(claims, path)))
    throw new SignInRefused(
      'server_error',
      `It says only where its claim ${path} is to be had (_claim_names, hasgroups), as of people who have ` +
        'many groups or roles. Have it send only those that policies name.'
    )
  const names = [value ?? []].flat().filter((each) => each !== '')
  if (!isNeededWhole) return names.filter(isName).slice(0, maxNames)
  if (!names.every(isName))
    throw new SignInRefused(
      'server_error',
      `Its claim ${path} is no list of names of 1 to ${maxClaimLength} characters without control characters.`
    )
  if (names.length > maxNames)
    throw new SignInRefused(
      'server_error',
      `Its claim ${path} has ${names.length} names, and ${maxNames} can be told. Have it send only those that ` +
        'policies name.'
    )
  return names
}
