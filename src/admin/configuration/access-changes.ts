// Who may use other tools at an endpoint after a change than before: the API keys of the tenant, and who called today.
// Nobody else is known: an issuer has people whom the gateway has never seen.

import type { Static } from 'typebox'
import { anonymousPrincipal, keyPrincipal, type Principal } from '../../auth/principal.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Tenant } from '../../config/snapshot.ts'
import type { Route } from '../../relay/catalog/catalog.ts'
import type { Steps } from '../../time/turns.ts'
import type { AdminServices } from '../route.ts'
import { spend, type CallerClasses, type LooksLeft, type Places, type Standing } from './planned/caller-classes.ts'
import { catalogWithoutRules, type EndpointPlace } from './rule-effects.ts'

/** Of the tools of an endpoint, or of one caller there, that are gained, and that are lost. */
const maxToolNames = 50
/** Of an endpoint: those that are told, and tools of each. */
const maxCallersTold = 20
const maxNamesOfCaller = 10

const namesUpTo = (max: number) =>
  closedObject({
    count: Type.Integer(),
    names: Type.Array(Type.String(), { description: `The first ${max}.` })
  })

export const ToolNames = namesUpTo(maxToolNames)

export const CallerChanges = closedObject(
  {
    known: Type.Integer({ description: 'Callers that were looked at.' }),
    notLookedAt: Type.Integer({
      description: 'Not all callers were looked at where this is not 0: tools times rules were too many.'
    }),
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

type Offered = ReadonlyArray<readonly [name: string, route: Route]>

function offeredAt(place: EndpointPlace | undefined, services: Pick<AdminServices, 'catalogOf'>): Offered {
  if (place === undefined) return []
  const { tools, routes } = catalogWithoutRules(place, services)
  const of = routes('tools')
  return tools.flatMap(({ name }, at) => {
    const route = of[at]
    return route === undefined ? [] : [[String(name), route] as const]
  })
}

/**
 * The tools whose calls are not refused whatever their arguments are: listed, and with all scopes that they need. A
 * step for each, because each may be compared with thousands of rules.
 */
function* usableTools(offered: Offered, standing: Standing | undefined): Steps<Names> {
  const usable = new Set<string>()
  if (standing === undefined) return usable
  for (const [name, route] of offered) {
    yield
    const { isListed, scopes } = standing.decide('tool', route)
    if (isListed && scopes.every((scope) => standing.scopes.has(scope))) usable.add(name)
  }
  return usable
}

/** @param looks what one class costs. A step for each tool of each class, and for each caller */
export function* callerChanges(
  places: Places,
  looks: number,
  known: CallerClasses,
  services: Pick<AdminServices, 'catalogOf'>,
  left: LooksLeft
): Steps<Static<typeof CallerChanges>> {
  const [offeredBefore, offered] = places.map((place) => offeredAt(place, services)) as [Offered, Offered]
  const changes: Static<typeof CallerChanges>['changes'] = []
  let [lookedAt, differ, notLookedAt] = [0, 0, known.notLookedAt]
  for (const { callers, was, is } of known.classes) {
    if (!spend(left, looks)) {
      notLookedAt += callers.length
      continue
    }
    lookedAt += callers.length
    const had = yield* usableTools(offeredBefore, was)
    const has = yield* usableTools(offered, is)
    const [gains, loses] = [without(has, had, maxNamesOfCaller), without(had, has, maxNamesOfCaller)]
    if (gains.count === 0 && loses.count === 0) continue
    differ += callers.length
    for (const { kind, issuer, subject } of callers.slice(0, maxCallersTold - changes.length))
      changes.push({ kind, issuer, subject, gains, loses })
  }
  return { known: lookedAt, notLookedAt, differ, changes }
}
