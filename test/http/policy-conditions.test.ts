// Conditions of policies on the wire: judged on what the upstream would get, in both eras.

import t from 'tap'
import { acmeGateway, authOf, keyOf } from '../kit/acme-gateway.ts'
import { configOf } from '../kit/gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'

const rule = (name: string, effect: string, when: string, rest: object = {}) => ({
  name,
  effect,
  what: { kinds: ['tool'], names: ['echo'] },
  when,
  ...rest
})

async function doors(acme: { url(): string }, bearer: string) {
  const session = await legacyClient(acme.url(), bearer)
  const ask = async (method: string, params: Record<string, unknown>) =>
    [
      ['a session', await session.request(method, params)],
      ['2026-07-28', await modernRequest(acme.url(), method, params, { token: bearer })]
    ] as const
  const call = (args: object) => ask('tools/call', { name: 'echo', arguments: args })
  return { ask, call }
}

t.test('a call whose arguments a condition refuses names the rule, and never reaches the upstream', async (t) => {
  const acme = await acmeGateway(t, {
    policy: { default: 'allow', rules: [rule('at-most-100', 'deny', 'args.amount > 100', { who: { keys: ['bob'] } })] }
  })
  const { ask, call } = await doors(acme, keyOf.bob)
  for (const args of [{ amount: 101 }, { amount: '5' }, {}]) {
    for (const [door, { status, json }] of await call(args)) {
      t.equal(status, 200)
      t.match(
        json.error,
        {
          code: -32602,
          message:
            'The policy of this endpoint refuses the call: the rule at-most-100 refuses these arguments at this time, from this address.',
          data: { reason: 'refused_by_policy', rule: 'at-most-100' }
        },
        `${door}: ${JSON.stringify(args)}`
      )
    }
  }
  t.equal(acme.upstream.server.calls('echo'), 0)
  for (const [door, { json }] of await ask('tools/list', {}))
    t.ok(
      json.result.tools.some((tool: { name: string }) => tool.name === 'echo'),
      `${door}: it is listed`
    )
  for (const [door, { json }] of await call({ amount: 100 })) t.ok(json.result, `${door}: within the limit`)
  const other = await doors(acme, keyOf.ada)
  for (const [door, { json }] of await other.call({ amount: 101 })) t.ok(json.result, `${door}: whom it is not about`)
})

t.test('what no rule allows is refused, and what one allows is called', async (t) => {
  const policy = {
    default: 'deny',
    rules: [
      rule('public', 'allow', 'args.path.glob("/public/*")'),
      rule('own', 'allow', 'args.owner == principal.key'),
      rule('greet', 'allow', 'args.who != "root"', { what: { kinds: ['prompt'] } })
    ]
  }
  const acme = await acmeGateway(t, { policy })
  const { ask, call } = await doors(acme, keyOf.bob)
  for (const args of [{ path: '/public/a' }, { owner: 'bob' }, { path: '/x', owner: 'bob' }])
    for (const [door, { json }] of await call(args)) t.ok(json.result, `${door}: ${JSON.stringify(args)}`)
  const before = acme.upstream.server.calls('echo')
  for (const [door, { json }] of await call({ path: '/private', owner: 'ada' }))
    t.match(json.error, { message: /no rule allows it/, data: { rule: 'default' } }, door)
  t.equal(acme.upstream.server.calls('echo'), before)
  const greet = (who: string) => ask('prompts/get', { name: 'greet', arguments: { who } })
  for (const [door, { json }] of await greet('root'))
    t.match(json.error, { data: { reason: 'refused_by_policy' } }, door)
  for (const [door, { json }] of await greet('ada')) t.ok(json.result, door)
  for (const args of [[{ who: 'root' }], 'root'])
    for (const [door, { json }] of await ask('prompts/get', { name: 'greet', arguments: args }))
      t.match(json.error, { message: '"arguments" of prompts/get must be an object.' }, door)
  for (const [door, { json }] of await ask('tools/call', { name: 'pid', arguments: {} }))
    t.match(json.error, { message: 'Unknown tool: pid' }, `${door}: what no condition could allow is unknown`)
})

t.test('a scope that only some arguments need is asked for by a 403', async (t) => {
  const policy = {
    default: 'allow',
    rules: [
      rule('large', 'requires', 'args.amount > 100', { scopes: ['pay:large'] }),
      { name: 'pay', effect: 'requires', what: { names: ['echo'] }, scopes: ['pay'] }
    ]
  }
  const acme = await acmeGateway(t, { policy })
  const { call } = await doors(acme, await acme.bearer('JWT', 'ada', { scope: 'pay' }))
  for (const [door, { status, headers }] of await call({ amount: 101 })) {
    t.equal(status, 403, door)
    t.match(String(headers['www-authenticate']), 'scope="pay:large pay"')
  }
  t.equal(acme.upstream.server.calls('echo'), 0)
  for (const [door, { json }] of await call({ amount: 1 })) t.ok(json.result, door)
  const none = await doors(acme, await acme.bearer('JWT', 'ada'))
  for (const [door, { headers }] of await none.call({ amount: 101 }))
    t.match(String(headers['www-authenticate']), 'scope="pay:large pay"', `${door}: one new token is enough`)
  const large = await doors(acme, await acme.bearer('JWT', 'ada', { scope: 'pay pay:large' }))
  for (const [door, { json }] of await large.call({ amount: 101 })) t.ok(json.result, door)
})

t.test('arguments that the endpoint adds are judged with those of the caller', async (t) => {
  const acme = await acmeGateway(t)
  acme.reload(
    configOf({
      upstreams: { up: { type: 'http', url: acme.upstream.url } },
      endpoints: {
        default: { upstreams: ['up'], prefix: '', tools: { 'up/echo': { fixed: { project: 'one' } } } },
        other: { upstreams: ['up'], prefix: '', tools: { 'up/echo': { fixed: { project: 'two' } } } }
      },
      auth: authOf(acme.issuer),
      policy: { default: 'deny', rules: [rule('one', 'allow', 'args.project == "one" && args.a == 1')] }
    })
  )
  const { call } = await doors(acme, keyOf.bob)
  for (const [door, { json }] of await call({ a: 1 })) t.ok(json.result, door)
  const other = await doors({ url: () => acme.url('other') }, keyOf.bob)
  for (const [door, { json }] of await other.call({ a: 1 })) t.match(json.error, { data: { rule: 'default' } }, door)
})
