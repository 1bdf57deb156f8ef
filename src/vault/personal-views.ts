// The tenant as one person sees it: upstreams for which the person has a grant, or that are sent the identity of the
// caller, get a personal definition, with connections, lists and limits of its own. The rest of the gateway uses it
// like a configured definition.

import type { Endpoint, Tenant, UpstreamDefinition } from '../config/snapshot.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import type { UpstreamName } from '../protocol/messages.ts'
import { digest } from '../store/keys.ts'
import { personKeyOf } from '../auth/principal.ts'
import { hashSeparator } from '../upstream/rpc/personal-hash.ts'
import {
  type AskingCaller,
  type CallerDefinitions,
  type DefinitionsOfCaller,
  followsCaller
} from './caller-definitions.ts'
import type { TokenExchanges } from './oauth/token-exchange.ts'
import type { Grant, GrantsOfPerson } from './grant.ts'
import type { Grants } from './grants.ts'

interface Place {
  readonly tenant: Tenant
  readonly endpoint: Endpoint
}

/** A person, whichever client they use. */
type Owner = Pick<Person, 'issuer' | 'subject'>

const nothingGiven: GrantsOfPerson = new Map()
const nothingTold: DefinitionsOfCaller = new Map()

interface View {
  readonly tenant: Tenant
  readonly endpoints: WeakMap<Endpoint, Endpoint>
}

export type PersonalViews = ReturnType<typeof createPersonalViews>

/** Whether each person needs a grant of their own for the upstream. */
export const isPersonal = ({ auth }: UpstreamDefinition): boolean =>
  auth?.type === 'user' || auth?.type === 'userSecret'

const personalOf = new WeakMap<Tenant, readonly UpstreamName[]>()

/** Returns the upstreams that need a grant of each person: the same array as long as the tenant is the same object. */
export function personalUpstreamsOf(tenant: Tenant): readonly UpstreamName[] {
  const known = personalOf.get(tenant)
  if (known !== undefined) return known
  const names = [...tenant.upstreams.values()].filter(isPersonal).map(({ name }) => name)
  personalOf.set(tenant, names)
  return names
}

/**
 * Identifies the server that a grant may be sent to: after a change of the URL or command it is not sent, although the
 * name of the upstream is the same. For a command it is a digest with the arguments, because they name the program
 * (npx, uvx, docker) and may hold secrets.
 */
export const grantTargetOf = (definition: UpstreamDefinition): string =>
  definition.type === 'http'
    ? new URL(definition.url).origin
    : digest(JSON.stringify([definition.command, definition.args]))

/** Returns a digest of that target for a page: it shows that the server has changed without showing its address. */
export const shownTargetOf = (definition: UpstreamDefinition): string => digest(grantTargetOf(definition))

/** Whether the grant is for this server and of the kind that the definition needs now. */
export const isGrantFor = (definition: UpstreamDefinition, { target, secret, account }: Grant): boolean =>
  target === grantTargetOf(definition) && (definition.auth?.type === 'user' ? account : secret) !== undefined

/** Returns the grant in a hash: a hash joins the shared hash, the id of a grant, and the id of a caller. */
const grantIn = (hash: string): string | undefined => hash.split(hashSeparator)[1]

/**
 * Whether the person has connected the upstream, or connected it again, since its definition had this hash.
 * @param definition as the person has it now
 */
export const isConnectedSince = (definition: UpstreamDefinition | undefined, hash: string): boolean =>
  definition?.person !== undefined && grantIn(definition.hash) !== grantIn(hash)

export function createPersonalViews(
  grants: Pick<Grants, 'peek' | 'last' | 'read' | 'onChange'>,
  callers: CallerDefinitions,
  exchanges: Pick<TokenExchanges, 'ensure'>
) {
  const views = new WeakMap<GrantsOfPerson, WeakMap<DefinitionsOfCaller, WeakMap<Tenant, View>>>()
  /** The definitions of each grant, by person and id of the grant: the same objects as long as the grant exists. */
  const definitions = new Map<string, Map<string, WeakMap<UpstreamDefinition, UpstreamDefinition>>>()
  const telling = new WeakMap<Tenant, boolean>()
  const placesWithPersonal = new WeakMap<Endpoint, { readonly tenant: Tenant; readonly has: boolean }>()
  /** The ids of all grants whose connections may stay open. */
  const held = new Set<string>()
  const listeners: Array<(person: string) => void> = []

  grants.onChange((person, own) => {
    const before = definitions.get(person)
    const ids = own === undefined ? [] : [...own.values()].filter(({ dead }) => dead === undefined).map(({ id }) => id)
    const now = new Map(ids.map((id) => [id, before?.get(id) ?? new WeakMap<UpstreamDefinition, UpstreamDefinition>()]))
    for (const id of before?.keys() ?? []) if (!now.has(id)) held.delete(id)
    for (const id of ids) held.add(id)
    if (own === undefined) definitions.delete(person)
    else definitions.set(person, now)
    // No notification for a person who is new in this process: they have seen no other state.
    if (before === undefined || (before.size === now.size && ids.every((id) => before.has(id)))) return
    for (const listener of listeners) listener(person)
  })

  function definitionFor(definition: UpstreamDefinition, grant: Grant, person: Person): UpstreamDefinition {
    const known = definitions.get(personKeyOf(person))?.get(grant.id)
    const made = known?.get(definition) ?? personalDefinition(definition, grant, person)
    known?.set(definition, made)
    return made
  }

  function madeView(tenant: Tenant, owner: Owner, own: GrantsOfPerson, told: DefinitionsOfCaller): View {
    const person = { tenant: tenant.id, issuer: owner.issuer, subject: owner.subject }
    const upstreams = new Map([...tenant.upstreams, ...told])
    for (const [name, grant] of own) {
      const definition = upstreams.get(name as UpstreamName)
      if (definition === undefined || !isPersonal(definition)) continue
      if (!isGrantFor(definition, grant) && grant.unopened === undefined) continue
      if (grant.dead === undefined) upstreams.set(definition.name, definitionFor(definition, grant, person))
    }
    return { tenant: { ...tenant, upstreams }, endpoints: new WeakMap() }
  }

  function viewOf(tenant: Tenant, owner: Owner, own: GrantsOfPerson, told: DefinitionsOfCaller): View {
    const byTold = views.get(own) ?? new WeakMap<DefinitionsOfCaller, WeakMap<Tenant, View>>()
    views.set(own, byTold)
    const byTenant = byTold.get(told) ?? new WeakMap<Tenant, View>()
    byTold.set(told, byTenant)
    const view = byTenant.get(tenant) ?? madeView(tenant, owner, own, told)
    byTenant.set(tenant, view)
    return view
  }

  function givenBy(tenant: Tenant, { issuer, subject }: Owner): GrantsOfPerson {
    if (personalUpstreamsOf(tenant).length === 0) return nothingGiven
    return grants.last(personKeyOf({ tenant: tenant.id, issuer, subject })) ?? nothingGiven
  }

  /** Whether any upstream of the tenant is sent the identity or a token of the caller: in most tenants none is. */
  function tells(tenant: Tenant): boolean {
    const known = telling.get(tenant) ?? [...tenant.upstreams.values()].some(followsCaller)
    telling.set(tenant, known)
    return known
  }

  function load(
    place: Place,
    caller: AskingCaller,
    rawHeaders: readonly string[] | undefined
  ): Promise<unknown> | undefined {
    const exchanging = rawHeaders && tells(place.tenant) ? exchanges.ensure(place, caller, rawHeaders) : undefined
    const reading = readGrants(place, caller)
    return exchanging === undefined || reading === undefined
      ? (exchanging ?? reading)
      : Promise.all([exchanging, reading])
  }

  /** Whether the endpoint has personal upstreams: grants are not read for upstreams of other endpoints. */
  function hasPersonal({ tenant, endpoint }: Place): boolean {
    const known = placesWithPersonal.get(endpoint)
    if (known?.tenant === tenant) return known.has
    const personal = new Set(personalUpstreamsOf(tenant))
    const has = endpoint.members.some(({ upstream }) => personal.has(upstream))
    placesWithPersonal.set(endpoint, { tenant, has })
    return has
  }

  function readGrants(place: Place, owner: Owner): Promise<unknown> | undefined {
    const { tenant } = place
    if (!hasPersonal(place)) return undefined
    const person = { tenant: tenant.id, issuer: owner.issuer, subject: owner.subject }
    if (grants.peek(personKeyOf(person)) !== undefined) return undefined
    return grants.read(person)
  }

  return {
    /**
     * Reads what `of` needs for the upstreams of the endpoint.
     * @param rawHeaders of the caller's request, if there is one
     * @returns undefined if nothing has to be read
     */
    load,
    /** Returns the tenant and the endpoint as this person sees them, as far as is known; often the same objects. */
    of<C extends Place>(context: C, viewer: AskingCaller): C {
      const { tenant, endpoint } = context
      const own = givenBy(tenant, viewer)
      const told = (tells(tenant) ? callers.of(tenant, viewer) : undefined) ?? nothingTold
      if (own.size === 0 && told.size === 0) return context
      const view = viewOf(tenant, viewer, own, told)
      const isOwn = (name: UpstreamName): boolean => view.tenant.upstreams.get(name) !== tenant.upstreams.get(name)
      if (!endpoint.members.some(({ upstream }) => isOwn(upstream))) return context
      const personal = view.endpoints.get(endpoint) ?? { ...endpoint, ofEverybody: endpoint }
      view.endpoints.set(endpoint, personal)
      return { ...context, tenant: view.tenant, endpoint: personal }
    },
    /** Returns the hashes of a configuration together with those that people have while their grants hold. */
    held: (hashes: ReadonlySet<string>): Pick<ReadonlySet<string>, 'has'> => ({
      has(hash) {
        const [ofEverybody = hash, grant = '', caller = ''] = hash.split(hashSeparator)
        if (!hashes.has(ofEverybody)) return false
        return (grant === '' || held.has(grant)) && (caller === '' || callers.isHeld(caller))
      }
    }),
    /** The listener is called with `personKeyOf` when the grants of a person have changed. */
    onChange(listener: (person: string) => void): void {
      listeners.push(listener)
    }
  }
}

function personalDefinition(definition: UpstreamDefinition, grant: Grant, person: Person): UpstreamDefinition {
  const { secret = '', id } = grant
  const [ofEverybody = '', , ...caller] = definition.hash.split(hashSeparator)
  const own = { person, hash: [ofEverybody, id, ...caller].join(hashSeparator) }
  const { auth } = definition
  if (grant.unopened === true)
    return {
      ...definition,
      ...own,
      refusal: 'the vault cannot open what this caller has given for it; the log says why'
    }
  if (auth?.type !== 'userSecret') return { ...definition, ...own }
  // The value is masked whatever its name and form are.
  const secrets = { argumentSecrets: [...(definition.argumentSecrets ?? []), secret] }
  if (definition.type === 'stdio' && 'env' in auth)
    return { ...definition, ...own, ...secrets, env: { ...definition.env, [auth.env]: secret } }
  if (definition.type === 'stdio' || !('header' in auth)) return definition
  return { ...definition, ...own, ...secrets, headers: { ...definition.headers, [auth.header]: auth.prefix + secret } }
}
