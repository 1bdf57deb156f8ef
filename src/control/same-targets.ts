// A kill switch holds what it was put on, whatever that is called afterwards: a server under another name, a key under
// another name. Otherwise whoever may change the tenant would start again what was stopped.

import { hash } from 'node:crypto'
import { reservedIssuerPrefix } from '../config/auth/auth-config.ts'
import { keyDigest } from '../config/auth/key-rules.ts'
import type { Kill } from '../config/policy/kill.ts'
import { listOf, stringOrNone, treeOf, type Tree } from '../config/shape.ts'
import type { Tenant } from '../config/snapshot.ts'
import { hasReference } from './document/tenant-document.ts'

interface Server {
  readonly name: string
  /** undefined: a program, or its document does not say it before references are resolved. */
  readonly url?: string
}

interface KeySecrets {
  readonly sha256?: string
  readonly previous?: { readonly sha256: string }
}

/** What kill switches can be put on: the parts of a tenant that a name stands for. */
export interface KillTargets {
  readonly upstreams: ReadonlyMap<string, Server>
  readonly auth: { readonly keys: ReadonlyArray<{ readonly name: string } & KeySecrets> }
}

/** Where a server was when it, or a tool of it, was stopped. */
interface Place {
  /** A digest. */
  readonly server: string
  /**
   * Upstreams that led there, too, and have since: whoever stopped one of them did not mean these. Each as its name
   * and, after a blank, the digest of its query, which is empty where it has none.
   */
  readonly besides?: readonly string[]
}

/** By what a target is known besides its name, as it was when it was stopped. */
export interface SameTarget {
  /** Of an upstream at a URL, or of a tool of one: several where a platform-admin took a kill switch over. */
  readonly places?: readonly Place[]
  /** The SHA-256 of an API key, and of the one before it. */
  readonly secrets?: readonly string[]
}

/** The issuer of callers who have a key. */
export const issuerOfKeys = `${reservedIssuerPrefix}key`

/** The characters of a digest that are kept: enough not to meet by chance, and a thousand of them are kept. */
const digestChars = 22

const none: ReadonlySet<string> = new Set()

const digestOf = (...parts: readonly string[]): string =>
  hash('sha256', JSON.stringify(parts), 'base64url').slice(0, digestChars)

/** @returns what the tree of a document has, whatever its references stand for, and whether it can be used or not */
export function targetsIn(tree: Tree): KillTargets {
  const upstreams = Object.entries(treeOf(tree['upstreams'])).map(([name, upstream]): readonly [string, Server] => {
    const url = stringOrNone(treeOf(upstream)['url'])
    return [name, { name, ...(url !== undefined && URL.canParse(url) && !hasReference(url) && { url }) }]
  })
  const keys = listOf(treeOf(tree['auth'])['keys']).map((each): KillTargets['auth']['keys'][number] => {
    const { name, sha256, previousSha256 } = treeOf(each)
    const [own, previous] = [keyDigest({ sha256 }), keyDigest({ sha256: previousSha256 })]
    return { name: String(name), ...(own && { sha256: own }), ...(previous && { previous: { sha256: previous } }) }
  })
  return { upstreams: new Map(upstreams), auth: { keys } }
}

interface FoundPlace {
  readonly name: string
  readonly server: string
  readonly query: string
}

/**
 * Where a server is: its host, a port of its own and its path, however these are spelt. Not the scheme: both reach the
 * same server. Nor the query: a server may take what a parameter says from elsewhere, or do without it, and whoever
 * leaves one out must not start again what was stopped. undefined: a program, which only a platform-admin starts.
 */
function placeOf(server: Server | undefined): FoundPlace | undefined {
  if (server?.url === undefined) return undefined
  const { hostname, port, pathname, searchParams } = new URL(server.url)
  // Parameters of a segment (`;a=b`) are left out as those of the query are.
  const path = pathname
    .replace(/%[0-9a-f]{2}/gi, (escaped) => String.fromCharCode(parseInt(escaped.slice(1), 16)))
    .replace(/;[^/]*/g, '')
  const place = [hostname.replace(/\.$/, ''), port === '80' || port === '443' ? '' : port, path]
  const spelt = place.map((each) => each.toLowerCase().replace(/\/+/g, '/').replace(/\/$/, ''))
  const parameters = [...searchParams].map((each) => JSON.stringify(each)).sort()
  const query = parameters.length === 0 ? '' : digestOf(...parameters)
  return { name: server.name, server: digestOf(...spelt), query }
}

const entryOf = ({ name, query }: FoundPlace): string => `${name} ${query}`
const nameIn = (entry: string): string => entry.split(' ', 1)[0] ?? ''

const secretsOf = ({ sha256, previous }: KeySecrets): string[] => [
  ...(sha256 === undefined ? [] : [sha256]),
  ...(previous === undefined ? [] : [previous.sha256])
]

/** Values by what they are found by: several may be found by one. */
function grouped<T>(entries: Iterable<readonly [key: string, value: T]>): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const [key, value] of entries) {
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [value])
    else group.push(value)
  }
  return groups
}

/** Its upstreams, by the server that they lead to. */
const upstreamsByServer = ({ upstreams }: Pick<KillTargets, 'upstreams'>) =>
  grouped(
    [...upstreams.values()].flatMap((each) => {
      const place = placeOf(each)
      return place === undefined ? [] : [[place.server, place] as const]
    })
  )

const keysBySecret = ({ auth }: Tenant) =>
  grouped(auth.keys.flatMap((each) => secretsOf(each).map((secret) => [secret, each.name] as const)))

const keyOf = (kill: Kill): string | undefined => {
  if (kill.kind === 'key') return kill.key
  return kill.kind === 'principal' && kill.issuer === issuerOfKeys ? kill.subject : undefined
}

/** @param tenant as it is without its kill switches */
export function sameTarget(kill: Kill, tenant: KillTargets): SameTarget | undefined {
  const key = keyOf(kill)
  const secrets = tenant.auth.keys.filter(({ name }) => name === key).flatMap(secretsOf)
  if (secrets.length > 0) return { secrets }
  if (kill.kind !== 'upstream' && kill.kind !== 'tool') return undefined
  const place = placeOf(tenant.upstreams.get(kill.upstream))
  if (place === undefined) return undefined
  const others = upstreamsByServer(tenant).get(place.server) ?? []
  const besides = others.filter(({ name }) => name !== kill.upstream).map(entryOf)
  return { places: [{ server: place.server, ...(besides.length > 0 && { besides }) }] }
}

/** Whoever takes a kill switch over may mean what is there now; what was stopped first stays so, too. */
export function bothTargets(first: SameTarget | undefined, second: SameTarget | undefined): SameTarget | undefined {
  if (first === undefined || second === undefined) return first ?? second
  const places = new Map([...(second.places ?? []), ...(first.places ?? [])].map((each) => [each.server, each]))
  const secrets = new Set([...(first.secrets ?? []), ...(second.secrets ?? [])])
  return {
    ...(places.size > 0 && { places: [...places.values()] }),
    ...(secrets.size > 0 && { secrets: [...secrets] })
  }
}

/** @returns the names that led where it did when it was stopped, and are not stopped with it */
export const besidesOf = (same: SameTarget | undefined, also: ReadonlySet<string> = none): string[] => [
  ...new Set(same?.places?.flatMap(({ besides = [] }) => besides.map(nameIn))).difference(also)
]

/** A name that has been gone is one like any other when it comes back. @param names the upstreams that there are */
export function withoutGone(same: SameTarget, names: ReadonlySet<string>): SameTarget {
  if (besidesOf(same).every((name) => names.has(name))) return same
  const places = same.places?.map(({ besides = [], ...place }): Place => {
    const left = besides.filter((entry) => names.has(nameIn(entry)))
    return { ...place, ...(left.length > 0 && { besides: left }) }
  })
  return { ...same, ...(places && { places }) }
}

/**
 * @param tenant as it is without its kill switches
 * @returns the names under which what a kill switch was put on has come since; kills of one target get the same set
 */
export function alsoStoppedIn(tenant: Tenant): (kill: Kill, same: SameTarget | undefined) => ReadonlySet<string> {
  let upstreams: ReturnType<typeof upstreamsByServer> | undefined
  let keys: ReturnType<typeof keysBySecret> | undefined
  const known = new Map<string, ReadonlySet<string>>()

  function namesOf({ places = [], secrets = [] }: SameTarget): string[] {
    if (secrets.length > 0) keys ??= keysBySecret(tenant)
    if (places.length > 0) upstreams ??= upstreamsByServer(tenant)
    const ofPlaces = places.flatMap(({ server, besides }) => {
      const others = new Set(besides)
      const found = upstreams?.get(server) ?? []
      return found.filter((each) => !others.has(entryOf(each))).map(({ name }) => name)
    })
    return [...secrets.flatMap((secret) => keys?.get(secret) ?? []), ...ofPlaces]
  }

  return (kill, same) => {
    const name = kill.kind === 'upstream' || kill.kind === 'tool' ? kill.upstream : keyOf(kill)
    if (name === undefined || same === undefined) return none
    const target = JSON.stringify([name, same])
    const names = known.get(target) ?? new Set(namesOf(same).filter((each) => each !== name))
    known.set(target, names)
    return names
  }
}
