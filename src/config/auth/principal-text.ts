// `${principal.subject}` and similar references in headers of an upstream, which are replaced by values of the caller.

import type { Caller } from './upstream-auth.ts'

/** A part that is replaced by a value of the caller. */
export interface PrincipalPart {
  /** One of `principalNames`, or `claims.` and the name of a claim. */
  readonly name: string
  /** The text for callers that have no value. */
  readonly fallback?: string
}

/** A text with such parts. */
export type PrincipalText = ReadonlyArray<string | PrincipalPart>

export const principalNames = ['subject', 'issuer', 'clientId', 'scopes', 'groups', 'roles'] as const
type PrincipalName = (typeof principalNames)[number]

const ofClaims = 'claims.'

/** @returns undefined if it is no reference to the caller; 'unknown' if callers have no such member */
export function principalPartOf(inner: string): PrincipalPart | 'unknown' | undefined {
  if (!inner.startsWith('principal.')) return undefined
  const { name = '', fallback } = /^principal\.(?<name>.+?)(?::-(?<fallback>[^]*))?$/s.exec(inner)?.groups ?? {}
  const isKnown = principalNames.some((each) => each === name) || claimOf({ name }) !== undefined
  return isKnown ? { name, ...(fallback !== undefined && { fallback }) } : 'unknown'
}

/** @returns the claim that it names */
export function claimOf({ name }: Pick<PrincipalPart, 'name'>): string | undefined {
  return name.startsWith(ofClaims) && name.length > ofClaims.length ? name.slice(ofClaims.length) : undefined
}

/** Returns the value that a caller has under a name; undefined where its credential has none. */
export function valueOfCaller(
  caller: Caller,
  part: Pick<PrincipalPart, 'name'>
): string | readonly string[] | undefined {
  const claim = claimOf(part)
  if (claim !== undefined) return caller.claims?.[claim]
  const value = caller[part.name as PrincipalName]
  return value instanceof Set ? [...value] : (value as string | readonly string[])
}

/**
 * A value as a header carries it: visible ASCII as it stands, everything else, `%` and within lists `,` are
 * percent-encoded, so that nothing in it can end the header or begin another one (RFC 9110 section 5.5), and
 * `decodeURIComponent` gives the value back.
 */
export const headerFormOf = (value: string | readonly string[]): string =>
  typeof value === 'string' ? encoded(value) : value.map((each) => encoded(each).replaceAll(',', '%2C')).join(',')

const encoded = (value: string): string =>
  value.toWellFormed().replace(/[^\x21-\x24\x26-\x7e]/gu, (character) => encodeURIComponent(character))
