// One policy, its rules compiled: whom each is about, and which routes. Pure.

import type { Principal } from '../auth/principal.ts'
import { compileCondition, type Condition, type PrincipalFacts } from '../config/policy/condition.ts'
import { isReserved, type PolicyConfig, type PolicyRule } from '../config/policy/policy-config.ts'
import type { Endpoint, Tenant } from '../config/snapshot.ts'
import { anyMatcher, isLiteral } from '../protocol/glob.ts'

export type RouteKind = 'tool' | 'prompt' | 'resource' | 'template'

/** The facts of a route that rules compare. */
export interface RouteFacts {
  readonly kind: RouteKind
  readonly upstream: string
  /** The upstream's own name of it; for a resource, its URI as it came, and in other spellings. */
  readonly names: readonly string[]
  /** False for a URI that a server may take for another one than it seems to name. */
  readonly isClear: boolean
  readonly tags: ReadonlySet<string>
  /** The tags that the route has in every spelling. */
  readonly certainTags: ReadonlySet<string>
  /**
   * What is reserved looks at these, where a tenant-admin gave hints: `tags` are those with or without these hints, and
   * `certainTags` those with and without them. So no such hint allows anything, or takes anything from what refuses.
   */
  readonly ofReserved?: RouteFacts | undefined
}

export interface Rule extends PolicyRule {
  readonly condition: Condition | undefined
  readonly isAbout: (principal: Principal) => boolean
  readonly isAboutUpstream: (upstream: string) => boolean
  /** Whether the rule covers a route of such an upstream. */
  readonly covers: (route: RouteFacts) => boolean
}

export interface Policy extends Pick<PolicyConfig, 'default'> {
  readonly rules: readonly Rule[]
}

/** What a rule or limit looks at. @param place where it stands in its tenant, such as `policy/rules` */
export const factsAt = (place: string, { reserved }: Pick<Tenant, 'reserved'>, facts: RouteFacts): RouteFacts =>
  facts.ofReserved !== undefined && isReserved(reserved, place) ? facts.ofReserved : facts

/** Where the rules of a tenant stand, and those of an endpoint. */
export const rulesPlace = (of: 'tenant' | 'endpoint', { name }: Pick<Endpoint, 'name'>): string =>
  of === 'tenant' ? 'policy/rules' : `endpoints/${name}`

const compiled = new WeakMap<PolicyConfig, Policy>()

/** Once for each policy: all endpoints of a tenant share its own. */
export function compilePolicy(config: PolicyConfig): Policy {
  const policy = compiled.get(config) ?? compileRules(config)
  compiled.set(config, policy)
  return policy
}

/** Many rules are about the same people: each `who` is compiled once. */
function compileRules({ default: byDefault, rules }: PolicyConfig): Policy {
  const known = new Map<string, Rule['isAbout']>()
  return {
    default: byDefault,
    rules: rules.map((rule) => {
      const key = JSON.stringify(rule.who)
      const isAbout = known.get(key) ?? principalMatcher(rule.who)
      known.set(key, isAbout)
      return {
        ...rule,
        isAbout,
        isAboutUpstream: anyMatcher(rule.what.upstreams),
        covers: routeMatcher(rule),
        condition: rule.when === undefined ? undefined : compileCondition(rule.when)
      }
    })
  }
}

export function principalMatcher(who: PolicyRule['who']): Rule['isAbout'] {
  const tests = Object.entries(who).map(([member, patterns]) => {
    const matches = anyMatcher(patterns)
    const valuesOf = principalValues[member as keyof typeof principalValues]
    return (principal: Principal): boolean => valuesOf(principal).some(matches)
  })
  return (principal) => tests.every((test) => test(principal))
}

/**
 * The values that the members of `who` are compared with. A key is no person: no rule about subjects or clients is
 * about one.
 */
export const principalValues = {
  issuers: ({ kind, issuer }: Principal) => (kind === 'token' ? [issuer] : []),
  subjects: ({ kind, subject }: Principal) => (kind === 'token' ? [subject] : []),
  clients: ({ kind, clientId }: Principal) => (kind === 'token' ? [clientId] : []),
  keys: ({ kind, subject }: Principal) => (kind === 'key' ? [subject] : []),
  scopes: ({ scopes }: Principal) => [...scopes],
  groups: ({ groups }: Principal) => groups,
  roles: ({ roles }: Principal) => roles
} satisfies Record<keyof PolicyRule['who'], (principal: Principal) => readonly string[]>

/** Returns the facts of a principal for conditions. What it lacks is absent, and equal to nothing. */
export function factsOf({ kind, issuer, subject, clientId, scopes, groups, roles }: Principal): PrincipalFacts {
  return {
    kind,
    ...(kind === 'token' && { issuer, subject, client: clientId }),
    ...(kind === 'key' && { key: subject }),
    scopes: [...scopes],
    groups,
    roles
  }
}

/** Could it fit a URI? `delete_*` could not: it has no scheme (RFC 3986 section 3.1). */
const uriPattern = /^(?:[a-z][a-z\d+.-]*)?[*:]/i

export function routeMatcher({
  effect,
  what: { names, kinds, tags }
}: Pick<PolicyRule, 'effect' | 'what'>): Rule['covers'] {
  const matches = anyMatcher(names)
  const literals = new Set(names?.filter(isLiteral))
  const mayHave = (wanted: readonly string[] | undefined, given: ReadonlySet<string>): boolean =>
    wanted === undefined || wanted.some((tag) => given.has(tag))
  // A URI has several spellings: what one of them would deny is denied, what is allowed is allowed in all of them. Of
  // one that is not clear, anything may be another spelling.
  const isAllowed = (route: RouteFacts): boolean =>
    (names === undefined || literals.has(route.names[0] ?? '') || (route.isClear && route.names.every(matches))) &&
    mayHave(tags, route.certainTags)
  const mayNameUris = names?.some((pattern) => uriPattern.test(pattern)) ?? true
  const isRefused = (route: RouteFacts): boolean =>
    (!route.isClear && mayNameUris) || (route.names.some(matches) && mayHave(tags, route.tags))
  const covers = effect === 'allow' ? isAllowed : isRefused
  return (route) => (kinds === undefined || kinds.includes(route.kind)) && covers(route)
}
