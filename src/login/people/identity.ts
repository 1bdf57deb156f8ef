// Who somebody is, by the claims of the tenant's provider.

import { claimAt, isElsewhere, isName, maxClaimLength, maxNames } from '../../auth/claims.ts'
import type { LoginConfig } from '../../config/auth/login-config.ts'
import type { JsonObject } from '../../protocol/messages.ts'

type NameKind = 'groups' | 'roles'

/** The identity of a person, as the provider described it last. */
export interface Identity {
  readonly subject: string
  /** `sub` of the ID token, which userinfo has, too. */
  readonly sub?: string | undefined
  readonly name: string
  readonly groups: readonly string[]
  readonly roles: readonly string[]
  /** The kinds of names of which some cannot be read or passed on. Not given: none. */
  readonly leftOut?: readonly NameKind[]
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
  const found = {
    groups: namesIn(claims, groupsClaim, claims['hasgroups'] === true),
    roles: namesIn(claims, rolesClaim)
  }
  const isNeeded = (kind: NameKind): boolean => neededWhole.includes(kind)
  let leftBytes = maxTextBytes - bytesOf(subject)
  const kept: Record<NameKind, readonly string[]> = { groups: [], roles: [] }
  const leftOut: NameKind[] = []
  for (const kind of nameKinds.toSorted((one, other) => Number(isNeeded(other)) - Number(isNeeded(one)))) {
    const { names, fault } = found[kind]
    kept[kind] = fitting(names, leftBytes)
    leftBytes -= kept[kind].reduce((bytes, each) => bytes + bytesOf(each), 0)
    if (fault === undefined && kept[kind].length === names.length) continue
    if (isNeeded(kind)) throw new SignInRefused('server_error', fault ?? tooMany(found))
    leftOut.push(kind)
  }
  return { ...about, subject, name: name.slice(0, 200), ...kept, ...(leftOut.length > 0 && { leftOut }) }
}

const nameKinds = ['groups', 'roles'] as const

const tooMany = ({ groups, roles }: Record<NameKind, FoundNames>): string =>
  `It names ${groups.names.length} groups and ${roles.names.length} roles, which are more than a token can hold. ` +
  'Have it send only those that policies name.'

/** The length of a text as JSON, with a comma. */
const bytesOf = (text: string): number => Buffer.byteLength(JSON.stringify(text)) + 1

function fitting(names: readonly string[], maxBytes: number): readonly string[] {
  let bytes = 0
  const end = names.findIndex((each) => (bytes += bytesOf(each)) > maxBytes)
  return end === -1 ? names : names.slice(0, end)
}

/**
 * For an access token, which says as those of others do that names are left out: a rule about them may come while it
 * holds (OpenID Connect Core 1.0 section 5.6.2).
 */
export const toldOf = ({ groups, roles, leftOut = [] }: Identity) => ({
  groups: [...groups],
  roles: [...roles],
  ...(leftOut.length > 0 && { _claim_names: Object.fromEntries(leftOut.map((kind) => [kind, 'left-out'])) })
})

/** Texts, numbers and truth values, or a list of them, compared as text. */
const hasOneOf = (claim: unknown, values: readonly string[]): boolean =>
  [claim].flat().some((each) => ['string', 'number', 'boolean'].includes(typeof each) && values.includes(String(each)))

/** Name, groups and roles of a person, as JSON: with all else that a token says, it is not longer than we accept. */
const maxTextBytes = 4_000

interface FoundNames {
  /** The names that can be passed on. */
  readonly names: readonly string[]
  /** Why they are not all: a rule that denies a group would let its members in. */
  readonly fault: string | undefined
}

/**
 * Groups or roles: an array, or one text, which may hold spaces and is one name. Some providers give objects, or
 * numbers.
 * @param hasMore the provider says that it has left some out (Entra, for more than 200 groups)
 */
function namesIn(claims: JsonObject, path: string, hasMore = false): FoundNames {
  const value = claimAt(claims, path)
  const all = [value ?? []].flat().filter((each) => each !== '')
  const names = all.filter(isName)
  const faultOf = (): string | undefined => {
    if (hasMore || (value === undefined && isElsewhere(claims, path)))
      return (
        `It says only where its claim ${path} is to be had (_claim_names, hasgroups), as of people who have ` +
        'many groups or roles. Have it send only those that policies name.'
      )
    if (names.length < all.length)
      return `Its claim ${path} is no list of names of 1 to ${maxClaimLength} characters without control characters.`
    if (names.length > maxNames)
      return (
        `Its claim ${path} has ${names.length} names, and ${maxNames} can be told. Have it send only those that ` +
        'policies name.'
      )
    return undefined
  }
  return { names: names.slice(0, maxNames), fault: faultOf() }
}
