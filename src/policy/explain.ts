// Why a caller may or may not use something: the decision, and what each rule has to do with it.

import type { Principal } from '../auth/principal.ts'
import { conditionBudget, type ConditionBudget, type ConditionFacts } from '../config/policy/condition.ts'
import type { Endpoint, Tenant } from '../config/snapshot.ts'
import type { PolicyConfig } from '../config/policy/policy-config.ts'
import type { Steps } from '../time/turns.ts'
import { createAccess } from './access.ts'
import { createRouteFacts, type JudgedRoute } from './route-facts.ts'
import {
  compilePolicy,
  factsAt,
  factsOf,
  principalMatcher,
  routeMatcher,
  rulesPlace,
  type RouteFacts,
  type RouteKind,
  type Rule
} from './rules.ts'

export interface Question {
  readonly principal: Principal
  readonly kind: RouteKind
  readonly route: JudgedRoute
  /** The arguments of the call; undefined: they are not known yet. */
  readonly args: ConditionFacts['args'] | undefined
  /** The address of the client; undefined: not known. */
  readonly address?: string | undefined
  readonly now: Date
}

export interface RuleExplanation {
  readonly name: string
  /** The owner of the policy with the rule. */
  readonly of: 'tenant' | 'endpoint'
  readonly effect: Rule['effect']
  /** null: that depends on the arguments. */
  readonly applies: boolean | null
  /** The part of the rule, or of its condition, that makes it apply or not. */
  readonly because: string
}

export interface Explanation {
  /**
   * `denied`: neither listed nor found. `refused`: listed, and these arguments are refused. `needs-scopes`: listed, and
   * a call is answered with 403. `depends`: listed, and the arguments decide, which were not given.
   */
  readonly outcome: 'allowed' | 'denied' | 'refused' | 'needs-scopes' | 'depends'
  readonly sentence: string
  /** Scopes that the call needs and the caller lacks. */
  readonly missingScopes: readonly string[]
  readonly rules: readonly RuleExplanation[]
}

interface ExplainedPolicy {
  readonly of: RuleExplanation['of']
  readonly byDefault: PolicyConfig['default']
  readonly rules: readonly RuleExplanation[]
}

/**
 * Decided by the evaluator of lists and calls; the rules, of which there may be thousands, are told beside it.
 * @param access one for many questions about the same endpoint
 */
export function* explainAccess(
  tenant: Tenant,
  endpoint: Endpoint,
  question: Question,
  access = createAccess()
): Steps<Explanation> {
  const { principal, kind, route, address, now } = question
  // A read has none.
  const args = question.args ?? (kind === 'resource' ? {} : undefined)
  const decision = access(tenant, endpoint, principal)?.(kind, route)
  if (decision === undefined) {
    const sentence = 'Allowed: neither the tenant nor the endpoint has a policy.'
    return { outcome: 'allowed', sentence, missingScopes: [], rules: [] }
  }
  const ofCaller = { principal: factsOf(principal), ...(address !== undefined && { address }) }
  const conditionFacts = args && { args, name: route.name, now, ...ofCaller }
  const budget = conditionBudget()
  const facts = createRouteFacts(tenant.tags)(kind, route)
  const policies: ExplainedPolicy[] = []
  for (const level of ['tenant', 'endpoint'] as const) {
    const policy = level === 'tenant' ? tenant.policy : endpoint.policy
    if (policy === undefined) continue
    const routes = { facts, lookedAt: factsAt(rulesPlace(level, endpoint), tenant, facts) }
    policies.push(yield* explainPolicy(policy, level, principal, routes, conditionFacts, budget))
  }
  const rules = policies.flatMap((policy) => policy.rules)
  const verdict = conditionFacts && decision.decideCall?.(conditionFacts)
  const missingScopes = (verdict?.scopes ?? decision.scopes).filter((scope) => !principal.scopes.has(scope))
  const refusal = policies.map(refusalOf).find((reason) => reason !== undefined)
  const made = (outcome: Explanation['outcome'], sentence: string): Explanation => ({
    outcome,
    sentence,
    missingScopes,
    rules
  })
  if (!decision.isListed) return made('denied', `Denied: ${refusal}. It is answered like a name that nobody has.`)
  // Of a refused call no scopes are asked for, which would not help.
  if (missingScopes.length > 0) {
    const names = namesOf(rules.filter(({ applies, effect }) => applies && effect === 'requires'))
    const scopes = `the ${missingScopes.length === 1 ? 'scope' : 'scopes'} ${missingScopes.join(' ')}`
    return made('needs-scopes', `Listed, but a call needs ${scopes}, which the caller lacks (${names}).`)
  }
  if (verdict?.refusedBy !== undefined) return made('refused', `Listed, but these arguments are refused: ${refusal}.`)
  if (decision.decideCall !== undefined && verdict === undefined)
    return made('depends', 'Listed; whether a call is allowed depends on its arguments.')
  return made('allowed', `Allowed: ${policies.map(permissionOf).join('; ')}.`)
}

interface LookedAtRoute {
  readonly facts: RouteFacts
  /** What the rules look at of these. */
  readonly lookedAt: RouteFacts
}

function* explainPolicy(
  policy: PolicyConfig,
  of: RuleExplanation['of'],
  principal: Principal,
  route: LookedAtRoute,
  facts: ConditionFacts | undefined,
  budget: ConditionBudget
): Steps<ExplainedPolicy> {
  const { default: byDefault, rules } = compilePolicy(policy)
  const explained: RuleExplanation[] = []
  for (const rule of rules) {
    yield
    const { name, effect } = rule
    explained.push({ name, of, effect, ...explainRule(rule, principal, route, facts, budget) })
  }
  return { of, byDefault, rules: explained }
}

function explainRule(
  rule: Rule,
  principal: Principal,
  { facts: whole, lookedAt: route }: LookedAtRoute,
  facts: ConditionFacts | undefined,
  budget: ConditionBudget
): Pick<RuleExplanation, 'applies' | 'because'> {
  const not = (because: string) => ({ applies: false, because })
  if (!rule.isAbout(principal)) return not(`who.${mismatchOf(rule, principal)} does not match the caller`)
  if (!rule.isAboutUpstream(route.upstream)) return not('what.upstreams does not match')
  if (rule.what.kinds?.includes(route.kind) === false) return not('what.kinds does not match')
  if (!rule.covers(route) && rule.covers(whole))
    return not('what.tags does not match: a reserved rule allows nothing by a hint that a tenant-admin gave')
  if (!rule.covers(route))
    return not(`what.${isAboutName(rule.what, rule.effect, route) ? 'tags' : 'names'} does not match`)
  const matches = rule.covers(whole) ? 'it matches' : 'it matches without the hints that a tenant-admin gave'
  if (rule.condition === undefined) return { applies: true, because: matches }
  if (facts === undefined) return { applies: null, because: 'its condition depends on the arguments' }
  const holds = rule.condition.holds(facts, budget)
  if (holds === undefined) return { applies: rule.effect !== 'allow', because: 'its condition cannot be judged' }
  return { applies: holds, because: holds ? 'its condition holds' : 'its condition does not hold' }
}

const mismatchOf = ({ who }: Rule, principal: Principal): string =>
  Object.entries(who).find(([member, patterns]) => !principalMatcher({ [member]: patterns })(principal))?.[0] ?? ''

function isAboutName({ tags: _tags, ...what }: Rule['what'], effect: Rule['effect'], route: RouteFacts): boolean {
  return routeMatcher({ effect, what })(route)
}

/** @returns undefined where the policy does not forbid it */
function refusalOf({ of, byDefault, rules }: ExplainedPolicy): string | undefined {
  const denying = rules.filter(({ effect, applies }) => effect === 'deny' && applies)
  if (denying.length > 0) return `${namesOf(denying)} of the ${of} denies it`
  const mayAllow = byDefault === 'allow' || rules.some(({ effect, applies }) => effect === 'allow' && applies !== false)
  return mayAllow ? undefined : `no rule of the ${of} allows it, and its default is deny`
}

function permissionOf({ of, rules }: ExplainedPolicy): string {
  const allowing = rules.filter(({ effect, applies }) => effect === 'allow' && applies)
  return allowing.length > 0 ? `${namesOf(allowing)} of the ${of} allows it` : `the default of the ${of} allows it`
}

const namesOf = (rules: readonly RuleExplanation[]): string =>
  `${rules.length === 1 ? 'the rule' : 'each of the rules'} ${rules.map(({ name }) => name).join(', ')}`
