// Reads scopes, groups, roles and other members of a caller from the claims that the configuration names.

import type { IssuerConfig } from '../config/auth/auth-config.ts'
import { isObject, type JsonObject } from '../protocol/messages.ts'
import { scopeToken } from './bearer.ts'

/** The longest name of a subject, a client, a group or a role, in characters. */
export const maxClaimLength = 512
/** The most groups and the most roles: more are left out, and such a token is refused where a rule depends on them. */
export const maxNames = 256

/**
 * @param path the name of a claim, or names with dots between them, such as `realm_access.roles`. A claim that has just
 * this name, dots and all, comes first: many are URLs
 */
export function claimAt(claims: JsonObject, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const name of path.split('.')) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/**
 * A claim of the wrong shape grants nothing. `*` is a name like any other, not a pattern.
 * @param paths the claims whose scopes are joined; not given: `scope`, or else `scp`
 */
function scopesOf(claims: JsonObject, paths?: readonly string[]): ReadonlySet<string> {
  const { scope, scp } = claims
  if (paths !== undefined) return new Set(paths.flatMap((path) => scopesIn(claimAt(claims, path))))
  // `scope` is one string of words (RFC 9068 section 2.2.3): a list there grants nothing. `scp` may be a list.
  if (scope !== undefined) return new Set(typeof scope === 'string' ? scopesIn(scope) : [])
  return new Set(scopesIn(scp))
}

function scopesIn(claim: unknown): readonly string[] {
  const words = wordsOf(claim)
  return words.every((word) => typeof word === 'string' && scopeToken.test(word)) ? (words as string[]) : []
}

/** Scopes of a token: those of `scopes`, or of `appScopes` where it has none of these claims; without their prefix. */
export function scopesNamed(claims: JsonObject, { claims: names, scopePrefix }: IssuerConfig): ReadonlySet<string> {
  const { scopes, appScopes } = names ?? {}
  const isApp =
    appScopes !== undefined && (scopes ?? usualScopeClaims).every((path) => claimAt(claims, path) === undefined)
  const found = scopesOf(claims, isApp ? appScopes : scopes)
  if (scopePrefix === undefined) return found
  return new Set([...found].map((scope) => (scope.startsWith(scopePrefix) ? scope.slice(scopePrefix.length) : scope)))
}

export const usualScopeClaims: readonly string[] = ['scope', 'scp']

/** Reads the names in each claim: an array of strings, or one string with spaces between the names. */
export const namesIn = (claims: JsonObject, paths: readonly string[]): readonly string[] => [
  ...new Set(
    paths
      .flatMap((path) => wordsOf(claimAt(claims, path)))
      .filter(isName)
      .slice(0, maxNames)
  )
]

/**
 * Whether a token leaves out some groups or roles. Some issuers do so if there are too many, and name a place for the
 * rest (OpenID Connect Core 1.0 section 5.6.2; Entra: `hasgroups`); names that cannot be read count as left out, too. A
 * rule that denies a group would not apply to such a caller.
 */
export function leavesNamesOut(claims: JsonObject, what: 'groups' | 'roles', paths: readonly string[]): boolean {
  const values = paths.map((path) => claimAt(claims, path) ?? [])
  const names = values.flatMap(wordsOf).filter((name) => name !== '')
  return (
    (what === 'groups' && claims['hasgroups'] === true) ||
    names.length > maxNames ||
    !names.every(isName) ||
    values.some((value) => typeof value !== 'string' && !Array.isArray(value)) ||
    paths.some((path) => isElsewhere(claims, path))
  )
}

/** Whether the value of a claim has to be fetched elsewhere (OpenID Connect Core 1.0 section 5.6.2). */
export function isElsewhere({ _claim_names: elsewhere }: JsonObject, path: string): boolean {
  return isObject(elsewhere) && [path, path.split('.', 1)[0] ?? path].some((name) => Object.hasOwn(elsewhere, name))
}

/**
 * @returns the claims that are strings, numbers or lists of strings; unsafe values (control characters) are left out
 */
export function claimsNamed(claims: JsonObject, paths: readonly string[]): Record<string, string | readonly string[]> {
  const found = paths.map((path) => [path, toldValue(claimAt(claims, path))] as const)
  return Object.fromEntries(found.flatMap(([path, value]) => (value === undefined ? [] : [[path, value]])))
}

function toldValue(claim: unknown): string | readonly string[] | undefined {
  if (isName(claim)) return claim
  if (typeof claim === 'boolean' || Number.isSafeInteger(claim)) return String(claim)
  return Array.isArray(claim) && claim.length <= maxNames && claim.every(isName) ? claim : undefined
}

/** The members of an array, or the words of a string. */
const wordsOf = (claim: unknown): readonly unknown[] =>
  typeof claim === 'string' ? claim.split(' ').filter((word) => word !== '') : Array.isArray(claim) ? claim : []

export function isName(value: unknown): value is string {
  // Control characters would forge lines wherever the name is shown.
  return typeof value === 'string' && value.length > 0 && value.length <= maxClaimLength && !/\p{Cc}/u.test(value)
}
