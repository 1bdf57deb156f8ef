// For random policies and callers: exactly what is listed can be called, in both eras, before and after each change;
// and what `explain` says of it is what happens.

import fc from 'fast-check'
import t from 'tap'
import type { Principal } from '../../src/auth/principal.ts'
import { compileConfig } from '../../src/config/load.ts'
import { explainAccess } from '../../src/policy/explain.ts'
import { finished } from '../../src/protocol/json-steps.ts'
import { endpointName, tenantId } from '../../src/protocol/messages.ts'
import { acmeGateway, authOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'

/** More by `LIST_IS_CALL_ROUNDS`. */
const rounds = Number(process.env['LIST_IS_CALL_ROUNDS'] ?? 8)
const seed = Number(process.env['LIST_IS_CALL_SEED'] ?? 20_260_728)

const tools = ['echo', 'pid', 'args', 'fail', 'release']
const others = [
  {
    kind: 'prompt',
    list: { method: 'prompts/list', member: 'prompts' },
    method: 'prompts/get',
    key: 'name',
    entries: ['echo', 'args', 'fail']
  },
  {
    kind: 'resource',
    list: { method: 'resources/list', member: 'resources' },
    method: 'resources/read',
    key: 'uri',
    entries: ['test://a', 'test://echo', 'file:///fail']
  }
] as const
/** Of what is listed, and may be refused all the same. */
const reasonsOfWhatIsFound: ReadonlySet<unknown> = new Set(['insufficient_scope', 'refused_by_policy'])
const some = (values: readonly string[]) => fc.subarray([...values], { minLength: 1, maxLength: 2 })
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

const ruleOf = fc.record({
  effect: fc.constantFrom('allow', 'allow', 'deny', 'requires'),
  who: fc.record({
    subjects: optional(some(['ada', 'bob', '*'])),
    groups: optional(some(['dev', 'ops'])),
    scopes: optional(some(['mcp', 'w*']))
  }),
  what: fc.record({
    upstreams: optional(some(['up', 'u*', 'other'])),
    names: optional(some(['echo', 'pid', 'a*', '*', 'fail', 'test://*', '*fail'])),
    kinds: optional(fc.constantFrom(['tool'], ['prompt'], ['resource'], ['tool', 'prompt'], ['resource', 'prompt'])),
    tags: optional(some(['careful', 'plain']))
  }),
  scopes: some(['mcp', 'write']),
  when: optional(fc.constantFrom('args.n > 1', 'args.n < 1', '"dev" in principal.groups'))
})
const policyOf = fc.record({ default: fc.constantFrom('allow', 'deny'), rules: fc.array(ruleOf, { maxLength: 6 }) })

type PolicyInput = typeof policyOf extends fc.Arbitrary<infer Policy> ? Policy : never

const written = ({ default: byDefault, rules }: PolicyInput): unknown => ({
  default: byDefault,
  rules: rules.map(({ effect, who, what, scopes, when }, at) => ({
    name: `rule-${at}`,
    effect,
    who,
    what: when === undefined ? what : { ...what, kinds: what.kinds ?? ['tool', 'resource'] },
    ...(effect === 'requires' && { scopes }),
    ...(when !== undefined && { when })
  }))
})

t.test(
  `what is listed can be called, and nothing else (seed ${seed}, ${rounds} rounds)`,
  { timeout: rounds * 10_000 },
  async (t) => {
    const acme = await acmeGateway(t, {
      script: {
        tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })),
        prompts: ['echo', 'args', 'fail'].map((name) => ({ name })),
        resources: ['test://a', 'test://echo', 'file:///fail'].map((uri) => ({ uri, name: uri })),
        templates: []
      }
    })
    const people = [
      { sub: 'ada', scope: 'mcp', groups: ['dev'] },
      { sub: 'bob', scope: 'mcp write', groups: ['ops', 'qa'] },
      { sub: 'eve', scope: '', groups: [] }
    ]
    const clients = await Promise.all(
      people.map(async (person) => {
        const token = await acme.bearer('JWT', 'ada', person)
        return { person, token, session: await legacyClient(acme.url(), token) }
      })
    )
    let judged = 0
    for (const [tenantPolicy, endpointPolicy] of fc.sample(fc.tuple(policyOf, optional(policyOf)), {
      numRuns: rounds,
      seed
    })) {
      const config = configOf({
        upstreams: { up: { type: 'http', url: acme.upstream.url, tags: { careful: ['echo', 'fail'], plain: ['a*'] } } },
        endpoints: {
          default: {
            upstreams: ['up'],
            prefix: '',
            ...(endpointPolicy === undefined ? {} : { policy: written(endpointPolicy) })
          }
        },
        auth: authOf(acme.issuer),
        policy: written(tenantPolicy)
      })
      acme.reload(config)
      const tenant = compileConfig(JSON.stringify(config), { path: 'x', env: {} }).tenants.get(tenantId('acme'))
      const endpoint = tenant?.endpoints.get(endpointName('default'))
      if (tenant === undefined || endpoint === undefined) throw new Error('no endpoint')
      for (const { person, token, session } of clients) {
        const principal: Principal = {
          kind: 'token',
          tenant: tenant.id,
          issuer: acme.issuer.issuer,
          subject: person.sub,
          clientId: 'app-of-ada',
          scopes: new Set(person.scope.split(' ')),
          groups: person.groups,
          roles: [],
          expiresAt: undefined
        }
        const ask = (method: string, params: Record<string, unknown>) =>
          Promise.all([session.request(method, params), modernRequest(acme.url(), method, params, { token })])
        const listed = (await ask('tools/list', {})).map(({ json }) =>
          json.result.tools.map(({ name }: { name: string }) => name)
        )
        const told = JSON.stringify([tenantPolicy, endpointPolicy, person])
        t.same(listed[0], listed[1], `both eras list the same ${told}`)
        for (const { kind, list, method, key, entries } of others) {
          const lists = (await ask(list.method, {})).map(({ json }) =>
            (json.result[list.member] as Array<Record<string, string>>).map((entry) => String(entry[key]))
          )
          t.same(lists[0], lists[1], `both eras list the same ${kind}s ${told}`)
          for (const entry of entries) {
            const isListed = lists[0]?.includes(entry) === true
            for (const [era, { json }] of (await ask(method, { [key]: entry })).entries()) {
              const isFound = json.error === undefined || reasonsOfWhatIsFound.has(json.error.data?.reason)
              t.equal(isFound, isListed, `${kind} ${entry}, era ${era}: ${JSON.stringify(json.error)} ${told}`)
            }
          }
        }
        for (const name of tools) {
          const explained = finished(
            explainAccess(tenant, endpoint, {
              principal,
              kind: 'tool',
              route: { upstream: 'up', name },
              args: { n: 2 },
              now: new Date()
            })
          )
          const wanted = {
            allowed: undefined,
            depends: undefined,
            denied: 'invalid_params',
            refused: 'refused_by_policy',
            'needs-scopes': 'insufficient_scope'
          }[explained.outcome]
          const answers = await ask('tools/call', { name, arguments: { n: 2 } })
          for (const [era, { json }] of answers.entries()) {
            judged++
            t.equal(json.error?.data?.reason, wanted, `${name}, era ${era}: ${explained.sentence} ${told}`)
            t.equal(
              explained.outcome === 'denied',
              !listed[era].includes(name),
              `${name} is listed where it is found ${told}`
            )
            if (wanted === 'invalid_params') t.equal(json.error.message, `Unknown tool: ${name}`)
          }
        }
      }
    }
    t.equal(judged, rounds * people.length * tools.length * 2)
  }
)
