// A tenant-admin may not change the rules of its tenant, and so decides what they look at: it gives keys the scopes
// and names that they ask for, brings issuers of its own, lets everybody in, moves tags. All of that is refused.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { recordsIn } from '../audit/kit.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

const path = '/v1/tenants/initech'
const ofTenant = { key: adminKeys.globex, headers: { 'If-Match': '*' } }

const rules = [
  { name: 'large', effect: 'requires', what: { names: ['echo'] }, scopes: ['bank:large'] },
  { name: 'ops', effect: 'allow', who: { keys: ['ops-*'] } },
  { name: 'readers', effect: 'allow', who: { scopes: ['read:*'] } },
  { name: 'staff', effect: 'allow', who: { groups: ['staff'], scopes: ['staff'] } },
  { name: 'every-key', effect: 'allow', who: { keys: ['*'] }, what: { names: ['echo'] } },
  { name: 'plain', effect: 'allow', what: { tags: ['readOnly'] } }
]

async function start(t: Test, more: object) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const file = join(t.testdir(), 'audit.jsonl')
  const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['initech'] } : each))
  const admin = { ...adminSection, keys, allowedHosts: ['127.0.0.1', 'idp.example.com'] }
  const made = await adminGateway(t, { upstreams: {}, top: { admin, audit: { store: false, file } } })
  const { url } = upstream
  const body = { auth: { keys: [] }, upstreams: { up: { url, tags: { readOnly: ['slow'] } } }, ...more }
  const { status, text } = await made.call('PUT', path, { body })
  if (status !== 201) throw new Error(text)
  const makeKey = (entry: object, key: string = adminKeys.globex) =>
    made.call('POST', `${path}/keys`, { key, body: entry })
  const records = () => recordsIn(file)
  return { ...made, url: made.url, upstreamUrl: url, makeKey, records }
}

const endpointWith = (readOnlyHint: boolean) => ({
  upstreams: ['up'],
  tools: { 'up/echo': { annotations: { readOnlyHint, openWorldHint: true } } }
})

const reserved = { policy: { default: 'deny', rules }, reserved: ['policy'] }

t.test(
  'a key gets no scope and no name that a reserved rule asks for, and what it gets it cannot get around',
  async (t) => {
    const { call, url, makeKey, records } = await start(t, reserved)
    for (const [entry, said] of [
      [{ name: 'a', scopes: ['mcp', 'bank:large'] }, /gives the key "a" the scope "bank:large": the rule "large"/],
      [{ name: 'a', scopes: ['read:all'] }, /the scope "read:all": the rule "readers"/],
      [{ name: 'ops-2' }, /gives the key "ops-2" its name: the rule "ops"/]
    ] as const) {
      const { status, json } = await makeKey(entry)
      t.match({ status, json }, { status: 403, json: { detail: said, remedy: /grantableScopes/ } })
    }
    const last = await until('the refusal is recorded', async () =>
      (await records()).find(({ kind }) => kind === 'refused')
    )
    const by = { kind: 'admin', name: 'globex', role: 'tenant-admin' }
    t.match(last, {
      by,
      action: 'key.make',
      target: 'a',
      decision: 'denied',
      outcome: 'forbidden',
      chain: /^initech\//
    })
    // The same by other routes.
    const key = (entry: object) => ({ auth: { keys: [{ key: 'gh_key_of_nobody_0123456', ...entry }] } })
    const large = key({ name: 'a', scopes: ['bank:large'] })
    t.equal((await call('PATCH', path, { ...ofTenant, body: large })).status, 403)
    const { configuration } = (await call('GET', path)).json as { configuration: object }
    for (const route of ['/v1/plan', '/v1/apply'])
      t.equal(
        (await call('POST', route, { ...ofTenant, body: { tenants: { initech: { ...configuration, ...large } } } }))
          .status,
        403,
        route
      )
    t.equal((await call('PATCH', path, { ...ofTenant, body: { grantableScopes: ['bank:large'] } })).status, 403)

    // A scope that a rule asks of people is nothing to a key.
    const plain = await makeKey({ name: 'a', scopes: ['mcp', 'staff'] })
    t.equal(plain.status, 201, plain.text)
    const echo = { name: 'up__echo', arguments: { text: 'x' } }
    const clientOf = async (answer: { json: unknown }) =>
      await legacyClient(url('default', 'initech'), (answer.json as { key: string }).key)
    const refusal = await (await clientOf(plain)).request('tools/call', echo)
    t.match(refusal, { status: 403, headers: { 'www-authenticate': /scope="bank:large"/ } })
    const large2 = await makeKey({ name: 'b', scopes: ['bank:large'] }, adminKeys.platform)
    t.match(
      (await (await clientOf(large2)).request('tools/call', echo)).json,
      { result: {} },
      'a platform-admin gives it'
    )
    // What a platform-admin gave can be taken away, not changed.
    const { json } = await call('GET', path, { key: adminKeys.globex })
    const { auth } = (json as { configuration: { auth: { keys: Array<{ name: string }> } } }).configuration
    const longer = auth.keys.map((each) => (each.name === 'b' ? { ...each, expires: '2100-01-01' } : each))
    t.equal((await call('PATCH', path, { ...ofTenant, body: { auth: { keys: longer } } })).status, 403)
    t.equal((await call('DELETE', `${path}/keys/b`, ofTenant)).status, 204)

    t.equal(
      (await call('PATCH', path, { body: { grantableScopes: ['bank:large'] }, headers: ofTenant.headers })).status,
      200
    )
    const granted = await makeKey({ name: 'c', scopes: ['bank:large'] })
    t.match(
      (await (await clientOf(granted)).request('tools/call', echo)).json,
      { result: {} },
      'and so does a tenant-admin'
    )
    t.equal((await makeKey({ name: 'd', scopes: ['read:all'] })).status, 403)
  }
)

t.test('no issuer, no open door and no tag decides what a reserved rule means', async (t) => {
  const { call, upstreamUrl } = await start(t, reserved)
  const issuer = `${path}/issuers/${encodeURIComponent('https://idp.example.com')}`
  const provider = { issuer: 'https://idp.example.com', clientId: 'c', clientSecret: 's' }
  const upstream = `${path}/upstreams/up`
  const attempts: ReadonlyArray<readonly [method: string, place: string, body: object, said: RegExp]> = [
    ['PUT', issuer, {}, /changes an issuer/],
    ['PATCH', path, { auth: { login: { provider } } }, /what tokens of the login front may say/],
    ['PATCH', path, { auth: 'none' }, /lets everybody in/],
    ['PATCH', upstream, { tags: { readOnly: ['*'] } }, /changes the tag "readOnly" of the upstream "up"/],
    ['PATCH', upstream, { trustAnnotations: true }, /changes the tag "readOnly"/],
    ['PUT', `${path}/upstreams/new`, { url: upstreamUrl, tags: { readOnly: ['*'] } }, /of the upstream "new"/],
    [
      'PATCH',
      path,
      { endpoints: { new: endpointWith(true) } },
      /changes readOnlyHint of "up\/echo" at the endpoint "new"/
    ]
  ]
  for (const [method, place, body, said] of attempts) {
    const { status, json } = await call(method, place, { ...ofTenant, body })
    t.match({ status, json }, { status: 403, json: { detail: said } }, `${method} ${place}`)
  }
  // What the rules do not look at, or what only takes away, is the tenant's own; then it stays as it is.
  const own = (is: boolean) => call('PATCH', path, { ...ofTenant, body: { endpoints: { own: endpointWith(is) } } })
  t.equal((await own(false)).status, 200)
  const turned = await own(true)
  t.match(turned, { status: 403, json: { detail: /changes readOnlyHint/ } })
  t.equal(
    (await call('PATCH', upstream, { ...ofTenant, body: { tags: { readOnly: ['slow'], own: ['*'] } } })).status,
    200
  )
  t.equal(
    (await call('PUT', `${path}/upstreams/new`, { key: adminKeys.globex, body: { url: upstreamUrl } })).status,
    201
  )
  // Nor do they where nothing is reserved.
  t.equal((await call('PATCH', path, { body: { reserved: [] }, headers: ofTenant.headers })).status, 200)
  t.equal((await call('PUT', issuer, { key: adminKeys.globex, body: {} })).status, 201)
})

t.test('a tag by which a reserved limit counts stays', async (t) => {
  const { call, upstreamUrl } = await start(t, {
    upstreams: { up: { url: 'http://127.0.0.1:9/mcp', tags: { costly: ['*'], own: ['*'] } } },
    limits: { costly: { perMinute: 5, what: { tags: ['costly'] } }, own: { perMinute: 5, what: { tags: ['own'] } } },
    reserved: ['limits/costly']
  })
  const change = (tags: object) => call('PATCH', `${path}/upstreams/up`, { ...ofTenant, body: { tags } })
  t.match(await change({ costly: null }), { status: 403, json: { detail: /the tag "costly".*limit costly/ } })
  t.equal((await change({ own: null })).status, 200, 'the control: another one is the tenant’s')
  const body = { url: upstreamUrl, tags: { costly: ['*'] } }
  t.equal((await call('PUT', `${path}/upstreams/new`, { key: adminKeys.globex, body })).status, 201)
})

t.test('a tag that a reserved rule looks at is not shed by removing the upstream and adding it again', async (t) => {
  for (const effect of ['requires', 'deny'] as const) {
    const rule = { name: 'step-up', effect, what: { tags: ['destructive'] } }
    const { call, upstreamUrl } = await start(t, {
      upstreams: {
        up: { url: 'http://127.0.0.1:9/mcp', tags: { destructive: ['delete_*'] } },
        hints: { url: 'http://127.0.0.1:9/mcp', trustAnnotations: true },
        plain: { url: 'http://127.0.0.1:9/mcp', tags: { own: ['*'] } }
      },
      policy: { default: 'allow', rules: [{ ...rule, ...(effect === 'requires' && { scopes: ['tickets:delete'] }) }] },
      reserved: ['policy']
    })
    const said = (name: string) => ({
      status: 403,
      json: {
        detail: `This takes away the tag "destructive" of the upstream "${name}": the rule "step-up" looks at that, and is reserved for platform-admins.`
      }
    })
    for (const name of ['up', 'hints'])
      t.match(await call('DELETE', `${path}/upstreams/${name}`, ofTenant), said(name), `${effect}: ${name}`)
    const { configuration } = (await call('GET', path)).json as { configuration: { upstreams: Record<string, object> } }
    const { up: _, ...others } = configuration.upstreams
    const without = { ...configuration, upstreams: others }
    t.match(await call('PUT', path, { ...ofTenant, body: without }), said('up'), 'the whole document')
    const renamed = { ...configuration, upstreams: { ...others, other: { url: upstreamUrl } } }
    t.match(await call('PUT', path, { ...ofTenant, body: renamed }), said('up'), 'under another name')

    // One that the rule does not look at comes and goes; and the tag is given, and not taken away again.
    t.equal((await call('DELETE', `${path}/upstreams/plain`, ofTenant)).status, 204)
    const body = { url: upstreamUrl, tags: { destructive: ['*'] } }
    t.equal((await call('PUT', `${path}/upstreams/plain`, { key: adminKeys.globex, body })).status, 201)
    t.match(await call('DELETE', `${path}/upstreams/plain`, ofTenant), said('plain'))

    // A platform-admin removes it, and then nothing of it is left.
    const { headers } = ofTenant
    t.equal((await call('DELETE', `${path}/upstreams/up`, { headers })).status, 204)
    t.equal(
      (await call('PUT', `${path}/upstreams/up`, { key: adminKeys.globex, body: { url: upstreamUrl } })).status,
      201
    )
  }
})

t.test('a key does not pass a reserved rule by what it has not: groups, a subject, an issuer, a client', async (t) => {
  const rule = (when: string) => ({ name: 'own', effect: 'allow', what: { kinds: ['tool'] }, when })
  const { call, url, makeKey } = await start(t, {
    policy: { default: 'deny', rules: [rule('!("contractors" in principal.groups) && args.sum < 100')] },
    reserved: ['policy']
  })
  const said = { status: 403, json: { detail: /^This gives the key "a" what it is: a key/ } }
  t.match(await makeKey({ name: 'a' }), said)
  const path = '/v1/tenants/initech/policy'
  for (const [at, [when, passes]] of [
    ['principal.kind != "token"', true],
    ['has(args.sum) || "staff" in principal.groups', true],
    ['!("a" in principal.roles)', true],
    ['!("limited" in principal.scopes)', true],
    ['!has(principal.subject)', true],
    ['!has(principal.issuer) && args.sum < 100', true],
    ['has(principal.client) ? principal.client == "host" : args.sum < 100', true],
    ['args.sum < 100 || !(has(principal.client) && principal.client == "mallory")', true],
    ['args.sum < 100 && has(principal.subject)', false],
    ['!(principal.subject == "mallory")', false],
    ['principal.subject == "ada" || args.sum < 0', false],
    ['"staff" in principal.groups && args.sum < 100', false],
    ['args.owner == "me" && principal.roles.exists(r, r.glob("lead-*"))', false],
    ['principal.subject.endsWith("@acme.example") && !("contractors" in principal.groups)', false],
    ['args.owner == principal.subject', false]
  ].entries() as ArrayIterator<[number, [string, boolean]]>) {
    const body = { default: 'deny', rules: [rule(when)] }
    t.equal((await call('PUT', path, { body, headers: ofTenant.headers })).status, 200, when)
    const answer = await makeKey({ name: passes ? 'a' : `k-${at}` })
    t.match(answer, passes ? said : { status: 201 }, when)
    // What such a key is let through to, whoever made it.
    const { json } = passes ? await makeKey({ name: `p-${at}` }, adminKeys.platform) : answer
    const client = await legacyClient(url('default', 'initech'), (json as { key: string }).key)
    const echo = await client.request('tools/call', { name: 'up__echo', arguments: { sum: 1, owner: 'me' } })
    t.equal(echo.text.includes('"result"'), passes, `${when}: ${echo.text}`)
  }
})

t.test('rules of reserved endpoints and upstreams, and conditions on callers, hold as well', async (t) => {
  const when = "'night' in principal.scopes"
  const { call, makeKey } = await start(t, {
    endpoints: {
      default: {
        upstreams: ['up'],
        requires: { scopes: ['staff:in'] },
        tools: { 'up/echo': { requires: { scopes: ['a:echo'] } } }
      }
    },
    policy: { default: 'allow', rules: [{ name: 'cond', effect: 'deny', what: { kinds: ['tool'] }, when }] },
    reserved: ['endpoints/default']
  })
  t.match((await makeKey({ name: 'a', scopes: ['a:echo'] })).json, { status: 403, detail: /"requires of up\/echo"/ })
  t.match((await makeKey({ name: 'a', scopes: ['staff:in'] })).json, { status: 403, detail: /"requires of default"/ })
  t.equal((await makeKey({ name: 'a', scopes: ['day'] })).status, 201)
  t.equal((await call('PATCH', path, { body: { reserved: ['policy/rules'] }, headers: ofTenant.headers })).status, 200)
  t.match((await makeKey({ name: 'b', scopes: ['day'] })).json, { status: 403, detail: /scopes: the rule "cond"/ })
  t.equal((await makeKey({ name: 'b', scopes: [] })).status, 201)
})
