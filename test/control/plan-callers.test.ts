// A plan says who may use other tools after a change of rules, keys or required scopes: the keys of the tenant, and who
// called today.

import t from 'tap'
import { adminGateway } from '../kit/admin.ts'
import { issuer } from '../kit/issuer.ts'
import { legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

interface Plan {
  readonly tenants: ReadonlyArray<{
    readonly endpoints: ReadonlyArray<{
      readonly endpoint: string
      readonly sessions: number
      readonly others?: readonly unknown[]
      readonly callers: { readonly known: number; readonly differ: number; readonly changes: readonly unknown[] }
    }>
  }>
}

t.test('who gains and loses tools is told by name, and is so when the change is made', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const idp = await issuer(t, { scopes: ['mcp', 'extra'] })
  const rig = await adminGateway(t, { upstreams: {} })
  const path = '/v1/tenants/team'
  const auth = { issuers: [{ issuer: idp.url, jwksUri: idp.jwksUri }] }
  const team = { auth, upstreams: { up: { url: upstream.url } } }
  const put = await rig.call('PUT', path, { body: team })
  t.equal(put.status, 201, put.text)
  const made = await rig.call('POST', `${path}/keys`, { body: { name: 'tom', scopes: ['mcp'] } })
  const { key } = made.json as { key: string }
  await rig.call('POST', `${path}/keys`, { body: { name: 'eve', endpoints: ['default'] } })
  const url = rig.url('default', 'team')
  const token = await idp.token({ resource: url, scope: 'mcp' })
  const listed = async (by: string): Promise<string[]> => {
    const { json } = await modernRequest(url, 'tools/list', {}, { token: by })
    return json.result.tools.map(({ name }: { name: string }) => name)
  }
  const all = await listed(token)
  t.ok(all.length > 1, 'the issuer’s client has called')

  const { configuration } = (await rig.call('GET', path)).json as { configuration: { auth: object } }
  const planned = async (change: object) => {
    const { json, text } = await rig.call('POST', '/v1/plan', {
      body: { tenants: { team: { ...configuration, ...change } } }
    })
    const [tenant] = (json as Plan).tenants ?? []
    if (tenant === undefined) throw new Error(text)
    return tenant.endpoints
  }
  const rules = [
    { name: 'tom-only', effect: 'deny', who: { keys: ['tom'] }, what: { names: ['echo'] } },
    { name: 'people', effect: 'requires', who: { issuers: [idp.url] }, what: { names: ['pid'] }, scopes: ['extra'] }
  ]
  const policy = { default: 'allow', rules }
  const [one, ...others] = await planned({ policy })
  t.same(others, [])
  t.match(one, {
    endpoint: 'default',
    rulesChange: true,
    gains: { count: 0 },
    loses: { count: 0 },
    callers: { known: 3, notLookedAt: 0, differ: 2 }
  })
  t.match(one?.callers.changes, [
    { kind: 'key', subject: 'tom', gains: { count: 0 }, loses: { count: 1, names: ['up__echo'] } },
    { kind: 'token', issuer: idp.url, loses: { count: 1, names: ['up__pid'] } }
  ])
  // Nothing was changed by the plan; then it is made, and is so.
  t.ok((await listed(key)).includes('up__echo'))
  t.equal((await rig.call('PUT', `${path}/policy`, { body: policy })).status, 201)
  t.notOk((await listed(key)).includes('up__echo'))
  const refused = await modernRequest(url, 'tools/call', { name: 'up__pid', arguments: {} }, { token })
  t.match(refused, { status: 403 })

  // Back again: they gain what they lost.
  const [back] = await planned({})
  t.match(back?.callers, {
    differ: 2,
    changes: [{ subject: 'tom', gains: { names: ['up__echo'] } }, { kind: 'token' }]
  })
  // Who is not let in any more loses all, also where no rule changes; others are not told of.
  const [closed] = await planned({ policy, auth: { ...configuration.auth, issuers: [] } })
  t.match(closed?.callers, { differ: 1, changes: [{ kind: 'token', loses: { count: all.length - 1 } }] })
  const [asked] = await planned({ policy, auth: { ...configuration.auth, requiredScopes: ['mcp'] } })
  t.match(asked?.callers, { differ: 1, changes: [{ kind: 'key', subject: 'eve', loses: { count: all.length } }] })
  // What the endpoint itself requires, too, of keys and tokens alike.
  const endpoints = { default: { upstreams: ['up'], requires: { scopes: ['extra'] } } }
  const [narrow] = await planned({ policy, endpoints })
  t.equal(narrow?.callers.differ, 3)
  t.match(narrow?.callers.changes, [
    { kind: 'key', loses: { count: Number } },
    { kind: 'key', loses: { count: Number } },
    { kind: 'token', loses: { count: all.length - 1 } }
  ])
  const same = await planned({ policy, origins: ['https://a.example'] })
  t.same(same, [], 'nobody gains or loses by another change')
})

t.test('prompts, resources and templates that callers gain and lose are told by their kind', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const rig = await adminGateway(t, { upstreams: {} })
  const path = '/v1/tenants/team'
  const [tom, eve] = ['gh_key_of_tom_0123456789', 'gh_key_of_eve_0123456789']
  const auth = {
    keys: [
      { name: 'tom', key: tom },
      { name: 'eve', key: eve }
    ]
  }
  t.equal((await rig.call('PUT', path, { body: { auth, upstreams: { up: { url: upstream.url } } } })).status, 201)
  const url = rig.url('default', 'team')
  const listsOf = async (token: string) => {
    const list = async (method: string, of: string, by: string): Promise<string[]> =>
      (await modernRequest(url, method, {}, { token })).json.result[of].map((each: Record<string, unknown>) => each[by])
    return {
      prompt: await list('prompts/list', 'prompts', 'name'),
      resource: await list('resources/list', 'resources', 'uri'),
      template: await list('resources/templates/list', 'resourceTemplates', 'uriTemplate')
    }
  }
  const all = await listsOf(tom)
  for (const [kind, names] of Object.entries(all)) t.ok(names.length > 0, `there is a ${kind}`)
  const { configuration } = (await rig.call('GET', path)).json as { configuration: object }
  const changed = (change: object) => ({ tenants: { team: { ...configuration, ...change } } })
  const planned = async (change: object) => {
    const { json, text } = await rig.call('POST', '/v1/plan', { body: changed(change) })
    const [tenant] = (json as Plan).tenants ?? []
    if (tenant === undefined) throw new Error(text)
    return tenant.endpoints[0]
  }
  const none = { count: 0, names: [] }
  const told = (names: string[]) => ({ count: names.length, names: [...names].sort() })

  // What the endpoint itself offers no more is lost by everybody, rules or not.
  const narrow = { endpoints: { default: { upstreams: ['up'], deny: { prompts: ['*'] } } } }
  t.match(await planned(narrow), { loses: none, others: [{ kind: 'prompt', gains: none, loses: told(all.prompt) }] })
  // What rules take is lost by whom they are about alone.
  const rule = {
    name: 'tom',
    effect: 'deny',
    who: { keys: ['tom'] },
    what: { kinds: ['prompt', 'resource', 'template'] }
  }
  const policy = { default: 'allow', rules: [rule] }
  const byRules = await planned({ policy })
  t.match(byRules, { gains: none, loses: none, others: [], callers: { known: 2, differ: 1 } })
  t.match(byRules?.callers.changes, [
    {
      subject: 'tom',
      gains: none,
      loses: none,
      others: Object.entries(all).map(([kind, names]) => ({ kind, gains: none, loses: told(names) }))
    }
  ])
  const applied = await rig.call('POST', '/v1/apply', { headers: { 'If-Match': '*' }, body: changed({ policy }) })
  t.equal(applied.status, 200, applied.text)
  t.same(await listsOf(tom), { prompt: [], resource: [], template: [] }, 'it is so when the change is made')
  t.same(await listsOf(eve), all)
})

t.test(
  'a new definition takes nothing from anybody that is known, and sessions that are told are counted',
  async (t) => {
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    const rig = await adminGateway(t, { upstreams: {} })
    const path = '/v1/tenants/team'
    const held = { tom: 'gh_key_of_tom_0123456789', eve: 'gh_key_of_eve_0123456789' }
    const auth = { keys: Object.entries(held).map(([name, key]) => ({ name, key })) }
    const up = { url: upstream.url }
    t.equal((await rig.call('PUT', path, { body: { auth, upstreams: { up } } })).status, 201)
    const url = rig.url('default', 'team')
    const [tom, eve] = await Promise.all([legacyClient(url, held.tom), legacyClient(url, held.eve)])
    const streams = { tom: await tom.listen(), eve: await eve.listen() }
    const told = (who: keyof typeof streams) =>
      streams[who].next(({ method }: { method?: string }) => method === 'notifications/tools/list_changed')
    const count = async (): Promise<number> => (await tom.request('tools/list')).json.result.tools.length
    const all = await until('its tools are listed', count)

    const { configuration } = (await rig.call('GET', path)).json as { configuration: object }
    const turn = async (verb: 'plan' | 'apply', change: object) => {
      const { status, json, text } = await rig.call('POST', `/v1/${verb}`, {
        headers: { 'If-Match': '*' },
        body: { tenants: { team: { ...configuration, ...change } } }
      })
      if (status !== 200) throw new Error(text)
      return (json as Plan).tenants[0]?.endpoints?.[0]
    }
    const policy = (...keys: string[]) => ({
      default: 'allow',
      rules: [{ name: 'no-echo', effect: 'deny', who: { keys }, what: { names: ['echo'] } }]
    })
    const [forTom, slower] = [{ policy: policy('tom') }, { upstreams: { up: { ...up, timeoutMs: 5_000 } } }]
    const none = { count: 0, names: [] }
    t.match(
      await turn('plan', { upstreams: {} }),
      { loses: { count: all }, mayChange: [] },
      'the control: it is removed'
    )
    t.match(await turn('plan', forTom), {
      loses: none,
      callers: { differ: 1 },
      mayChange: [],
      sessions: 1,
      toldSessions: [{ subject: 'tom' }]
    })
    t.match(await turn('plan', slower), {
      gains: none,
      loses: none,
      callers: { differ: 0 },
      mayChange: ['up'],
      unknown: [],
      sessions: 2,
      toldSessions: [{}, {}]
    })
    t.match(
      await turn('plan', { ...slower, ...forTom }),
      { loses: none, callers: { differ: 1, changes: [{ subject: 'tom', loses: { count: 1, names: ['up__echo'] } }] } },
      'a real loss stands alone'
    )
    // As the plan said: the first change tells Tom only, the second one both.
    await turn('apply', forTom)
    await told('tom')
    await turn('apply', { ...slower, ...forTom })
    await Promise.all([told('tom'), told('eve')])
    t.equal(await until('they are listed anew', count), all - 1)
    t.match(await turn('plan', { ...slower, policy: policy('tom', 'eve') }), { callers: { differ: 1 }, sessions: 1 })
    const out = { ...slower, ...forTom, auth: { keys: [{ name: 'eve', sha256: { secret: true } }] } }
    t.match(await turn('plan', out), { sessions: 1 }, 'whose key is taken away')
    t.match(await turn('plan', { ...out, ...slower, endpoints: { other: { upstreams: ['up'] } } }), { sessions: 2 })
  }
)
