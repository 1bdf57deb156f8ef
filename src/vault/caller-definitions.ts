// The definitions of upstreams that are sent the identity of the caller, one for each caller, with headers, lists and
// connections of their own. A definition is made once for each caller, and again when a later token has other claims.

import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { personKeyOf } from '../auth/principal.ts'
import { claimOf, headerFormOf, type PrincipalText, valueOfCaller } from '../config/auth/principal-text.ts'
import { principalNameOf } from '../config/auth/told-caller.ts'
import { bringsIdToken, type Caller } from '../config/auth/upstream-auth.ts'
import type { HttpDefinition, Tenant, UpstreamDefinition } from '../config/snapshot.ts'
import type { TenantId, UpstreamName } from '../protocol/messages.ts'
import { type Clock, every } from '../time/clock.ts'

/** The most callers of one tenant that a process remembers; the one with the oldest request is forgotten first. */
const maxCallersOfTenant = 5_000
/** A caller without a request for so long is forgotten, with their connections and lists. In milliseconds. */
const idleMs = 60 * 60_000
/** The most definitions of one caller at one upstream: each of their tokens may have other claims. */
const maxPerUpstream = 4
/** The longest header, in characters: servers refuse longer ones. */
const maxHeaderLength = 8_192

/** A caller: with all claims, where the request has a token, or only as the owner of a session or call. */
export type AskingCaller = Caller | (Pick<Caller, 'issuer' | 'subject'> & { readonly clientId?: string })

export type DefinitionsOfCaller = ReadonlyMap<UpstreamName, UpstreamDefinition>

interface KnownCaller {
  readonly tenant: Tenant
  readonly definitions: DefinitionsOfCaller
  /** The definitions that were made, by the hash of the configured one, the newest last. */
  readonly made: Map<string, Map<string, HttpDefinition>>
}

/** Whether the upstream is sent the identity of the caller: then callers share no connection. */
export const followsCaller = (definition: UpstreamDefinition): definition is HttpDefinition =>
  definition.type === 'http' &&
  (definition.principalHeaders !== undefined ||
    definition.auth?.type === 'signed' ||
    definition.auth?.type === 'tokenExchange')

const isWhole = (viewer: AskingCaller): viewer is Caller => 'scopes' in viewer

export type CallerDefinitions = ReturnType<typeof createCallerDefinitions>

export function createCallerDefinitions(clock: Clock) {
  const followersOf = new WeakMap<Tenant, readonly HttpDefinition[]>()
  const tenants = new Map<TenantId, LRUCache<string, KnownCaller>>()
  const keys = new WeakMap<Caller, string>()
  const latest = new WeakMap<Caller, KnownCaller>()
  /** The ids of the callers whose connections may stay open. */
  const held = new Set<string>()
  const listeners: Array<() => void> = []

  function upstreamsOf(tenant: Tenant): readonly HttpDefinition[] {
    const found = followersOf.get(tenant) ?? [...tenant.upstreams.values()].filter(followsCaller)
    followersOf.set(tenant, found)
    return found
  }

  function keyOf(tenant: TenantId, { issuer, subject, clientId = '' }: AskingCaller): string {
    return hash('sha256', JSON.stringify([personKeyOf({ tenant, issuer, subject }), clientId]), 'base64url')
  }

  function forget({ made }: KnownCaller): void {
    for (const definitions of made.values()) for (const id of definitions.keys()) held.delete(id)
    for (const listener of listeners) listener()
  }

  function callersOf(tenant: TenantId): LRUCache<string, KnownCaller> {
    const found =
      tenants.get(tenant) ??
      new LRUCache<string, KnownCaller>({
        max: maxCallersOfTenant,
        ttl: idleMs,
        updateAgeOnGet: true,
        perf: clock,
        ttlResolution: 0,
        dispose: (known, _key, reason) => {
          if (reason !== 'set') forget(known)
        }
      })
    tenants.set(tenant, found)
    return found
  }

  const sweeper = every(clock, idleMs / 60, () => {
    for (const callers of tenants.values()) callers.purgeStale()
  })

  function made(
    tenant: Tenant,
    definition: HttpDefinition,
    key: string,
    caller: Caller,
    known: KnownCaller['made']
  ): HttpDefinition {
    const next = definitionFor(definition, key, caller, tenant)
    const id = next.hash.split('.')[2] ?? ''
    const before = known.get(definition.hash) ?? new Map<string, HttpDefinition>()
    const same = before.get(id)
    // It is no part of the hash: a reload may have changed it.
    const found = same?.lendSessions === next.lendSessions ? same : next
    known.set(definition.hash, before.set(id, found))
    held.add(id)
    const [oldest] = before.size > maxPerUpstream ? before.keys() : []
    if (oldest !== undefined) {
      before.delete(oldest)
      held.delete(oldest)
    }
    return found
  }

  function know(tenant: Tenant, key: string, caller: Caller): KnownCaller {
    const callers = callersOf(tenant.id)
    const before = callers.get(key)
    const all = before?.made ?? new Map<string, Map<string, HttpDefinition>>()
    const hashes = new Set(upstreamsOf(tenant).map((definition) => definition.hash))
    for (const [hash, definitions] of all) {
      if (hashes.has(hash)) continue
      all.delete(hash)
      for (const id of definitions.keys()) held.delete(id)
    }
    const definitions = new Map(
      upstreamsOf(tenant).map((definition) => [definition.name, made(tenant, definition, key, caller, all)])
    )
    const isSame =
      before?.tenant === tenant && [...definitions].every(([name, each]) => before.definitions.get(name) === each)
    // The same map object while nothing differs, because views are cached by it.
    const known = isSame ? before : { tenant, definitions, made: all }
    callers.set(key, known)
    latest.set(caller, known)
    return known
  }

  return {
    /**
     * @returns the definitions of this caller; undefined if no upstream of the tenant is sent the identity of the
     * caller, or this process does not know the caller
     */
    of(tenant: Tenant, viewer: AskingCaller): DefinitionsOfCaller | undefined {
      if (upstreamsOf(tenant).length === 0) return undefined
      if (!isWhole(viewer)) {
        const known = callersOf(tenant.id).get(keyOf(tenant.id, viewer))
        return known?.tenant === tenant ? known.definitions : undefined
      }
      const key = keys.get(viewer) ?? keyOf(tenant.id, viewer)
      keys.set(viewer, key)
      const known = latest.get(viewer)
      // Read in any case, because reading marks the caller as recently used.
      const isKept = callersOf(tenant.id).get(key) === known
      return (known?.tenant === tenant && isKept ? known : know(tenant, key, viewer)).definitions
    },
    /** Whether connections with this part of a hash may stay open. */
    isHeld: (id: string): boolean => held.has(id),
    /** The listener is called when a caller was forgotten. */
    onForget(listener: () => void): void {
      listeners.push(listener)
    },
    /** Forgets the callers of tenants that are no longer configured. */
    retain(configured: Pick<ReadonlySet<TenantId>, 'has'>): void {
      for (const [tenant, callers] of tenants) {
        if (configured.has(tenant)) continue
        tenants.delete(tenant)
        callers.clear()
      }
    },
    close(): void {
      sweeper.close()
    }
  }
}

function definitionFor(definition: HttpDefinition, key: string, caller: Caller, of: Tenant): HttpDefinition {
  const { name, principalHeaders = {}, auth } = definition
  const headers: Record<string, string> = {}
  let refusal: string | undefined
  for (const [header, text] of Object.entries(principalHeaders)) {
    const value = headerOf(text, caller)
    if ('lacks' in value) refusal = `its header ${header} tells ${value.lacks}, which this caller does not have`
    else if (value.text.length > maxHeaderLength)
      refusal = `its header ${header} would be longer than ${maxHeaderLength} characters for this caller`
    else headers[header] = value.text
  }
  const { tenant, issuer, subject, clientId, scopes, groups, roles, claims } = caller
  const signed = auth?.type === 'signed' ? auth.claims : []
  const claimsTold = signed.map((claim) => valueOfCaller(caller, { name: principalNameOf(claim) }) ?? null)
  const isExchanged = auth?.type === 'tokenExchange'
  if (isExchanged && auth.issuer !== caller.issuer && !bringsIdToken(of, auth, caller.issuer))
    refusal = `it takes tokens that ${auth.issuer} exchanges, and this caller has none of it`
  // Scopes are part of the key, because tokens with different scopes are exchanged for different tokens.
  const told = [name, Object.entries(headers), claimsTold, refusal, isExchanged ? [...scopes].toSorted() : []]
  const id = hash('sha256', JSON.stringify([key, told]), 'base64url')
  return {
    ...definition,
    headers: { ...definition.headers, ...headers },
    caller: { tenant, issuer, subject, clientId, scopes, groups, roles, ...(claims && { claims }) },
    ...(refusal !== undefined && { refusal }),
    hash: `${definition.hash}..${id}`
  }
}

function headerOf(text: PrincipalText, caller: Caller): { readonly text: string } | { readonly lacks: string } {
  let whole = ''
  for (const part of text) {
    if (typeof part === 'string') {
      whole += part
      continue
    }
    const value = valueOfCaller(caller, part)
    const isThere = value !== undefined && (value.length > 0 || part.fallback === undefined)
    if (!isThere && part.fallback === undefined) return { lacks: `the claim ${claimOf(part) ?? part.name}` }
    whole += isThere ? headerFormOf(value) : (part.fallback ?? '')
  }
  return { text: whole }
}
