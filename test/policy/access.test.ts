// What one principal may use, decided by rules alone.

import t from 'tap'
import type { ConditionFacts } from '../../src/config/policy/condition.ts'
import type { PolicyConfig, PolicyRule } from '../../src/config/policy/policy-config.ts'
import { compileConfig } from '../../src/config/load.ts'
import { createAccess } from '../../src/policy/access.ts'
import { factsOf, type RouteKind } from '../../src/policy/rules.ts'
import type { Principal } from '../../src/auth/principal.ts'
import { endpointName, tenantId } from '../../src/protocol/messages.ts'

type RuleInput = Partial<PolicyRule> & Pick<PolicyRule, 'effect'>
type PolicyInput = { readonly default: PolicyConfig['default']; readonly rules: readonly RuleInput[] }

const named = (policy: PolicyInput | undefined): unknown =>
  policy && { ...policy, rules: policy.rules.map((rule, at) => ({ name: `rule-${at}`, ...rule })) }

const person: Principal = {
  kind: 'token',
  tenant: tenantId('acme'),
  issuer: 'https://idp.example',
  subject: 'ada',
  clientId: 'app',
  scopes: new Set(['mcp']),
  groups: ['dev', 'ops'],
  roles: ['reader'],
  expiresAt: undefined
}
const key: Principal = { ...person, kind: 'key', issuer: 'urn:gatehouse:key', groups: [], roles: [] }

function judge(tenant: PolicyInput | undefined, endpoint?: PolicyInput, upstream: object = {}) {
  const config = {
    tenants: {
      acme: {
        auth: { keys: [{ name: 'ada', key: 'gh_key_of_ada_0123456789' }] },
        upstreams: { up: { url: 'https://up.example/mcp', ...upstream }, other: { url: 'https://other.example/mcp' } },
        endpoints: {
          default: { upstreams: ['up', 'other'], ...(endpoint === undefined ? {} : { policy: named(endpoint) }) }
        },
        ...(tenant === undefined ? {} : { policy: named(tenant) })
      }
    }
  }
  const snapshot = compileConfig(JSON.stringify(config), { path: 'test.json', env: {} })
  const acme = snapshot.tenants.get(tenantId('acme'))
  const place = acme?.endpoints.get(endpointName('default'))
  if (acme === undefined || place === undefined) throw new Error('no endpoint')
  const accessTo = createAccess()
  return {
    access: (principal?: Principal) => accessTo(acme, place, principal),
    of: (name: string, principal = person, kind: RouteKind = 'tool', annotations?: Record<string, unknown>) =>
      accessTo(acme, place, principal)?.(kind, { upstream: 'up', name, annotations })
  }
}
const allows = (
  policy: PolicyInput,
  name = 'x',
  principal = person,
  kind: RouteKind = 'tool',
  annotations?: Record<string, unknown>,
  upstream?: object
): boolean => judge(policy, undefined, upstream).of(name, principal, kind, annotations)?.isListed === true

t.test('without a policy there is nothing to judge', async (t) => {
  t.equal(judge(undefined).access(person), undefined)
})

t.test('deny wins over allow, and the default stands for the rest', async (t) => {
  const allow: RuleInput = { effect: 'allow', what: { names: ['get_*'] } }
  const deny: RuleInput = { effect: 'deny', what: { names: ['*_secret'] } }
  for (const rules of [
    [allow, deny],
    [deny, allow]
  ]) {
    const policy = { default: 'deny', rules } as const
    t.same(
      ['get_a', 'get_secret', 'put'].map((name) => allows(policy, name)),
      [true, false, false]
    )
    t.same(
      ['put', 'get_secret'].map((name) => allows({ ...policy, default: 'allow' }, name)),
      [true, false]
    )
  }
})

t.test('a rule is about whom each member that it gives fits', async (t) => {
  const about = (who: PolicyRule['who'], principal = person): boolean =>
    allows({ default: 'deny', rules: [{ effect: 'allow', who }] }, 'x', principal)
  for (const who of [
    {},
    { issuers: ['https://idp.example'] },
    { subjects: ['a*'] },
    { clients: ['app'] },
    { scopes: ['mcp'] },
    { groups: ['none', 'ops'] },
    { roles: ['read*'] },
    { groups: ['dev'], roles: ['reader'] }
  ])
    t.ok(about(who), JSON.stringify(who))
  for (const who of [
    { subjects: ['bob'] },
    { groups: ['admin'] },
    { groups: ['dev'], roles: ['x'] },
    { keys: ['ada'] }
  ])
    t.notOk(about(who), JSON.stringify(who))
  t.ok(about({ keys: ['ada'] }, key))
  t.notOk(about({ subjects: ['ada'] }, key), 'a key is not the person of its name')
})

t.test('a rule is about the upstreams, names and kinds that it gives', async (t) => {
  const about = (what: PolicyRule['what'], kind: RouteKind = 'tool'): boolean =>
    allows({ default: 'deny', rules: [{ effect: 'allow', what }] }, 'x', person, kind)
  t.ok(about({ upstreams: ['u*'], names: ['x'], kinds: ['tool'] }))
  t.notOk(about({ upstreams: ['other'] }))
  t.notOk(about({ kinds: ['tool'] }, 'prompt'))
  t.ok(about({ kinds: ['prompt', 'template'] }, 'template'))
})

t.test('tenant and endpoint both have to allow', async (t) => {
  const only = (name: string): PolicyInput => ({
    default: 'deny',
    rules: [{ effect: 'allow', what: { names: [name] } }]
  })
  const both = judge(only('a*'), only('*b'))
  t.same(
    ['ab', 'ax', 'xb'].map((name) => both.of(name)?.isListed),
    [true, false, false]
  )
  t.equal(judge(undefined, only('a')).of('a')?.isListed, true)
})

t.test('tags are the words of the operator; those of the upstream count only where it is trusted', async (t) => {
  const policy: PolicyInput = { default: 'deny', rules: [{ effect: 'allow', what: { tags: ['readOnly'] } }] }
  const hints = { readOnlyHint: true }
  t.ok(allows(policy, 'get_x', person, 'tool', undefined, { tags: { readOnly: ['get_*'] } }))
  t.notOk(allows(policy, 'put_x', person, 'tool', hints, { tags: { readOnly: ['get_*'] } }), 'it may lie')
  t.ok(allows(policy, 'put_x', person, 'tool', hints, { trustAnnotations: true }))
  t.notOk(allows(policy, 'put_x', person, 'tool', { readOnlyHint: 'true' }, { trustAnnotations: true }))
})

t.test('a URI is judged in every spelling that a server may read it in', async (t) => {
  const read = (policy: PolicyInput, uri: string): boolean => allows(policy, uri, person, 'resource')
  const deny: PolicyInput = { default: 'allow', rules: [{ effect: 'deny', what: { names: ['file:///secret*'] } }] }
  for (const uri of [
    'file:///secret/a',
    'file:///public/../secret/a',
    'file:///public/%2e%2e/secret/a',
    'file:///%73ecret/a',
    'FILE:///secret/a'
  ])
    t.notOk(read(deny, uri), uri)
  t.ok(read(deny, 'file:///public/secret/a'))
  t.ok(read(deny, 'memo:secret'))
  const allow: PolicyInput = { default: 'deny', rules: [{ effect: 'allow', what: { names: ['file:///public/*'] } }] }
  t.ok(read(allow, 'file:///public/a%20b'))
  t.notOk(read(allow, 'file:///public/../secret/a'))
  t.notOk(read(allow, 'file:///public/%2e%2e/secret/a'))
  const tagged = (effect: 'allow' | 'deny', uri: string): boolean => {
    const policy = {
      default: effect === 'allow' ? 'deny' : 'allow',
      rules: [{ effect, what: { tags: ['some'] } }]
    } as const
    const tags = { some: [effect === 'allow' ? 'file:///public/*' : 'file:///secret*'] }
    return allows(policy, uri, person, 'resource', undefined, { tags })
  }
  for (const doubtful of [
    'file:///public/../secret/k',
    'file:///public/%3f/../../secret/k',
    'file:///public/%23/../../secret/k',
    'file:///public/%2e%2e%2fsecret/k?%ff',
    'file:///public//../secret/k',
    'file:///%73ecret/a#%ff',
    'file:////secret/k'
  ]) {
    t.notOk(read(allow, doubtful), doubtful)
    t.notOk(read(deny, doubtful), doubtful)
    t.notOk(tagged('allow', doubtful), doubtful)
    t.notOk(tagged('deny', doubtful), doubtful)
  }
  t.ok(tagged('allow', 'file:///public/k'))
  t.ok(tagged('deny', 'file:///public/k'))
  const all: PolicyInput = { default: 'deny', rules: [{ effect: 'allow' }] }
  const ofTools: PolicyInput = { default: 'allow', rules: [{ effect: 'deny', what: { names: ['delete_*', 'all'] } }] }
  t.ok(read(ofTools, 'file:///public/../secret/k'), 'nor where it can only look at names of tools')
  t.ok(read(all, 'file:///public/../secret/k'), 'where no rule looks at names, none is in doubt')
  const exact: PolicyInput = { default: 'deny', rules: [{ effect: 'allow', what: { names: ['HTTPS://example.com'] } }] }
  t.ok(read(exact, 'HTTPS://example.com'), 'one that the rule names as it is')
})

t.test('the scopes of all rules that require some are needed together', async (t) => {
  const rules: RuleInput[] = [
    { effect: 'requires', what: { names: ['put_*'] }, scopes: ['write'] },
    { effect: 'requires', what: { tags: ['destructive'] }, scopes: ['admin', 'write'] }
  ]
  const judged = judge({ default: 'allow', rules }, undefined, { tags: { destructive: ['put_all'] } })
  t.same(
    ['get', 'put_one', 'put_all'].map((name) => judged.of(name)?.scopes),
    [[], ['write'], ['write', 'admin']]
  )
})

t.test('people whom the same rules are about share one view, others have their own', async (t) => {
  const judged = judge({ default: 'deny', rules: [{ effect: 'allow', who: { groups: ['dev'] } }] })
  const bob = { ...person, subject: 'bob', groups: ['dev'] }
  t.equal(judged.access(person), judged.access(bob))
  t.not(judged.access(person), judged.access({ ...bob, groups: [] }))
  t.equal(judged.access(undefined)?.('tool', { upstream: 'up', name: 'x' }).isListed, false, 'nobody may nothing')
})

t.test('a decision among two thousand rules about single names is a look-up', async (t) => {
  const rules: RuleInput[] = Array.from({ length: 2_000 }, (_, n) => ({
    effect: 'allow' as const,
    what: { upstreams: ['up'], names: [`tool-${n}`] }
  }))
  const judged = judge({ default: 'deny', rules })
  const before = process.cpuUsage()
  const allowed = Array.from({ length: 20_000 }, (_, n) => judged.of(`tool-${n}`)?.isListed === true)
  t.equal(allowed.filter(Boolean).length, 2_000)
  const { user, system } = process.cpuUsage(before)
  t.ok(user + system < 5_000_000, 'in microseconds')
})

t.test('a condition hides nothing that it may allow, and doubt denies the call', async (t) => {
  const facts = (args: ConditionFacts['args']): ConditionFacts => ({
    args,
    name: 'x',
    principal: factsOf(person),
    now: new Date(0)
  })
  const tool = { what: { kinds: ['tool'] } } as const
  const decide = (byDefault: 'allow' | 'deny', ...rules: RuleInput[]) =>
    judge({ default: byDefault, rules: rules.map((rule) => ({ ...tool, ...rule })) }).of('x')
  const small = 'args.n < 10'
  const refusedBy = (decision: ReturnType<typeof decide>, args: ConditionFacts['args']) =>
    decision?.decideCall?.(facts(args)).refusedBy

  const allowing = decide('deny', { effect: 'allow', when: small })
  t.equal(allowing?.isListed, true, 'it is listed')
  t.same(
    [refusedBy(allowing, { n: 1 }), refusedBy(allowing, { n: 10 }), refusedBy(allowing, {})],
    [undefined, 'default', 'default']
  )
  const denying = decide('allow', { effect: 'deny', when: small })
  t.equal(denying?.isListed, true)
  t.same(
    [refusedBy(denying, { n: 1 }), refusedBy(denying, { n: 10 }), refusedBy(denying, {})],
    ['rule-0', undefined, 'rule-0']
  )
  const both = decide('deny', { effect: 'allow' }, { effect: 'deny', when: small })
  t.same([refusedBy(both, { n: 1 }), refusedBy(both, { n: 10 })], ['rule-1', undefined])
  t.equal(
    decide('deny', { effect: 'allow', when: small }, { effect: 'deny' })?.isListed,
    false,
    'deny without one wins'
  )
  t.equal(decide('deny', { effect: 'requires', when: small, scopes: ['a'] })?.isListed, false, 'nothing allows it')
  const requiring = decide(
    'allow',
    { effect: 'requires', when: small, scopes: ['a'] },
    { effect: 'requires', scopes: ['b'] }
  )
  t.same(requiring?.scopes, ['b'], 'what every call needs')
  t.same(requiring?.decideCall?.(facts({ n: 1 })).scopes, ['a', 'b'])
  t.same(requiring?.decideCall?.(facts({ n: 10 })).scopes, ['b'])
  t.same(requiring?.decideCall?.(facts({})).scopes, ['a', 'b'])
  t.equal(decide('allow', { effect: 'deny', when: small, who: { subjects: ['bob'] } })?.decideCall, undefined)
})

t.test('beyond 200,000 decisions all of a tenant are forgotten, and made anew', async (t) => {
  const { access, of } = judge({ default: 'deny', rules: [{ effect: 'allow', what: { names: ['get_*'] } }] })
  const first = access(person)
  const decide = (count: number): void => {
    for (let at = 0; at < count; at++) access(person)?.('tool', { upstream: 'up', name: `get_${at}` })
  }
  decide(199_999)
  t.equal(access(person), first, 'the same object for as long')
  decide(2)
  t.not(access(person), first)
  t.ok(of('get_a')?.isListed)
  t.notOk(of('put')?.isListed)
})
