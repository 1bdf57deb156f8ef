// Warnings about a valid configuration that nobody can satisfy: required scopes that neither the login front nor an API
// key gives, and API keys that no endpoint lets in.

import type { Endpoint, Tenant } from '../snapshot.ts'
import type { PolicyConfig } from '../policy/policy-config.ts'

type Scoped = Pick<Tenant, 'id' | 'auth' | 'policy'> & {
  readonly endpoints: ReadonlyMap<string, Pick<Endpoint, 'name' | 'requiredScopes' | 'policy'>>
}

/** @returns a sentence for each. Tenants with other issuers get none: what scopes those give is unknown here. */
export function unobtainableScopes({ id, auth, policy, endpoints }: Scoped): string[] {
  if (auth.mode === 'none') return []
  const all = [...endpoints.values()]
  const scopesOf = ({ requiredScopes = auth.requiredScopes }: (typeof all)[number]): readonly string[] => requiredScopes
  const wanted = new Map<string, string>()
  const want = (scopes: readonly string[], where: string): void => {
    for (const scope of scopes) if (!wanted.has(scope)) wanted.set(scope, where)
  }
  for (const endpoint of all) want(scopesOf(endpoint), `the endpoint ${endpoint.name}`)
  const rules = (of: PolicyConfig | undefined, whose: string): void =>
    of?.rules.forEach(({ effect, name, scopes }) => effect === 'requires' && want(scopes, `${name}, ${whose}`))
  rules(policy, 'of the tenant')
  for (const endpoint of all) rules(endpoint.policy, `of the endpoint ${endpoint.name}`)

  const given = new Set([...(auth.login?.scopes ?? []), ...auth.keys.flatMap(({ scopes }) => scopes)])
  const isOpen = auth.issuers.some(({ issuer }) => issuer !== auth.login?.issuer)
  const missing = isOpen ? [] : [...wanted].filter(([scope]) => !given.has(scope))
  const remedy =
    auth.login === undefined ? 'Give it to an API key.' : 'Add it to auth.login.scopes, or give it to an API key.'
  const shutOut = auth.keys.filter(({ scopes, endpoints: names = [] }) =>
    all
      .filter(({ name }) => names.length === 0 || names.includes(name))
      .every((endpoint) => !scopesOf(endpoint).every((scope) => scopes.includes(scope)))
  )
  return [
    ...missing.map(
      ([scope, where]) => `nobody can get the scope ${scope} at ${id}, which is required (${where}). ${remedy}`
    ),
    ...shutOut.map(
      ({ name }) =>
        `the API key ${name} of ${id} lacks scopes that each of its endpoints requires. Nobody gets in with it.`
    )
  ]
}
