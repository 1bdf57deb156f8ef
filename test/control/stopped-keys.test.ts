// A key that a kill switch has stopped is known, and let in nowhere: whoever uses it is told so, and the log and the
// audit log name the key.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from '../audit/kit.ts'
import { adminGateway } from '../kit/admin.ts'
import { legacyClient, send } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'

const keys = { ada: 'gh_key_of_ada_0123456789', ben: 'gh_key_of_ben_0123456789' }
const answerOfStopped = {
  status: 403,
  json: { error: { data: { reason: 'stopped' }, message: /^An administrator .* has stopped this API key\. / } }
}

t.test('whoever uses a stopped key is told so by every process, and named in the logs', async (t) => {
  const [store, upstream] = await Promise.all([redis(t), startUpstream()])
  t.teardown(() => upstream.close())
  const file = join(t.testdir(), 'audit.jsonl')
  const options = {
    upstreams: { up: { type: 'http', url: upstream.url } },
    auth: { keys: Object.entries(keys).map(([name, key]) => ({ name, key })) },
    store: store.url
  }
  const [one, other] = await Promise.all([
    adminGateway(t, { ...options, top: { audit: { store: false, file } } }),
    adminGateway(t, options)
  ])
  const session = await legacyClient(one.url(), keys.ada)
  upstream.override(isCall('echo'), () => {}, 1)
  const echo = { name: 'up__echo', arguments: {} }
  const running = modernRequest(one.url(), 'tools/call', echo, { token: keys.ada, id: 'x' })
  await until('the call has reached the upstream', () => upstream.seen.some(isCall('echo')))
  t.equal((await other.call('PUT', '/v1/tenants/acme/kills/keys/ada')).status, 201)
  t.match((await running).json, {
    error: { data: { reason: 'call_stopped', outcome: 'unknown' }, message: /stopped the caller/ }
  })

  const ways = (url: string, token: string) => [
    modernRequest(url, 'tools/list', {}, { token }),
    modernRequest(url, 'subscriptions/listen', { notifications: {} }, { token }),
    send(url, { method: 'GET', headers: { Accept: 'text/event-stream', Authorization: `Bearer ${token}` } }),
    modernRequest(url, 'tools/call', echo, { token })
  ]
  for (const [where, { url }] of Object.entries({ one, other })) {
    for (const way of ways(url(), keys.ada)) t.match(await way, answerOfStopped, where)
    await t.rejects(legacyClient(url(), keys.ada), /initialize: 403/, where)
    t.match(await modernRequest(url(), 'tools/list', {}, { token: keys.ben }), { status: 200 }, 'the control')
    t.match(
      await modernRequest(url(), 'tools/list', {}, { token: `${keys.ada}x` }),
      { status: 401, json: { error: { data: { reason: 'unauthenticated', refusal: 'unknown_key' } } } },
      'what is no key is not one that is stopped'
    )
  }
  t.match(await session.request('ping'), answerOfStopped)
  t.equal(upstream.seen.filter(isCall('echo')).length, 1, 'nothing more was called')

  const lines = one.log.filter(({ msg, reason }) => msg === 'refused' && reason === 'stopped')
  t.ok(lines.length >= 6, `${lines.length} lines`)
  t.ok(lines.every(({ apiKey }) => apiKey === 'ada'))
  await one.close()
  const refused = parse(await readFile(file, 'utf8')).filter(({ kind }) => kind === 'refused')
  const stopped = refused.filter(({ outcome }) => outcome === 'stopped')
  t.equal(stopped.length, lines.length)
  for (const each of stopped) t.match(each['by'], { kind: 'key', name: 'ada' })
  t.equal(refused.find(({ outcome }) => outcome === 'unauthenticated')?.['by'], undefined)
})

const path = '/v1/tenants/initech'

/** A gateway with a tenant `initech` that was made by the admin API, with all the keys. */
async function startInitech(t: Test) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, { upstreams: {} })
  const auth = { keys: Object.entries(keys).map(([name, key]) => ({ name, key })) }
  const put = await made.call('PUT', path, { body: { auth, upstreams: { up: { url: upstream.url } } } })
  t.equal(put.status, 201, put.text)
  return { made, auth }
}

t.test('callers of a stopped tenant are told that it is the tenant, and a key that was removed is none', async (t) => {
  const { made, auth } = await startInitech(t)
  const list = (token: string) => modernRequest(made.url('default', 'initech'), 'tools/list', {}, { token })
  t.equal((await made.call('PUT', `${path}/kills/keys/ada`)).status, 201)
  t.match(await list(keys.ada), answerOfStopped)
  const patched = await made.call('PATCH', path, {
    headers: { 'If-Match': '*' },
    body: { auth: { keys: auth.keys.slice(1) } }
  })
  t.equal(patched.status, 200, patched.text)
  t.match(await list(keys.ada), { status: 401, json: { error: { data: { refusal: 'unknown_key' } } } })
  t.equal((await list(keys.ben)).status, 200, 'the control')
  t.equal((await made.call('PUT', `${path}/kills/tenant`)).status, 201)
  t.match((await list(keys.ben)).json, {
    error: { message: /^An administrator of this gateway has stopped the tenant initech\. / }
  })
})

t.test('the list of keys says which are stopped, and no key is made that would be stopped', async (t) => {
  const { made } = await startInitech(t)
  const kill = async (what: string, method = 'PUT') => (await made.call(method, `${path}/kills/${what}`)).status
  const stopped = async () =>
    ((await made.call('GET', `${path}/keys`)).json as { items: Array<{ name: string; stopped: boolean }> }).items
      .filter((each) => each.stopped)
      .map(({ name }) => name)
  const make = (name: string) => made.call('POST', `${path}/keys`, { body: { name } })
  t.same(await stopped(), [])
  t.equal(await kill('keys/ada'), 201)
  t.equal(await kill(`principals/${encodeURIComponent('urn:gatehouse:key')}/cleo?force=true`), 201)
  t.same(await stopped(), ['ada'])
  t.equal((await made.call('DELETE', `${path}/keys/ada`)).status, 204)
  for (const [name, what] of [
    ['ada', /has stopped the key ada: /],
    ['cleo', /has stopped the caller cleo of urn:gatehouse:key: /]
  ] as const)
    t.match(await make(name), { status: 409, json: { detail: what, remedy: /take the kill switch back first/ } })
  const dana = await make('dana')
  t.equal(dana.status, 201, 'another name is not stopped')
  t.equal(await kill('keys/ada', 'DELETE'), 204)
  t.equal((await make('ada')).status, 201, 'nor is this one any more')
  t.equal(await kill('tenant'), 201)
  t.same(await stopped(), ['ada', 'ben', 'dana'])
  t.equal(await kill('tenant', 'DELETE'), 204)
  t.same(await stopped(), [])
  const { key } = dana.json as { key: string }
  t.equal((await modernRequest(made.url('default', 'initech'), 'tools/list', {}, { token: key })).status, 200)
})
