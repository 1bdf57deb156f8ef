// Who may use other tools at an endpoint after a change than before: the API keys of the tenant, and who called today.
// Nobody else is known: an issuer has people whom the gateway has never seen.

import type { Static } from 'typebox'
import { anonymousPrincipal, isConfiguredPrincipal, keyPrincipal, type Principal } from '../../auth/principal.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Steps } from '../../time/turns.ts'
import type { AdminServices } from '../route.ts'
import { rulesAt, type EndpointPlace } from './rule-effects.ts'

/** Of the tools of an endpoint, or of one caller there, that are gained, and that are lost. */
const maxToolNames = 50
/** Of an endpoint: those that are told, and tools of each. */
const maxCallersTold = 20
const maxNamesOfCaller = 10
/** Of all endpoints of a plan: rules and tools that are gone through for callers. */
const maxLooksOfPlan = 2_000_000

const namesUpTo = (max: number) =>
  closedObject({
    count: Type.Integer(),
    names: Type.Array(Type.String(), { description: `The first ${max}.` })
  })

export const ToolNames = namesUpTo(maxToolNames)

export const CallerChanges = closedObject(
  {
    known: Type.Integer({ description: 'Callers that were looked at.' }),
    notLookedAt: Type.Integer({ description: 'Those that were left out because it would have been too much work.' }),
    differ: Type.Integer({ description: 'Of those looked at, whose tools change.' }),
    changes: Type.Array(
      closedObject({
        kind: Type.Enum(['token', 'key', 'anonymous']),
        issuer: Type.String({ description: 'Who says who the caller is.' }),
        subject: Type.String({ description: 'The caller: a subject, or the name of a key.' }),
        gains: namesUpTo(maxNamesOfCaller),
        loses: namesUpTo(maxNamesOfCaller)
      }),
      { description: `The first ${maxCallersTold} of these, keys first.` }
    )
  },
  {
    description:
      'Who may use other tools than before, by rules, by scopes, or by being let in or not: the keys of the tenant, ' +
      'and whoever called today at the process that answers, with the groups and scopes of their last token.'
  }
)

type Names = ReadonlySet<string>

export const without = (some: Names, others: Names, max = maxToolNames): Static<typeof ToolNames> => {
  const left = [...some].filter((name) => !others.has(name)).sort()
  return { count: left.length, names: left.slice(0, max) }
}

/** What a plan may still look at. */
export interface LooksLeft {
  looks: number
}

export const looksOfPlan = (): LooksLeft => ({ looks: maxLooksOfPlan })

/** Keys as they are before and after, and whoever called, each once. */
function callersOf(places: ReadonlyArray<EndpointPlace | undefined>, seen: readonly Principal[]): Principal[] {
  const callers = new Map<string, Principal>()
  const add = (each: Principal): void => {
    const key = JSON.stringify([each.issuer, each.subject, each.kind === 'token' ? each.clientId : ''])
    if (!callers.has(key)) callers.set(key, each)
  }
  for (const { tenant } of places.filter((place) => place !== undefined)) {
    if (tenant.auth.mode === 'none') add(anonymousPrincipal(tenant.id))
    for (const key of tenant.auth.keys) add(keyPrincipal(tenant.id, key))
  }
  for (const each of seen) if (each.kind === 'token') add(each)
  return [...callers.values()]
}

/** The tools whose calls are not refused whatever their arguments are: listed, and with all scopes that they need. */
function usableTools(
  place: EndpointPlace | undefined,
  caller: Principal,
  services: Pick<AdminServices, 'catalogOf'>
): Names {
  if (place === undefined) return new Set()
  const { auth, id } = place.tenant
  if (!isConfiguredPrincipal(caller, auth)) return new Set()
  const key = caller.kind === 'key' ? auth.keys.find(({ name }) => name === caller.subject) : undefined
  const { endpoints = [] } = key ?? {}
  if (endpoints.length > 0 && !endpoints.includes(String(place.endpoint.name))) return new Set()
  const principal = key === undefined ? caller : keyPrincipal(id, key)
  const has = (scope: string): boolean => principal.scopes.has(scope)
  if (caller.kind === 'token' && !auth.requiredScopes.every(has)) return new Set()
  const catalog = services.catalogOf({ ...place, principal }, undefined)
  const routes = catalog.routes('tools')
  return new Set(
    catalog.tools.flatMap(({ name }, at) => {
      const route = routes[at]
      return route !== undefined && catalog.decide('tool', route).scopes.every(has) ? [String(name)] : []
    })
  )
}

/** A step for each caller. */
export function* callerChanges(
  places: readonly [was: EndpointPlace | undefined, is: EndpointPlace | undefined],
  tools: number,
  seen: readonly Principal[],
  services: Pick<AdminServices, 'catalogOf'>,
  left: LooksLeft
): Steps<Static<typeof CallerChanges>> {
  const [was, is] = places
  const callers = callersOf(places, seen)
  const looks = tools + places.reduce((sum, each) => sum + (each ? rulesAt(each.tenant, each.endpoint) : 0), 0)
  const changes: Static<typeof CallerChanges>['changes'] = []
  let [known, differ] = [0, 0]
  for (const caller of callers) {
    if (left.looks < looks) break
    left.looks -= looks
    known++
    yield
    const [had, has] = [usableTools(was, caller, services), usableTools(is, caller, services)]
    const [gains, loses] = [without(has, had, maxNamesOfCaller), without(had, has, maxNamesOfCaller)]
    if (gains.count === 0 && loses.count === 0) continue
    differ++
    const { kind, issuer, subject } = caller
    if (changes.length < maxCallersTold) changes.push({ kind, issuer, subject, gains, loses })
  }
  return { known, notLookedAt: callers.length - known, differ, changes }
}
