// Public names and resource URIs of an endpoint: pure functions of the configuration, so that restarts and replicas
// keep them. A public name is resolved by the catalog, never by splitting it.

import { GatewayError, type PublicName, type UpstreamName, publicName, upstreamName } from './messages.ts'

/** Hosts refuse longer tool names, and the conformance suite's `tools-name-format` fails them. */
export const maxNameLength = 64

const hashLength = 8

const unsafe = /[^A-Za-z0-9_.-]/

/**
 * Do hosts accept the name behind this prefix and its separator as it is? Looks at the parts: V8 copies what was put
 * together as soon as it is looked at.
 */
export const isSafeName = (start: string, name: string): boolean =>
  start.length + name.length <= maxNameLength && !unsafe.test(name) && !unsafe.test(start)

/**
 * The name that clients see for a tool or prompt. With an empty prefix the name is untouched. Otherwise characters
 * outside `A-Za-z0-9_.-` become `_`, and a hash of the original tells such names apart. One that is too long loses the
 * end of its prefix: the end of a name says what it does. Only where that is not enough, it loses its own beginning.
 */
export function publicNameFor(prefix: string, separator: string, name: string): PublicName {
  if (prefix === '') return publicName(name)
  const start = prefix + separator
  const full = start + name
  if (isSafeName(start, name)) return publicName(full)
  const safe = full.replace(/[^A-Za-z0-9_.-]/g, '_')
  const hash = shortHash(full)
  if (full.length + 1 + hashLength <= maxNameLength) return publicName(`${safe}_${hash}`)
  const end = safe.slice(prefix.length)
  const room = maxNameLength - hashLength - end.length
  if (room < 0) return publicName(`${hash}_${safe.slice(hashLength + 1 - maxNameLength)}`)
  return publicName((room === 0 ? '' : `${prefix.slice(0, room - 1)}_`) + hash + end)
}

/** Could it be a name of this prefix that was shortened? Told by its form, because what it was made of is not known. */
export function mayBeShortened(prefix: string, separator: string, name: string): boolean {
  if (prefix === '' || name.length !== maxNameLength) return false
  if (isHash(name.slice(0, hashLength)) && name[hashLength] === '_') return true
  for (let cut = -1; cut < prefix.length; cut++) {
    const start = cut === -1 ? '' : `${prefix.slice(0, cut)}_`
    if (!name.startsWith(start.slice(0, -1))) return false
    const at = start.length
    const isShort = isHash(name.slice(at, at + hashLength)) && name.startsWith(separator, at + hashLength)
    if (name.startsWith(start) && isShort) return true
  }
  return false
}

const isHash = (text: string): boolean => /^[0-9a-v]{8}$/.test(text)

/** 40 bits of a well-mixed, deterministic hash as 8 characters of base 32. Not for secrets. */
export function shortHash(text: string): string {
  let low = 0x811c9dc5
  let high = 0x9e3779b9
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    low = Math.imul(low ^ unit, 0x85ebca6b)
    high = Math.imul(high ^ unit, 0xc2b2ae35)
  }
  low = Math.imul(low ^ (low >>> 16), 0x45d9f3b) ^ Math.imul(high ^ (high >>> 13), 0x27d4eb2f)
  high = Math.imul(high ^ (high >>> 16), 0x45d9f3b) ^ Math.imul(low ^ (low >>> 13), 0x165667b1)
  const bits = ((BigInt(low >>> 0) << 32n) | BigInt(high >>> 0)) & 0xff_ffff_ffffn
  return bits.toString(32).padStart(hashLength, '0')
}

const scheme = 'gatehouse://'

/**
 * A resource URI, or the template of one, as an endpoint of several upstreams shows it:
 * `gatehouse://{upstream}/{original}`. Only a prefix is added, so expressions of RFC 6570 stay intact. `ui://` keeps
 * its scheme, because hosts of MCP Apps look at it: `ui://{upstream}/{rest}`. http(s) is left alone: clients may fetch
 * it themselves (2025-11-25 server/resources).
 */
export function wrapUri(upstream: UpstreamName, uri: string): string {
  if (/^https?:/i.test(uri)) return uri
  if (uri.startsWith('ui://')) return `ui://${upstream}/${uri.slice(5)}`
  return `${scheme}${upstream}/${uri}`
}

/** Reverses `wrapUri`. Undefined where the URI names no upstream. */
export function unwrapUri(uri: string): { readonly upstream: UpstreamName; readonly uri: string } | undefined {
  const own = uri.startsWith(scheme)
  if (!own && !uri.startsWith('ui://')) return undefined
  const start = own ? scheme.length : 5
  const slash = uri.indexOf('/', start)
  if (slash <= start) return undefined
  const rest = uri.slice(slash + 1)
  return { upstream: upstreamName(uri.slice(start, slash)), uri: own ? rest : `ui://${rest}` }
}

/**
 * A page of a list in memory. It begins after a named entry, so that it stays the same across restarts, replicas and
 * changes elsewhere in the list.
 * @param after the name of the last entry that was sent; undefined for the first page
 * @returns `start`: where in the list it begins; `last`: the entry that the next page begins after, undefined where
 * there is none
 * @throws GatewayError invalid_params where the entry is gone (specification, server/utilities/pagination)
 */
export function pageOf<Entry>(
  list: readonly Entry[],
  after: string | undefined,
  size: number,
  nameOf: (entry: Entry) => string
) {
  const at = after === undefined ? -1 : list.findIndex((entry) => nameOf(entry) === after)
  if (after !== undefined && at === -1) throw unknownCursor()
  const start = at + 1
  const entries = list.slice(start, start + size)
  const last = entries.at(-1)
  return { entries, start, last: last === undefined || start + size >= list.length ? undefined : nameOf(last) }
}

export const unknownCursor = (): GatewayError =>
  new GatewayError('invalid_params', 'Unknown or outdated cursor. Start the list again without a cursor.')
