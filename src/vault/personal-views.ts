// A tenant as one person has it: upstreams for which they have given something are theirs alone, with connections,
// lists and limits of their own. Everything behind it takes such a definition for one of the configuration.

import type { Endpoint, Tenant, UpstreamDefinition } from '../config/snapshot.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import type { UpstreamName } from '../protocol/messages.ts'
import { personKeyOf } from '../auth/principal.ts'
import type { Grant, GrantsOfPerson } from './grant.ts'
import type { Grants } from './grants.ts'

interface Place {
  readonly tenant: Tenant
  readonly endpoint: Endpoint
}

/** Who asks; that their clients differ does not matter. */
type Owner = Pick<Person, 'issuer' | 'subject'>

interface View {
  readonly tenant: Tenant
  readonly endpoints: WeakMap<Endpoint, Endpoint>
}

export type PersonalViews = ReturnType<typeof createPersonalViews>

/** Does each person give something of their own for it? */
export const isPersonal = ({ auth }: UpstreamDefinition): boolean =>
  auth?.type === 'user' || auth?.type === 'userSecret'

/** What a grant is for: it is shown to nobody else, although the name of the upstream stays. */
export const grantTargetOf = (definition: UpstreamDefinition): string =>
  definition.type === 'http' ? new URL(definition.url).origin : definition.command

/** Was it given for this server, and in the way that it wants now? */
export const isGrantFor = (definition: UpstreamDefinition, { target, secret, account }: Grant): boolean =>
  target === grantTargetOf(definition) && (definition.auth?.type === 'user' ? account : secret) !== undefined

/** Between the hash of a definition and the grant of a person. */
const separator = '.'

export const hashOfEverybody = (hash: string): string => hash.split(separator, 1)[0] ?? hash

export function createPersonalViews(grants: Pick<Grants, 'peek' | 'last' | 'read' | 'onChange'>) {
  const personalOf = new WeakMap<Tenant, readonly UpstreamName[]>()
  const views = new WeakMap<GrantsOfPerson, WeakMap<Tenant, View>>()
  /** By person and id of a grant: its definitions, the same ones as long as it holds. */
  const definitions = new Map<string, Map<string, WeakMap<UpstreamDefinition, UpstreamDefinition>>>()
  /** Ids of all grants whose connections may stay. */
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
    // Who is new here has been told nothing else before.
    if (before === undefined || (before.size === now.size && ids.every((id) => before.has(id)))) return
    for (const listener of listeners) listener(person)
  })

  function upstreamsOf(tenant: Tenant): readonly UpstreamName[] {
    const known = personalOf.get(tenant)
    if (known !== undefined) return known
    const names = [...tenant.upstreams.values()].filter(isPersonal).map(({ name }) => name)
    personalOf.set(tenant, names)
    return names
  }

  function definitionFor(definition: UpstreamDefinition, grant: Grant, person: Person): UpstreamDefinition {
    const known = definitions.get(personKeyOf(person))?.get(grant.id)
    const made = known?.get(definition) ?? personalDefinition(definition, grant, person)
    known?.set(definition, made)
    return made
  }

  function viewOf(tenant: Tenant, owner: Owner, own: GrantsOfPerson): View {
    const person = { tenant: tenant.id, issuer: owner.issuer, subject: owner.subject }
    const upstreams = new Map(tenant.upstreams)
    for (const [name, grant] of own) {
      const definition = upstreams.get(name as UpstreamName)
      if (definition === undefined || !isPersonal(definition) || !isGrantFor(definition, grant)) continue
      if (grant.dead === undefined) upstreams.set(definition.name, definitionFor(definition, grant, person))
    }
    return { tenant: { ...tenant, upstreams }, endpoints: new WeakMap() }
  }

  function load(tenant: Tenant, owner: Owner): Promise<unknown> | undefined {
    const names = upstreamsOf(tenant)
    if (names.length === 0) return undefined
    const person = { tenant: tenant.id, issuer: owner.issuer, subject: owner.subject }
    if (grants.peek(personKeyOf(person)) !== undefined) return undefined
    return grants.read(person, names)
  }

  return {
    /** Reads what `of` needs. @returns undefined where nothing has to be read */
    load,
    /** The tenant and the endpoint as this person has them, as far as is known; often the same ones. */
    of<C extends Place>(context: C, owner: Owner): C {
      const { tenant, endpoint } = context
      if (upstreamsOf(tenant).length === 0) return context
      const key = personKeyOf({ tenant: tenant.id, issuer: owner.issuer, subject: owner.subject })
      const own = grants.last(key)
      if (own === undefined || own.size === 0) return context
      const known = views.get(own) ?? new WeakMap<Tenant, View>()
      views.set(own, known)
      const view = known.get(tenant) ?? viewOf(tenant, owner, own)
      known.set(tenant, view)
      if (!endpoint.members.some(({ upstream }) => view.tenant.upstreams.get(upstream)?.person !== undefined))
        return context
      const personal = view.endpoints.get(endpoint) ?? { ...endpoint, ofEverybody: endpoint }
      view.endpoints.set(endpoint, personal)
      return { ...context, tenant: view.tenant, endpoint: personal }
    },
    /** Of the definitions of a configuration, and of all that people have of them while their grants hold. */
    held: (hashes: ReadonlySet<string>): Pick<ReadonlySet<string>, 'has'> => ({
      has(hash) {
        const [ofEverybody = hash, grant] = hash.split(separator)
        return hashes.has(ofEverybody) && (grant === undefined || held.has(grant))
      }
    }),
    /** Called with `personKeyOf` once what a person has is another thing than before. */
    onChange(listener: (person: string) => void): void {
      listeners.push(listener)
    },
    upstreamsOf
  }
}

function personalDefinition(definition: UpstreamDefinition, grant: Grant, person: Person): UpstreamDefinition {
  const { secret = '', id } = grant
  const own = { person, hash: `${definition.hash}${separator}${id}` }
  const { auth } = definition
  if (auth?.type !== 'userSecret') return { ...definition, ...own }
  // Whatever its name and form are, it is a secret.
  const secrets = { argumentSecrets: [...(definition.argumentSecrets ?? []), secret] }
  if (definition.type === 'stdio' && 'env' in auth)
    return { ...definition, ...own, ...secrets, env: { ...definition.env, [auth.env]: secret } }
  if (definition.type === 'stdio' || !('header' in auth)) return definition
  return { ...definition, ...own, ...secrets, headers: { ...definition.headers, [auth.header]: auth.prefix + secret } }
}
