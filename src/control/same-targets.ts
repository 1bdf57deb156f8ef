// A kill switch holds what it was put on, whatever that is called afterwards: a server under another name, a key under
// another name. Otherwise whoever may change the tenant would start again what was stopped.

import { hash } from 'node:crypto'
import { reservedIssuerPrefix, type KeyConfig } from '../config/auth/auth-config.ts'
import type { Kill } from '../config/policy/kill.ts'
import type { Tenant, UpstreamDefinition } from '../config/snapshot.ts'
import { upstreamName } from '../protocol/messages.ts'

/** By what a target is known besides its name, as it was when it was stopped. */
export interface SameTarget {
  /** The digest of the address of an upstream at a URL, or of a tool of one. */
  readonly server?: string
  /** Names of upstreams that led there, too: whoever stopped one of them did not mean these. */
  readonly besides?: readonly string[]
  /** The SHA-256 of an API key, and of the one before it. */
  readonly secrets?: readonly string[]
}

/** The issuer of callers who have a key. */
const issuerOfKeys = `${reservedIssuerPrefix}key`

/** The characters of a digest that are kept: enough not to meet by chance, and a thousand of them are kept. */
const digestChars = 22

/**
 * Where a server is: its host, a port of its own and its path, however these are spelt. Neither the scheme nor the
 * query: who adds one reaches the same server. undefined: a program, which only a platform-admin starts.
 */
function serverOf(definition: UpstreamDefinition | undefined): string | undefined {
  if (definition?.type !== 'http') return undefined
  const { hostname, port, pathname } = new URL(definition.url)
  const path = pathname.replace(/%[0-9a-f]{2}/gi, (escaped) => String.fromCharCode(parseInt(escaped.slice(1), 16)))
  const place = [hostname.replace(/\.$/, ''), port === '80' || port === '443' ? '' : port, path]
  const [host = '', ...rest] = place.map((each) => each.toLowerCase().replace(/\/+/g, '/').replace(/\/$/, ''))
  return hash('sha256', JSON.stringify([host, ...rest]), 'base64url').slice(0, digestChars)
}

const secretsOf = ({ sha256, previous }: Pick<KeyConfig, 'sha256' | 'previous'>): string[] => [
  sha256,
  ...(previous === undefined ? [] : [previous.sha256])
]

/** Values by what they are found by: several may be found by one. */
function grouped<T>(
  entries: Iterable<readonly [key: string | undefined, value: T]>
): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const [key, value] of entries) {
    if (key === undefined) continue
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [value])
    else group.push(value)
  }
  return groups
}

const upstreamsByServer = ({ upstreams }: Tenant) =>
  grouped([...upstreams.values()].map((each) => [serverOf(each), String(each.name)] as const))

const keysBySecret = ({ auth }: Tenant) =>
  grouped(auth.keys.flatMap((each) => secretsOf(each).map((secret) => [secret, each.name] as const)))

const keyOf = (kill: Kill): string | undefined => {
  if (kill.kind === 'key') return kill.key
  return kill.kind === 'principal' && kill.issuer === issuerOfKeys ? kill.subject : undefined
}

/** @param tenant as it is without its kill switches; undefined: nobody knows what it has */
export function sameTarget(kill: Kill, tenant: Tenant | undefined): SameTarget | undefined {
  if (tenant === undefined) return undefined
  const key = keyOf(kill)
  const secrets = tenant.auth.keys.filter(({ name }) => name === key).flatMap(secretsOf)
  if (secrets.length > 0) return { secrets }
  if (kill.kind !== 'upstream' && kill.kind !== 'tool') return undefined
  const server = serverOf(tenant.upstreams.get(upstreamName(kill.upstream)))
  if (server === undefined) return undefined
  const besides =
    upstreamsByServer(tenant)
      .get(server)
      ?.filter((name) => name !== kill.upstream) ?? []
  return { server, ...(besides.length > 0 && { besides }) }
}

/**
 * @param tenant as it is without its kill switches
 * @returns the names under which what a kill switch was put on has come since; kills of one target get the same set
 */
export function alsoStoppedIn(tenant: Tenant): (kill: Kill, same: SameTarget | undefined) => ReadonlySet<string> {
  let upstreams: ReturnType<typeof upstreamsByServer> | undefined
  let keys: ReturnType<typeof keysBySecret> | undefined
  const known = new Map<string, ReadonlySet<string>>()

  function namesOf({ server, besides = [], secrets = [] }: SameTarget): string[] {
    if (secrets.length > 0) {
      keys ??= keysBySecret(tenant)
      return secrets.flatMap((secret) => keys?.get(secret) ?? [])
    }
    if (server === undefined) return []
    upstreams ??= upstreamsByServer(tenant)
    const others = new Set(besides)
    return upstreams.get(server)?.filter((upstream) => !others.has(upstream)) ?? []
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

const none: ReadonlySet<string> = new Set()
