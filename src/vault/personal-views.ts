// A tenant as one person has it: upstreams for which they have given something are theirs alone, with connections,
// lists and limits of their own. Everything behind it takes such a definition for one of the configuration.

import type { Endpoint, Tenant, UpstreamDefinition } from '../config/snapshot.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import type { Log } from '../observe/log.ts'
import type { UpstreamName } from '../protocol/messages.ts'
import { personKeyOf } from '../auth/principal.ts'
import type { Grant, Grants, GrantsOfPerson } from './grants.ts'

interface Place {
  readonly tenant: Tenant
  readonly endpoint: Endpoint
}

/** Who asks; that their clients differ does not matter. */
type Owner = Pick<Person, 'issuer' | 'subject'>

interface View {
  readonly grants: GrantsOfPerson
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

/** Between the hash of a definition and the grant of a person. */
const separator = '.'

export const hashOfEverybody = (hash: string): string => hash.split(separator, 1)[0] ?? hash

export function createPersonalViews(grants: Pick<Grants, 'peek' | 'last' | 'read' | 'refresh' | 'onChange'>, log: Log) {
  const personalOf = new WeakMap<Tenant, readonly UpstreamName[]>()
  const views = new WeakMap<Tenant, Map<string, View>>()
  const definitions = new WeakMap<UpstreamDefinition, Map<string, UpstreamDefinition>>()
  /** Ids of grants whose connections may stay, by person; and all of them. */
  const idsOf = new Map<string, ReadonlySet<string>>()
  const held = new Set<string>()
  const people = new Map<string, Person>()
  const listeners: Array<(person: string) => void> = []

  grants.onChange((key) => {
    const person = people.get(key)
    if (person === undefined) return
    grants.refresh(person).then(
      (own) => noteGrants(key, own),
      (err: unknown) => log.warn({ err, tenant: person.tenant }, 'what a person has connected cannot be read again')
    )
  })

  function upstreamsOf(tenant: Tenant): readonly UpstreamName[] {
    const known = personalOf.get(tenant)
    if (known !== undefined) return known
    const names = [...tenant.upstreams.values()].filter(isPersonal).map(({ name }) => name)
    personalOf.set(tenant, names)
    return names
  }

  function definitionFor(definition: UpstreamDefinition, grant: Grant, person: Person): UpstreamDefinition {
    const known = definitions.get(definition) ?? new Map<string, UpstreamDefinition>()
    definitions.set(definition, known)
    const made = known.get(grant.id) ?? personalDefinition(definition, grant, person)
    known.set(grant.id, made)
    return made
  }

  function viewOf(tenant: Tenant, owner: Owner, own: GrantsOfPerson): View {
    const person = { tenant: tenant.id, issuer: owner.issuer, subject: owner.subject }
    const upstreams = new Map(tenant.upstreams)
    for (const [name, grant] of own) {
      const definition = upstreams.get(name as UpstreamName)
      if (definition === undefined || !isPersonal(definition) || grantTargetOf(definition) !== grant.target) continue
      if (grant.dead === undefined) upstreams.set(definition.name, definitionFor(definition, grant, person))
    }
    return { grants: own, tenant: { ...tenant, upstreams }, endpoints: new WeakMap() }
  }

  function noteGrants(person: string, own: GrantsOfPerson): void {
    const before = idsOf.get(person) ?? new Set()
    const ids = new Set([...own.values()].filter(({ dead }) => dead === undefined).map(({ id }) => id))
    idsOf.set(person, ids)
    for (const id of before.difference(ids)) held.delete(id)
    for (const id of ids) held.add(id)
    if (before.symmetricDifference(ids).size > 0) for (const listener of listeners) listener(person)
  }

  function load(tenant: Tenant, owner: Owner): Promise<void> | undefined {
    const names = upstreamsOf(tenant)
    if (names.length === 0) return undefined
    const person = { tenant: tenant.id, issuer: owner.issuer, subject: owner.subject }
    const key = personKeyOf(person)
    if (grants.peek(key) !== undefined) return undefined
    people.set(key, person)
    return grants.read(person, names).then((own) => noteGrants(key, own))
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
      const known = views.get(tenant) ?? new Map<string, View>()
      views.set(tenant, known)
      let view = known.get(key)
      if (view?.grants !== own) known.set(key, (view = viewOf(tenant, owner, own)))
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
  if (definition.type === 'stdio')
    return definition.auth === undefined
      ? definition
      : { ...definition, ...own, env: { ...definition.env, [definition.auth.env]: secret } }
  if (definition.auth?.type !== 'userSecret') return { ...definition, ...own }
  const { header, prefix } = definition.auth
  return { ...definition, ...own, headers: { ...definition.headers, [header]: prefix + secret } }
}
