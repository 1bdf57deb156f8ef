// What one principal may use at an endpoint: the rules of its tenant and its own that are about the principal. Rules
// are sorted out by principal once, and by upstream and name once for each route, so that a call looks an answer up.

import { LRUCache } from 'lru-cache'
import type { Principal } from '../auth/principal.ts'
import { conditionBudget, type ConditionFacts } from '../config/policy/condition.ts'
import type { Endpoint, Tenant } from '../config/snapshot.ts'
import { isLiteral } from '../protocol/glob.ts'
import { createRouteFacts, type JudgedRoute, type RouteFactsOf } from './route-facts.ts'
import {
  compilePolicy,
  factsAt,
  principalValues,
  rulesPlace,
  type Policy,
  type RouteFacts,
  type RouteKind,
  type Rule
} from './rules.ts'

export interface Decision {
  /** Is it listed, and does its name lead anywhere? */
  readonly isListed: boolean
  /** The rule because of which it is not listed; `default` where none allows it. */
  readonly deniedBy?: string
  /** The first rule of each policy that allows it; `default` where none has to. Not given where the call decides. */
  readonly allowedBy?: readonly string[]
  /** The scopes that every call needs besides. */
  readonly scopes: readonly string[]
  /** Decides what depends on the call; undefined where nothing does. */
  readonly decideCall?: (facts: ConditionFacts) => Verdict
}

export interface Verdict {
  /** The rule by whose condition the call is refused; `default` where no condition allows it. */
  readonly refusedBy: string | undefined
  /** The rules that allow the call; not given where it is refused. */
  readonly allowedBy?: readonly string[]
  /** The scopes that this call needs, those of every call included. */
  readonly scopes: readonly string[]
}

export type Access = ReturnType<typeof accessOf>

/** Principals that differ in what the rules look at, of one endpoint: beyond it, their rules are sorted out anew. */
const maxPrincipals = 1_000

/** Decisions of one tenant, some 200 bytes each: beyond it, all of them are forgotten, and made anew. */
const maxDecisions = 200_000

/** What is remembered for one tenant. */
interface Remembered {
  readonly byEndpoint: WeakMap<Endpoint, ReturnType<typeof endpointAccess>>
  decisions: number
}

/** Creates the access of a process: it remembers decisions, as long as the configuration stands. */
export function createAccess() {
  const byTenant = new WeakMap<Tenant, Remembered>()
  /** @returns undefined where neither the tenant nor the endpoint has a policy. Without a principal: of nobody */
  return (tenant: Tenant, endpoint: Endpoint, principal: Principal | undefined): Access | undefined => {
    if (tenant.policy === undefined && endpoint.policy === undefined) return undefined
    const { ofEverybody = endpoint } = endpoint
    let remembered = byTenant.get(tenant)
    if (remembered === undefined || remembered.decisions > maxDecisions)
      byTenant.set(tenant, (remembered = { byEndpoint: new WeakMap(), decisions: 0 }))
    const own = remembered.byEndpoint.get(ofEverybody) ?? endpointAccess(tenant, endpoint, remembered)
    remembered.byEndpoint.set(ofEverybody, own)
    return principal === undefined ? own.nobody : own.of(principal)
  }
}

function endpointAccess(tenant: Tenant, endpoint: Endpoint, remembered: Remembered) {
  const policies = policiesOf(tenant, endpoint)
  const lookedAt = [...new Set(policies.flatMap(({ rules }) => rules.flatMap(({ who }) => Object.keys(who))))]
  /** The matchers, one for each `who` of a policy, which many rules may share. */
  const matchers = [...new Set(policies.flatMap(({ rules }) => rules.map(({ isAbout }) => isAbout)))]
  const byPrincipal = new WeakMap<Principal, Access>()
  const byValues = new LRUCache<string, Access>({ max: maxPrincipals })
  const byRules = new LRUCache<string, Access>({ max: maxPrincipals })
  const factsOf = createRouteFacts(tenant.tags)

  /**
   * Returns the same object for all principals that the same rules are about: they share their view of each catalog.
   */
  function sorted(principal: Principal): Access {
    const about = new Map(matchers.map((isAbout) => [isAbout, isAbout(principal)]))
    const key = [...about.values()].map(Number).join('')
    const access =
      byRules.get(key) ??
      accessOf(
        policies.map(({ rules, ...rest }) => ({ ...rest, rules: rules.filter(({ isAbout }) => about.get(isAbout)) })),
        factsOf,
        remembered
      )
    byRules.set(key, access)
    return access
  }

  return {
    nobody: accessOf([{ default: 'deny', rules: [], looksAt: (facts) => facts }], factsOf, remembered),
    of(principal: Principal): Access {
      const known = byPrincipal.get(principal)
      if (known !== undefined) return known
      const values = JSON.stringify(lookedAt.map((name) => valuesOf(principal, name)))
      const access = byValues.get(values) ?? sorted(principal)
      byValues.set(values, access)
      byPrincipal.set(principal, access)
      return access
    }
  }
}

const valuesOf = (principal: Principal, member: string): readonly string[] =>
  principalValues[member as keyof typeof principalValues](principal)

interface LookingPolicy extends Policy {
  /** What its rules look at of these facts. */
  readonly looksAt: (facts: RouteFacts) => RouteFacts
}

/** Returns the policies of a tenant and of an endpoint, which both have to allow a call. */
const policiesOf = (tenant: Tenant, endpoint: Endpoint): LookingPolicy[] =>
  (['tenant', 'endpoint'] as const).flatMap((of) => {
    const { policy } = of === 'tenant' ? tenant : endpoint
    const place = rulesPlace(of, endpoint)
    return policy === undefined
      ? []
      : { ...compilePolicy(policy), looksAt: (facts: RouteFacts) => factsAt(place, tenant, facts) }
  })

/** @param policies only the rules that are about the principal */
function accessOf(policies: readonly LookingPolicy[], factsOf: RouteFactsOf, remembered: Remembered) {
  const levels = policies.map(({ default: byDefault, rules, looksAt }) => ({
    byDefault,
    rulesFor: createRuleIndex(rules),
    looksAt
  }))
  const decisions: Record<RouteKind, WeakMap<JudgedRoute, Decision>> = {
    tool: new WeakMap(),
    prompt: new WeakMap(),
    resource: new WeakMap(),
    template: new WeakMap()
  }

  function decide(kind: RouteKind, route: JudgedRoute): Decision {
    const all = factsOf(kind, route)
    const covering = levels.map(({ byDefault, rulesFor, looksAt }) => {
      const facts = looksAt(all)
      return { byDefault, rules: rulesFor(facts).filter((rule) => rule.covers(facts)) }
    })
    const denying = covering.find((each) => !mayAllow(each))
    if (denying !== undefined) return { isListed: false, scopes: [], deniedBy: denyingRule(denying) }
    const always = covering.flatMap(({ rules }) => scopesOf(rules.filter(({ condition }) => condition === undefined)))
    const scopes = [...new Set(always)]
    const conditional = covering.some(({ rules }) => rules.some(({ condition }) => condition !== undefined))
    return conditional
      ? { isListed: true, scopes, decideCall: createCallDecision(covering) }
      : { isListed: true, scopes, allowedBy: covering.map(({ rules }) => allowingRule(rules)) }
  }

  return (kind: RouteKind, route: JudgedRoute): Decision => {
    const known = decisions[kind].get(route)
    if (known !== undefined) return known
    const decision = decide(kind, route)
    decisions[kind].set(route, decision)
    remembered.decisions++
    return decision
  }
}

/** The rules of one policy that are about a principal and a route. */
interface Covering {
  readonly byDefault: Policy['default']
  readonly rules: readonly Rule[]
}

const scopesOf = (rules: readonly Rule[]): string[] =>
  rules.flatMap(({ effect, scopes }) => (effect === 'requires' ? scopes : []))

/** Is it allowed, or would it be under a condition? */
const mayAllow = ({ byDefault, rules }: Covering): boolean =>
  !rules.some(({ effect, condition }) => effect === 'deny' && condition === undefined) &&
  (byDefault === 'allow' || rules.some(({ effect }) => effect === 'allow'))

const denyingRule = ({ rules }: Covering): string =>
  rules.find(({ effect, condition }) => effect === 'deny' && condition === undefined)?.name ?? 'default'

const allowingRule = (rules: readonly Rule[]): string =>
  rules.find(({ effect }) => effect === 'allow')?.name ?? 'default'

/** Doubt denies: a condition that cannot be judged holds where its rule denies or requires, and not where it allows. */
function createCallDecision(levels: readonly Covering[]): Required<Decision>['decideCall'] {
  return (facts) => {
    const scopes = new Set<string>()
    const allowedBy: string[] = []
    const budget = conditionBudget()
    for (const { byDefault, rules } of levels) {
      const inForce = rules.filter(
        ({ effect, condition }) => condition === undefined || (condition.holds(facts, budget) ?? effect !== 'allow')
      )
      const denying = inForce.find(({ effect }) => effect === 'deny')
      if (denying !== undefined) return { refusedBy: denying.name, scopes: [] }
      if (byDefault === 'deny' && !inForce.some(({ effect }) => effect === 'allow'))
        return { refusedBy: 'default', scopes: [] }
      for (const scope of scopesOf(inForce)) scopes.add(scope)
      allowedBy.push(allowingRule(inForce))
    }
    return { refusedBy: undefined, allowedBy, scopes: [...scopes] }
  }
}

export const allowed: Decision = { isListed: true, scopes: [] }

/** Thousands of rules are about single names: they are found by name, and only those with patterns are tried. */
function createRuleIndex(rules: readonly Rule[]) {
  const byUpstream = new Map<string, ReturnType<typeof indexed>>()
  return ({ upstream, names, isClear }: RouteFacts): readonly Rule[] => {
    const own = byUpstream.get(upstream) ?? indexed(rules.filter((rule) => rule.isAboutUpstream(upstream)))
    byUpstream.set(upstream, own)
    return isClear ? own.of(names) : own.all
  }
}

/** Any other is compared with each name. */
export const isFoundByName = ({ what: { names } }: Pick<Rule, 'what'>): boolean => names?.every(isLiteral) === true

function indexed(rules: readonly Rule[]) {
  const byName = new Map<string, Rule[]>()
  const others: Rule[] = []
  for (const rule of rules) {
    if (!isFoundByName(rule)) others.push(rule)
    else {
      for (const name of new Set(rule.what.names)) {
        const own = byName.get(name) ?? []
        own.push(rule)
        byName.set(name, own)
      }
    }
  }
  return {
    all: rules,
    of: (names: readonly string[]): readonly Rule[] => [
      ...new Set(names.flatMap((name) => byName.get(name) ?? [])),
      ...others
    ]
  }
}
