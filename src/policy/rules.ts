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
  /** The upstream's own name of the route; for a resource, its URI as the caller wrote it, and its other spellings. */
  readonly names: readonly string[]
  /** False for a URI that a server may resolve to another resource than the one it seems to name. */
  readonly isClear: boolean
  /** The tags that the route has in at least one spelling. `deny` rules compare these. */
  readonly tags: ReadonlySet<string>
  /** The tags that the route has in every spelling. `allow` rules compare these. */
  readonly certainTags: ReadonlySet<string>
  /**
   * The facts that reserved rules and limits compare in place of these; undefined if no tenant-admin has set hints on
   * the tool. `tags` is the union of the tags with and without the tenant-admin's hints, `certainTags` their
   * intersection: such a hint can neither satisfy a reserved `allow` rule nor evade a reserved `deny` rule.
   */
  readonly reservedFacts?: RouteFacts | undefined
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

/**
 * Returns the facts that a rule or limit compares.
 * @param place the part of the tenant that holds the rule or limit, such as `policy/rules` or `limits/everybody`
 */
export const factsAt = (place: string, { reserved }: Pick<Tenant, 'reserved'>, facts: RouteFacts): RouteFacts =>
  facts.reservedFacts !== undefined && isReserved(reserved, place) ? facts.reservedFacts : facts

/** Returns the part of a tenant that holds the rules: the tenant's own, or those of one endpoint. */
export const rulesPlace = (of: 'tenant' | 'endpoint', { name }: Pick<Endpoint, 'name'>): string =>
  of === 'tenant' ? 'policy/rules' : `endpoints/${name}`

const compiled = new WeakMap<PolicyConfig, Policy>()

/** Compiles a policy, once: all endpoints of a tenant share the compiled policy of the tenant. */
export function compilePolicy(config: PolicyConfig): Policy {
  const policy = compiled.get(config) ?? compileRules(config)
  compiled.set(config, policy)
  return policy
}

/** Many rules have the same `who`: each is compiled once. */
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

/** Returns whether a principal has, for each member of `who`, a value that one of the member's patterns matches. */
export function principalMatcher(who: PolicyRule['who']): Rule['isAbout'] {
  const tests = Object.entries(who).map(([member, patterns]) => {
    const matches = anyMatcher(patterns)
    const valuesOf = principalValues[member as keyof typeof principalValues]
    return (principal: Principal): boolean => valuesOf(principal).some(matches)
  })
  return (principal) => tests.every((test) => test(principal))
}

/**
 * The values of a principal that each member of `who` is compared with. An API key is no person: it has no value for
 * `issuers`, `subjects` and `clients`.
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

/** Returns the facts of a principal for conditions in CEL. A fact that it lacks is absent, and equals no value. */
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

/** Matches patterns that may match a URI. `delete_*` cannot: it has no scheme (RFC 3986 section 3.1). */
const uriPattern = /^(?:[a-z][a-z\d+.-]*)?[*:]/i

/** Returns whether a rule covers a route, by the kind, the names and the tags that the rule lists. */
export function routeMatcher({
  effect,
  what: { names, kinds, tags }
}: Pick<PolicyRule, 'effect' | 'what'>): Rule['covers'] {
  const matches = anyMatcher(names)
  const literals = new Set(names?.filter(isLiteral))
  const mayHave = (wanted: readonly string[] | undefined, given: ReadonlySet<string>): boolean =>
    wanted === undefined || wanted.some((tag) => given.has(tag))
  // A URI has several spellings. A `deny` rule covers it if one spelling matches, an `allow` rule only if all match.
  // A URI that is not clear may have any other spelling: every `deny` rule that may name URIs covers it.
  const isAllowed = (route: RouteFacts): boolean =>
    (names === undefined || literals.has(route.names[0] ?? '') || (route.isClear && route.names.every(matches))) &&
    mayHave(tags, route.certainTags)
  const mayNameUris = names?.some((pattern) => uriPattern.test(pattern)) ?? true
  const isRefused = (route: RouteFacts): boolean =>
    (!route.isClear && mayNameUris) || (route.names.some(matches) && mayHave(tags, route.tags))
  const covers = effect === 'allow' ? isAllowed : isRefused
  return (route) => (kinds === undefined || kinds.includes(route.kind)) && covers(route)
}
