// Scopes that an upstream, a tool or an endpoint requires, given where these stand: rules of the policy, written
// shorter.

import type { TenantInput } from '../schema/config.ts'
import type { PolicyConfig, PolicyRule } from '../policy/policy-config.ts'

type Endpoints = NonNullable<TenantInput['endpoints']>

interface Requires {
  readonly requires?: { readonly scopes: readonly string[] }
}

const ruleOf = (name: string, what: PolicyRule['what'], { requires }: Requires): PolicyRule[] =>
  requires === undefined ? [] : [{ name, effect: 'requires', who: {}, what, scopes: requires.scopes }]

/** A policy that only requires scopes denies nothing. */
const withRules = (policy: PolicyConfig | undefined, rules: readonly PolicyRule[]): PolicyConfig | undefined =>
  rules.length === 0 ? policy : { default: policy?.default ?? 'allow', rules: [...(policy?.rules ?? []), ...rules] }

/** @param upstreams those that are not disabled */
export const policyOfTenant = (
  policy: PolicyConfig | undefined,
  upstreams: ReadonlyArray<readonly [string, Requires]>
): PolicyConfig | undefined =>
  withRules(
    policy,
    upstreams.flatMap(([name, upstream]) => ruleOf(`requires of ${name}`, { upstreams: [name] }, upstream))
  )

export const policyOfEndpoint = ({
  policy,
  tools = {}
}: Pick<Endpoints[string], 'policy' | 'tools'>): PolicyConfig | undefined =>
  withRules(
    policy,
    Object.entries(tools).flatMap(([tool, change]) => {
      const slash = tool.indexOf('/')
      const [upstream, name] = [tool.slice(0, slash), tool.slice(slash + 1)]
      return ruleOf(`requires of ${tool}`, { upstreams: [upstream], names: [name], kinds: ['tool'] }, change)
    })
  )
