// Finds whose access at an endpoint differs after a change: of the API keys of the tenant and of today's callers. Other
// people of an issuer are unknown to the gateway.

import type { Static } from 'typebox'
import { anonymousPrincipal, keyPrincipal, type Principal } from '../../auth/principal.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { routeKinds } from '../../config/schema/policy.ts'
import type { RouteKind } from '../../policy/rules.ts'
import type { Route } from '../../relay/catalog/catalog.ts'
import type { Steps } from '../../time/turns.ts'
import type { AdminServices } from '../route.ts'
import { spend, type CallerClasses, type LooksLeft, type Places, type Standing } from './planned/caller-classes.ts'
import { catalogWithoutRules, listOfKind, type EndpointPlace } from './rule-effects.ts'

/** The most names of an endpoint that are gained, and that are lost, of each kind. */
const maxNamesOfEndpoint = 50
/** The most callers of an endpoint that are listed. */
const maxCallersTold = 20
const maxNamesOfCaller = 10

const namesUpTo = (max: number) =>
  closedObject({
    count: Type.Integer(),
    names: Type.Array(Type.String(), { description: `The first ${max}.` })
  })

const otherKinds = routeKinds.filter((kind) => kind !== 'tool')

/** The schema of what is gained and lost: the tools, and everything else by its kind. */
const gainsAndLosses = (max: number) => {
  const tools = { gains: namesUpTo(max), loses: namesUpTo(max) }
  return {
    ...tools,
    others: Type.Array(closedObject({ kind: Type.Enum(otherKinds), ...tools }), {
      description:
        'The same for prompts, for resources (by URI) and for templates. Kinds without a gain or loss are left out. ' +
        '`gains` and `loses` are tools.'
    })
  }
}

export const ofEndpoint = gainsAndLosses(maxNamesOfEndpoint)

export const CallerChanges = closedObject(
  {
    known: Type.Integer({ description: 'Number of callers that were examined.' }),
    notLookedAt: Type.Integer({
      description: 'Number of callers that were not examined, because there are too many tools and rules.'
    }),
    differ: Type.Integer({ description: 'Number of examined callers whose access changes.' }),
    changes: Type.Array(
      closedObject({
        kind: Type.Enum(['token', 'key', 'anonymous']),
        issuer: Type.String({
          description: "Issuer of the caller's identity: the `iss` of its token, or a URN of the gateway."
        }),
        subject: Type.String({ description: 'Subject of the token, or name of the API key.' }),
        ...gainsAndLosses(maxNamesOfCaller)
      }),
      { description: `The first ${maxCallersTold} of these, keys first.` }
    )
  },
  {
    description:
      'Callers whose access to tools, prompts, resources or templates changes, by rules, by scopes, ' +
      "or because they are admitted or not. Examined are the API keys of the tenant and today's " +
      'callers of the process that answers, with the groups and scopes of their last token.'
  }
)

type Names = Pick<ReadonlyMap<string, unknown>, 'has' | 'keys'>
type NamesByKind = ReadonlyMap<RouteKind, Names>

const without = (some: Names | undefined, others: Names | undefined, max: number) => {
  const left = [...(some?.keys() ?? [])].filter((name) => others?.has(name) !== true).sort()
  return { count: left.length, names: left.slice(0, max) }
}

/** @returns `differs`: whether anything is gained or lost */
export function accessChange(had: NamesByKind, has: NamesByKind, max = maxNamesOfEndpoint) {
  const of = (kind: RouteKind) => ({
    gains: without(has.get(kind), had.get(kind), max),
    loses: without(had.get(kind), has.get(kind), max)
  })
  const others = otherKinds
    .map((kind) => ({ kind, ...of(kind) }))
    .filter(({ gains, loses }) => gains.count + loses.count > 0)
  const { gains, loses } = of('tool')
  return { told: { gains, loses, others }, differs: others.length + gains.count + loses.count > 0 }
}

/** Keys as they are before and after, and whoever called, each once. */
export function callersOf(tenants: ReadonlyArray<Tenant | undefined>, seen: readonly Principal[]): Principal[] {
  const callers = new Map<string, Principal>()
  const add = (each: Principal): void => {
    const key = JSON.stringify([each.issuer, each.subject, each.kind === 'token' ? each.clientId : ''])
    if (!callers.has(key)) callers.set(key, each)
  }
  for (const tenant of tenants.filter((each) => each !== undefined)) {
    if (tenant.auth.mode === 'none') add(anonymousPrincipal(tenant.id))
    for (const key of tenant.auth.keys) add(keyPrincipal(tenant.id, key))
  }
  for (const each of seen) if (each.kind === 'token') add(each)
  return [...callers.values()]
}

type Offered = ReadonlyMap<RouteKind, ReadonlyMap<string, Route>>

/** Returns what an endpoint offers to a caller whom no rule restricts, by kind, then by public name. */
export function offeredAt(place: EndpointPlace | undefined, services: Pick<AdminServices, 'catalogOf'>): Offered {
  if (place === undefined) return new Map()
  const catalog = catalogWithoutRules(place, services)
  return new Map(
    routeKinds.map((kind) => {
      const [list, member] = listOfKind[kind]
      const routes = catalog.routes(list)
      return [kind, new Map(catalog.lists[list].map((entry, at) => [String(entry[member]), routes[at] as Route]))]
    })
  )
}

/**
 * What is not refused whatever the arguments are: listed, and with all scopes that it needs. A step for each, because
 * each may be compared with thousands of rules.
 */
function* usable(offered: Offered, standing: Standing | undefined): Steps<NamesByKind> {
  const byKind = new Map<RouteKind, Set<string>>()
  if (standing === undefined) return byKind
  for (const [kind, routes] of offered) {
    const names = new Set<string>()
    byKind.set(kind, names)
    for (const [name, route] of routes) {
      yield
      const { isListed, scopes } = standing.decide(kind, route)
      if (isListed && scopes.every((scope) => standing.scopes.has(scope))) names.add(name)
    }
  }
  return byKind
}

/** @param looks what one class costs. A step for each entry of each class, and for each caller */
export function* callerChanges(
  places: Places,
  looks: number,
  known: CallerClasses,
  services: Pick<AdminServices, 'catalogOf'>,
  left: LooksLeft
): Steps<Static<typeof CallerChanges>> {
  const [offeredBefore, offered] = places.map((place) => offeredAt(place, services)) as [Offered, Offered]
  const changes: Static<typeof CallerChanges>['changes'] = []
  let lookedAt = 0
  let differ = 0
  let notLookedAt = known.notLookedAt
  for (const { callers, was, is } of known.classes) {
    if (!spend(left, looks)) {
      notLookedAt += callers.length
      continue
    }
    lookedAt += callers.length
    const had = yield* usable(offeredBefore, was)
    const has = yield* usable(offered, is)
    const { told, differs } = accessChange(had, has, maxNamesOfCaller)
    if (!differs) continue
    differ += callers.length
    for (const { kind, issuer, subject } of callers.slice(0, maxCallersTold - changes.length))
      changes.push({ kind, issuer, subject, ...told })
  }
  return { known: lookedAt, notLookedAt, differ, changes }
}
