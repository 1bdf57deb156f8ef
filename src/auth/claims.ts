// From claims to what is known of a caller, under the names that the provider uses for them.

import { isObject, type JsonObject } from '../protocol/messages.ts'
import { scopeToken } from './bearer.ts'

/** Of a subject, a client, a group, a role; in characters. */
export const maxClaimLength = 512
/** Of groups, and of roles: more are left out. */
const maxNames = 256

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
 * @param paths whose scopes count, all of them; not given: `scope`, or else `scp`
 */
export function scopesOf(claims: JsonObject, paths?: readonly string[]): ReadonlySet<string> {
  const { scope, scp } = claims
  const given = paths?.map((path) => claimAt(claims, path)) ?? [scope === undefined ? scp : scope]
  // RFC 9068 section 2.2.3: words. A list is how others write it.
  if (paths === undefined && Array.isArray(scope)) return new Set()
  return new Set(given.flatMap(wordsOf))
}

function wordsOf(claim: unknown): string[] {
  const listed: unknown[] =
    typeof claim === 'string' ? claim.split(' ').filter((word) => word !== '') : Array.isArray(claim) ? claim : []
  return listed.every((one) => typeof one === 'string' && scopeToken.test(one)) ? (listed as string[]) : []
}

/** Of each claim an array of strings, or one string with spaces between the names. */
export function namesIn(claims: JsonObject, paths: readonly string[]): readonly string[] {
  const all = paths.flatMap((path): readonly unknown[] => {
    const claim = claimAt(claims, path)
    return typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  })
  return [...new Set(all.filter(isName))].slice(0, maxNames)
}

export function isName(value: unknown): value is string {
  // Control characters would forge lines wherever the name is shown.
  return typeof value === 'string' && value.length > 0 && value.length <= maxClaimLength && !/\p{Cc}/u.test(value)
}
