// Groups callers to whom the same rules apply at an endpoint, before and after a change: the rules are evaluated once
// for each group.

import { isForEndpoint } from '../../../auth/keyring.ts'
import { isConfiguredPrincipal, keyPrincipal, type Principal } from '../../../auth/principal.ts'
import { isFoundByName } from '../../../policy/access.ts'
import { compilePolicy, type Policy } from '../../../policy/rules.ts'
import type { Catalog } from '../../../relay/catalog/catalog.ts'
import type { Steps } from '../../../time/turns.ts'
import type { AdminServices } from '../../route.ts'
import type { EndpointPlace } from '../rule-effects.ts'

/** The most comparisons of callers and tools with rules in all endpoints of a plan. Two seconds of work. */
const maxLooksOfPlan = 25_000_000
/** The further cost of a tool, measured. */
const looksAtTool = 15
/** The comparisons that are as much work as a character of a document. */
const looksPerChar = 10

export const charsOf = (looks: number): number => Math.min(looks, maxLooksOfPlan) / looksPerChar

/** The comparisons that a plan may still make. */
export interface LooksLeft {
  looks: number
}

export const looksOfPlan = (): LooksLeft => ({ looks: maxLooksOfPlan })

/** @returns whether there was enough left */
export function spend(left: LooksLeft, looks: number): boolean {
  const isEnough = left.looks >= looks
  if (isEnough) left.looks -= looks
  return isEnough
}

/** An endpoint before a change and after it; undefined: it is not there. */
export type Places = readonly [was: EndpointPlace | undefined, is: EndpointPlace | undefined]

/** The access of callers by rules and scopes; undefined: they are not let in. */
export interface Standing {
  readonly decide: Catalog['decide']
  /** The scopes that rules require and that the callers have. */
  readonly scopes: ReadonlySet<string>
}

export interface CallerClass {
  readonly callers: Principal[]
  readonly was: Standing | undefined
  readonly is: Standing | undefined
}

export interface CallerClasses {
  readonly classes: readonly CallerClass[]
  readonly notLookedAt: number
}

const policiesAt = ({ tenant, endpoint }: EndpointPlace): Policy[] =>
  [tenant.policy, endpoint.policy].flatMap((policy) => (policy === undefined ? [] : compilePolicy(policy)))

const rulesOf = (place: EndpointPlace) => policiesAt(place).flatMap(({ rules }) => rules)

const scopesAskedFor = (place: EndpointPlace): string[] => [
  ...new Set(rulesOf(place).flatMap(({ effect, scopes }) => (effect === 'requires' ? scopes : [])))
]

/** Returns the cost of finding the rules that are about a caller: each `who` is asked once. */
export const looksAtCaller = (place: EndpointPlace | undefined): number =>
  place === undefined
    ? 1
    : 1 + new Set(rulesOf(place).map(({ isAbout }) => isAbout)).size + scopesAskedFor(place).length

/** Returns the cost of one class: each tool is compared with the rules that are not found by its name. */
export function looksAtClass(place: EndpointPlace | undefined, tools: number): number {
  if (place === undefined) return 1
  const found = rulesOf(place).filter(isFoundByName)
  const names = found.reduce((sum, { what }) => sum + (what.names?.length ?? 0), 0)
  return (tools + 1) * (rulesOf(place).length - found.length + looksAtTool) + names
}

/** A step for each caller. */
export function* callerClasses(
  [was, is]: Places,
  callers: readonly Principal[],
  services: Pick<AdminServices, 'catalogOf'>,
  left: LooksLeft
): Steps<CallerClasses> {
  const looks = looksAtCaller(was) + looksAtCaller(is)
  const [before, after] = [standings(was, services), standings(is, services)]
  const classes = new Map<string, CallerClass>()
  let known = 0
  for (const caller of callers) {
    if (!spend(left, looks)) break
    known++
    yield
    const [had, has] = [before(caller), after(caller)]
    const key = JSON.stringify([had?.key, has?.key])
    const own = classes.get(key) ?? { callers: [], was: had?.standing, is: has?.standing }
    own.callers.push(caller)
    classes.set(key, own)
  }
  return { classes: [...classes.values()], notLookedAt: callers.length - known }
}

/** @returns what a caller may use, the same object and key for all to whom all tools are alike; undefined: nothing */
function standings(place: EndpointPlace | undefined, services: Pick<AdminServices, 'catalogOf'>) {
  const asked = place === undefined ? [] : scopesAskedFor(place)
  const numbers = new Map<Standing['decide'], number>()
  return (caller: Principal): { readonly key: readonly unknown[]; readonly standing: Standing } | undefined => {
    const principal = place && letIn(place, caller)
    if (place === undefined || principal === undefined) return undefined
    const { decide } = services.catalogOf({ ...place, principal }, undefined)
    const number = numbers.get(decide) ?? numbers.size
    numbers.set(decide, number)
    const scopes = asked.filter((scope) => principal.scopes.has(scope))
    return { key: [number, ...scopes], standing: { decide, scopes: new Set(scopes) } }
  }
}

/** The caller as it is at the endpoint. */
function letIn({ tenant: { auth, id }, endpoint }: EndpointPlace, caller: Principal): Principal | undefined {
  if (!isConfiguredPrincipal(caller, auth)) return undefined
  const { name, requiredScopes = auth.requiredScopes } = endpoint
  const key = caller.kind === 'key' ? auth.keys.find((each) => each.name === caller.subject) : undefined
  if (key !== undefined && !isForEndpoint(key, name)) return undefined
  const principal = key === undefined ? caller : keyPrincipal(id, key)
  const isEnough = principal.kind === 'anonymous' || requiredScopes.every((scope) => principal.scopes.has(scope))
  return isEnough ? principal : undefined
}
