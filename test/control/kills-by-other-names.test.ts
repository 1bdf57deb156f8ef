// What a platform-admin has stopped is not started again under another name by whoever may change the tenant.

import { hash } from 'node:crypto'
import t from 'tap'
import { compileConfig } from '../../src/config/load.ts'
import { createKillSwitches } from '../../src/control/kill-switches.ts'
import { type DatedKill, killsIn, killTexts, stoppedTenant } from '../../src/control/kills.ts'
import { sameTarget } from '../../src/control/same-targets.ts'
import { killOfRoute } from '../../src/policy/kills.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until, type Teardown } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const secrets = { ada: 'gh_key_of_ada_0123456789', ben: 'gh_key_of_ben_0123456789' }

async function start(t: Teardown) {
  const [upstream, other] = await Promise.all([startUpstream(), startUpstream()])
  t.teardown(() => Promise.all([upstream.close(), other.close()]))
  const keys = adminSection.keys.map((each) => (each.name === 'acme' ? { ...each, tenants: ['team'] } : each))
  const hosts = ['127.0.0.1', 'localhost']
  const rig = await adminGateway(t, { upstreams: {}, top: { admin: { ...adminSection, keys, allowedHosts: hosts } } })
  const path = '/v1/tenants/team'
  const auth = { keys: Object.entries(secrets).map(([name, key]) => ({ name, key })) }
  const made = await rig.call('PUT', path, { body: { auth, upstreams: { up: { url: upstream.url } } } })
  if (made.status !== 201) throw new Error(made.text)
  const put = (of: string) => rig.call('PUT', `${path}/kills/${of}`)
  const kill = async (of: string, method = 'PUT') => (await rig.call(method, `${path}/kills/${of}`)).status
  /** By the tenant-admin. */
  const add = async (name: string, url: string) =>
    (await rig.call('PUT', `${path}/upstreams/${name}`, { key: adminKeys.acme, body: { url } })).status
  const listed = async (token = secrets.ada): Promise<string[]> => {
    const { json } = await modernRequest(rig.url('default', 'team'), 'tools/list', {}, { token })
    return (json.result?.tools ?? []).map(({ name }: { name: string }) => name)
  }
  const kills = async () => (await rig.call('GET', `${path}/kills`, { key: adminKeys.acme })).json
  return { rig, path, upstream, other, put, kill, add, listed, kills }
}

const has =
  (...prefixes: string[]) =>
  (names: readonly string[]): boolean =>
    prefixes.every((prefix) => names.some((name) => name.startsWith(`${prefix}__`)))

t.test('a stopped upstream does not come back under another name, nor under another spelling of its URL', async (t) => {
  const { upstream, other, kill, add, listed, kills } = await start(t)
  t.equal(await add('beside', `${upstream.url}?team=b`), 201)
  await until('both are offered', async () => has('up', 'beside')(await listed()))
  t.equal(await kill('upstreams/up'), 201)
  const { host } = new URL(upstream.url)
  const spelt = [
    upstream.url,
    `${upstream.url}?a=b`,
    `${upstream.url}/`,
    `http://${host}//mcp`,
    `http://${host}/%6Dcp`,
    `http://${host}/x/../MCP`
  ]
  for (const [at, url] of spelt.entries()) t.equal(await add(`again${at}`, url), 201, url)
  t.equal(await add('two', other.url), 201)
  const names = await until('what is another server is offered', async () => {
    const found = await listed()
    return has('two', 'beside')(found) ? found : undefined
  })
  t.notOk(
    names.some((name) => /^(?:up|again)/.test(name)),
    'and the stopped one is not'
  )
  t.match(await kills(), {
    items: [{ kind: 'upstream', upstream: 'up', also: spelt.map((_, at) => `again${at}`), besides: ['beside'] }]
  })
  t.notMatch(JSON.stringify(await kills()), /same|server"/, 'by what it is known again is told to nobody')
  t.equal(await kill('upstreams/up', 'DELETE'), 204)
  await until('all of them are there', async () => has('up', 'again0', 'again5')(await listed()))
})

t.test(
  'no other query leads around a kill switch, and what was there with another one goes on as it was',
  async (t) => {
    const { rig, path, upstream, kill, add, listed, kills } = await start(t)
    t.equal(await add('a', `${upstream.url}?team=a&tier=1`), 201)
    t.equal(await add('b', `${upstream.url}?team=b&tier=1`), 201)
    t.equal(await kill('upstreams/a'), 201)
    const queries = { less: 'team=a', more: 'tier=1&team=a&x=1', none: '', turned: 'tier=1&team=a', other: 'team=c' }
    for (const [name, query] of Object.entries(queries)) t.equal(await add(name, `${upstream.url}?${query}`), 201)
    t.equal(await add('segment', `${upstream.url};x=1`), 201)
    t.equal(await add('elsewhere', `${upstream.url}/elsewhere`), 201)
    const told = async () =>
      ((await kills()) as { items: ReadonlyArray<{ also: string[]; besides: string[] }> }).items.map(
        ({ also, besides }) => ({ also: also.toSorted(), besides: besides.toSorted() })
      )
    const also = [...Object.keys(queries), 'segment'].toSorted()
    t.same(await told(), [{ also, besides: ['b', 'up'] }], 'another path is another server')
    const names = await until('others are offered', async () => {
      const found = await listed()
      return has('b', 'up', 'elsewhere')(found) ? found : undefined
    })
    t.notOk(names.some((name) => !/^(?:b|up|elsewhere)__/.test(name)))

    // What was not meant must not become what was stopped.
    const move = (query: string) =>
      rig.call('PATCH', `${path}/upstreams/b`, {
        key: adminKeys.acme,
        headers: { 'If-Match': '*' },
        body: { url: `${upstream.url}?${query}` }
      })
    t.equal((await move('tier=1&team=b')).status, 200)
    t.same(await told(), [{ also, besides: ['b', 'up'] }], 'the same query in another order')
    t.equal((await move('team=a&tier=1')).status, 200)
    t.same(await told(), [{ also: [...also, 'b'].toSorted(), besides: ['up'] }])
    await until('it is stopped', async () => !has('b')(await listed()))
  }
)

t.test('whoever stops something is told at once what stops with it, and what leads there and goes on', async (t) => {
  const { upstream, put, kill, add, kills } = await start(t)
  t.equal(await add('beside', `${upstream.url}?team=b`), 201)
  const told = { kind: 'upstream', upstream: 'up', by: 'platform', role: 'platform-admin', at: /^\d{4}-/ }
  t.match(await put('upstreams/up'), { status: 201, json: { ...told, also: [], besides: ['beside'] } })
  t.equal(await add('again', upstream.url), 201)
  const repeated = await put('upstreams/up')
  t.match(repeated, { status: 200, json: { ...told, also: ['again'], besides: ['beside'] } }, 'it was stopped already')
  t.same(await kills(), { items: [repeated.json], nextCursor: null }, 'as the list shows it')
  for (const [of, what] of [
    ['tools/up/echo', { kind: 'tool', upstream: 'up', tool: 'echo', besides: ['beside', 'again'] }],
    ['keys/ada', { kind: 'key', key: 'ada', also: [], besides: [] }],
    [`principals/${encodeURIComponent('urn:gatehouse:key')}/ben`, { kind: 'principal', subject: 'ben', also: [] }],
    ['tenant', { kind: 'tenant', also: [], besides: [] }]
  ] as const) {
    const answer = await put(`${of}?force=true`)
    t.match(answer, { status: 201, json: what }, of)
    t.equal(await kill(of, 'DELETE'), 204)
  }
})

t.test('a name that led there before goes on as long as it is there, and not when it comes back', async (t) => {
  const { rig, path, upstream, kill, add, listed, kills } = await start(t)
  t.equal(await add('beside', upstream.url), 201)
  t.equal(await kill('upstreams/up'), 201)
  t.match(await kills(), { items: [{ also: [], besides: ['beside'] }] })
  await until('it goes on', async () => has('beside')(await listed()))
  const options = { key: adminKeys.acme, headers: { 'If-Match': '*' } }
  t.equal((await rig.call('DELETE', `${path}/upstreams/beside`, options)).status, 204)
  t.equal(await add('beside', upstream.url), 201)
  t.match(await kills(), { items: [{ also: ['beside'], besides: [] }] })
  await until('it is stopped', async () => !has('beside')(await listed()))
})

t.test('a platform-admin who takes a kill switch over holds what it was put on, and what is there now', async (t) => {
  const { rig, path, upstream, other, kill, add, kills } = await start(t)
  const options = { key: adminKeys.acme }
  t.equal((await rig.call('PUT', `${path}/kills/upstreams/up`, options)).status, 201)
  const moved = await rig.call('PATCH', `${path}/upstreams/up`, {
    ...options,
    headers: { 'If-Match': '*' },
    body: { url: other.url }
  })
  t.equal(moved.status, 200, moved.text)
  t.equal(await kill('upstreams/up'), 200)
  t.equal(await add('first', upstream.url), 201)
  t.equal(await add('second', other.url), 201)
  t.match(await kills(), { items: [{ role: 'platform-admin', also: ['second', 'first'] }] })
  t.match((await rig.call('DELETE', `${path}/kills/upstreams/up`, options)).status, 403)
  t.equal(await kill('upstreams/up', 'DELETE'), 204)
  t.match(await kills(), { items: [] })
})

t.test('what earlier versions have put is recognised, and they recognise what this one puts', async (t) => {
  const names = { kills: 'kills/team', targets: 'kill-targets/team' }
  const [killed, first] = [{ kind: 'upstream', upstream: 'up' } as const, { at: 'x', by: 'a', role: 'tenant-admin' }]
  const same = { places: [{ server: 'x' }] }
  const texts = killTexts('team', [], [{ ...killed, ...first, same }])
  t.same(JSON.parse(texts.get(names.kills) ?? ''), [{ ...killed, ...first }], 'the list is as it always was')
  const kept = (list: unknown, version = 1) =>
    new Map([
      [names.kills, { version, text: JSON.stringify(list) }],
      [names.targets, { version: 1, text: texts.get(names.targets) }]
    ])
  const read = killsIn(kept([{ ...killed, ...first }]), new Map())
  t.same(read.get('team')?.kills, [{ ...killed, ...first, same }])
  t.equal(killsIn(kept([{ ...killed, ...first }]), read).get('team'), read.get('team'), 'and is not parsed again')

  const written: Array<ReadonlyMap<string, string | undefined>> = []
  const twice: readonly DatedKill[] = [{ ...killed, ...first, later: 1 } as DatedKill, { ...killed, ...first, at: 'y' }]
  const config = JSON.stringify({
    tenants: { team: { auth: 'none', upstreams: { up: { url: 'https://a.example' } } } }
  })
  const switches = createKillSwitches({
    killsOf: () => twice,
    isKnown: () => true,
    targetsOf: () => [...compileConfig(config, { path: 'x', env: {} }).tenants.values()],
    commit: async (_about, judged) => void written.push(await judged()),
    wall: Date
  })
  const author = { name: 'acme', role: 'tenant-admin' } as const
  const set = (verb: 'put' | 'delete') => switches.set({ author, tenant: 'team', kill: killed, verb })
  const known = { isChanged: true, isNew: false }
  t.match(await set('put'), { ...known, kill: { at: 'x' } }, 'what it stops is written where it was not known')
  t.match(await set('delete'), { ...known, kill: undefined })
  t.match(written[0]?.get(names.targets), /"server"/)
  t.match(JSON.parse(written[0]?.get(names.kills) ?? ''), { length: 1, 0: { at: 'x', by: 'a' } })
  t.same([...(written[1] ?? [])], [[names.kills, undefined]], 'all of them are taken back')
})

t.test('a stopped tool does not come back at a second upstream of the same server', async (t) => {
  const { rig, path, upstream, other, kill, add, listed } = await start(t)
  await until('it is offered', async () => (await listed()).includes('up__echo'))
  t.equal(await kill('tools/up/echo'), 201)
  t.equal(await add('again', upstream.url), 201)
  t.equal(await add('two', other.url), 201)
  const names = await until('they are offered', async () => {
    const found = await listed()
    return has('again', 'two')(found) ? found : undefined
  })
  t.match([names.includes('again__echo'), names.includes('two__echo')], [false, true])
  t.ok(names.includes('again__pid'), 'its other tools are there')
  const call = await modernRequest(
    rig.url('default', 'team'),
    'tools/call',
    { name: 'again__echo', arguments: {} },
    { token: secrets.ada }
  )
  t.match(call.json, { error: { message: /Unknown tool/ } })
  const why = await rig.call('POST', `${path}/endpoints/default/explain`, { body: { name: 'again/echo' } })
  t.match(why.json, { outcome: 'denied', sentence: /kill switch has stopped the tool echo of again/ })
})

t.test('a thousand stopped tools of a server with 256 names are one rule, and 256 names kept once', (t) => {
  const url = 'https://files.example.com/mcp'
  const names = Array.from({ length: 256 }, (_, at) => `u${at}`)
  const tenantWith = (upstreams: readonly string[]) => {
    const tenant = { auth: 'none', upstreams: Object.fromEntries(upstreams.map((name) => [name, { url }])) }
    const config = JSON.stringify({ tenants: { team: tenant } })
    return compileConfig(config, { path: 'x', env: {} }).tenants.get(tenantId('team'))
  }
  const [first, many] = [tenantWith(['u0']), tenantWith(names)]
  if (first === undefined || many === undefined) throw new Error('it does not compile')
  const kills = Array.from({ length: 1_000 }, (_, at): DatedKill => {
    const kill = { kind: 'tool', upstream: 'u0', tool: `t${at}` } as const
    const same = sameTarget(kill, first)
    return { ...kill, at: '2026-01-01T00:00:00Z', by: 'a', role: 'tenant-admin', ...(same && { same }) }
  })
  const { kills: inForce = [], policy } = stoppedTenant(many, kills)
  t.match([policy?.rules.length, inForce.length, new Set(inForce.map(({ also }) => also)).size], [1, 1_000, 1])
  const { upstreams, names: tools } = policy?.rules[0]?.what ?? {}
  t.match([upstreams?.length, tools?.length], [256, 1_000])
  t.same(killOfRoute({ kills: inForce }, { upstream: 'u255', name: 't999' }), {
    kind: 'tool',
    upstream: 'u255',
    tool: 't999'
  })
  t.equal(killOfRoute({ kills: inForce }, { upstream: 'u255', name: 'other' }), undefined, 'another tool goes on')
  t.end()
})

t.test('a stopped key does not come back under another name', async (t) => {
  for (const which of ['keys/ada', `principals/${encodeURIComponent('urn:gatehouse:key')}/ada?force=true`]) {
    const { rig, path, kill, kills } = await start(t)
    const status = async (token: string) =>
      (await modernRequest(rig.url('default', 'team'), 'tools/list', {}, { token })).status
    t.equal(await kill(which), 201)
    t.not(await status(secrets.ada), 200)
    const renamed = { name: 'adele', sha256: hash('sha256', secrets.ada) }
    const ben = { name: 'ben', sha256: { secret: true } }
    const auth = { keys: [renamed, ben, { name: 'cleo', key: 'gh_key_of_cleo_0123456789' }] }
    const patched = await rig.call('PATCH', path, {
      key: adminKeys.acme,
      headers: { 'If-Match': '*' },
      body: { auth }
    })
    t.equal(patched.status, 200, patched.text)
    await until('the new keys are in force', async () => (await status('gh_key_of_cleo_0123456789')) === 200)
    t.equal(await status(secrets.ben), 200)
    t.equal(await status(secrets.ada), 403)
    t.match(await kills(), { items: [{ also: ['adele'] }] })
    t.notMatch(JSON.stringify(await kills()), hash('sha256', secrets.ada))
    t.equal(await kill(which.split('?')[0] ?? '', 'DELETE'), 204)
    await until('it is let in', async () => (await status(secrets.ada)) === 200)
  }
})
