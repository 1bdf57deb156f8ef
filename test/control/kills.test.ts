// Kill switches: what is stopped at one process is stopped at the other, calls in flight included, in both eras, and
// after a restart; and what is not stopped goes on.

import { Redis } from 'ioredis'
import t from 'tap'
import { type DatedKill, withKill } from '../../src/control/kills.ts'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { legacyClient, type Answer, withoutRequestId } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { redis } from '../kit/redis.ts'
import { until, type Teardown } from '../kit/until.ts'
import { isCall, isMethod, startUpstream } from '../kit/upstream.ts'

const keys = { ada: 'gh_key_of_ada_0123456789', ben: 'gh_key_of_ben_0123456789' }

async function start(t: Teardown) {
  const [store, upstream, second] = await Promise.all([redis(t), startUpstream(), startUpstream()])
  t.teardown(() => Promise.all([upstream.close(), second.close()]))
  const options = {
    upstreams: { up: { type: 'http', url: upstream.url }, two: { type: 'http', url: second.url } },
    auth: { keys: Object.entries(keys).map(([name, key]) => ({ name, key })) },
    store: store.url
  }
  const startOne = () => adminGateway(t, options)
  const [one, other] = await Promise.all([startOne(), startOne()])
  const kill = (path: string, method = 'PUT') => other.call(method, `/v1/tenants/acme/kills/${path}`)
  return { one, other, upstream, second, kill, startOne, storeUrl: store.url }
}

const namesIn = ({ json }: Answer): string[] =>
  ((json.result?.tools ?? []) as Array<{ name: string }>).map(({ name }) => name)

t.test('a stopped tool is answered as one that does not exist, in both eras, until it is released', async (t) => {
  const { one, other, upstream, kill } = await start(t)
  const client = await legacyClient(one.url(), keys.ada)
  const stream = await client.listen()
  const call = (name: string) => client.request('tools/call', { name, arguments: {} }, { id: 'x' })
  const modern = (name: string) =>
    modernRequest(one.url(), 'tools/call', { name, arguments: {} }, { token: keys.ada, id: 'x' })
  t.match((await call('up__echo')).json, { result: {} })
  t.match((await modern('up__echo')).json, { result: {} })
  upstream.override(isCall('echo'), () => {}, 2)
  const [running, runningModern] = [call('up__echo'), modern('up__echo')]
  const others = client.request('tools/call', { name: 'two__echo', arguments: {} })
  await until('both calls have reached the upstream', () => upstream.seen.filter(isCall('echo')).length === 4)
  t.equal((await kill('tools/up/echo')).status, 201)
  for (const answer of [await running, await runningModern])
    t.match(answer.json, { error: { data: { reason: 'call_stopped', outcome: 'unknown' } } })
  t.match((await others).json, { result: {} }, 'another call of the session goes on')
  await stream.next(({ method }: { method?: string }) => method === 'notifications/tools/list_changed')
  const names = namesIn(await client.request('tools/list'))
  t.notOk(names.includes('up__echo'))
  t.ok(names.includes('two__echo'))
  const unknown = (text: string) => text.replaceAll('up__nothing', 'up__echo')
  const textOf = async (answer: Promise<{ text: string }>) => withoutRequestId((await answer).text)
  t.equal(await textOf(call('up__echo')), unknown(await textOf(call('up__nothing'))))
  t.equal(await textOf(modern('up__echo')), unknown(await textOf(modern('up__nothing'))))
  const explain = { body: { name: 'up/echo' } }
  const why = await one.call('POST', '/v1/tenants/acme/endpoints/default/explain', explain)
  t.match(why.json, { outcome: 'denied', sentence: /kill switch has stopped the tool echo of up/ })
  t.match((await one.call('GET', '/v1/tenants/acme/kills')).json, {
    items: [{ kind: 'tool', upstream: 'up', tool: 'echo', by: 'platform', at: /^\d{4}-/ }]
  })
  t.equal((await kill('tools/up/echo')).status, 200, 'again')
  t.equal((await kill('tools/up/echo', 'DELETE')).status, 204)
  t.equal((await kill('tools/up/echo', 'DELETE')).status, 404)
  await until('it is there again', async () => namesIn(await client.request('tools/list')).includes('up__echo'))
  t.match((await call('up__echo')).json, { result: {} })
  const changes = other.log.flatMap(({ change }) => (change === undefined ? [] : [change]))
  t.match(changes, [{ action: 'kill.put', tenant: 'acme', target: 'the tool echo of up' }, { action: 'kill.delete' }])
})

t.test('a call that waits for the list of its upstream does not get past a kill switch', async (t) => {
  const { upstream, kill, startOne } = await start(t)
  const held: Array<() => void> = []
  upstream.override(
    isMethod('tools/list'),
    (response, { message }) => {
      const result = { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }
      held.push(() => {
        response.writeHead(200, { 'Content-Type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
      })
    },
    Infinity
  )
  const fresh = await startOne()
  const modern = modernRequest(
    fresh.url(),
    'tools/call',
    { name: 'up__echo', arguments: {} },
    { token: keys.ada, id: 'x' }
  )
  await until('the call waits for the list', () => held.length > 0)
  t.equal((await kill('tools/up/echo?force=true')).status, 201, 'nobody knows its tools yet')
  await until('the new process knows', async () => {
    const { json } = await fresh.call('GET', '/v1/tenants/acme/kills')
    return (json as { items: unknown[] }).items.length === 1
  })
  for (const release of held) release()
  const { text } = await modern
  t.match(text, /call_stopped|Unknown tool/)
  t.equal(upstream.seen.filter(isCall('echo')).length, 0, 'it never reached the upstream')
})

t.test('of a stopped upstream nothing is left, and its calls end', async (t) => {
  const { one, upstream, kill } = await start(t)
  const client = await legacyClient(one.url(), keys.ada)
  upstream.override(isCall('echo'), () => {}, 1)
  const running = client.request('tools/call', { name: 'up__echo', arguments: {} })
  await until('the call has reached the upstream', () => upstream.seen.some(isCall('echo')))
  t.equal((await kill('upstreams/up')).status, 201)
  t.match((await running).json, { error: { data: { reason: 'call_stopped' } } })
  await until('its tools are gone', async () => {
    const names = namesIn(await client.request('tools/list'))
    return names.includes('two__echo') && !names.some((name) => name.startsWith('up__'))
  })
  const why = await one.call('POST', '/v1/tenants/acme/endpoints/default/explain', { body: { name: 'up/echo' } })
  t.match(why.json, { outcome: 'denied', sentence: /stopped the upstream up/ })
})

t.test('a stopped caller is out, with sessions and streams, and nobody else is', async (t) => {
  for (const path of [`principals/${encodeURIComponent('urn:gatehouse:key')}/ada`, 'keys/ada']) {
    const { one, kill, startOne } = await start(t)
    const [ada, ben] = await Promise.all([legacyClient(one.url(), keys.ada), legacyClient(one.url(), keys.ben)])
    const stream = await ada.listen()
    t.equal((await kill(path)).status, 201, path)
    await stream.ended
    const status = 403
    await until('the caller is refused', async () => (await ada.request('ping')).status === status)
    const modern = await modernRequest(one.url(), 'tools/list', {}, { token: keys.ada })
    t.equal(modern.status, status)
    t.match((await ben.request('ping')).json, { result: {} })
    const late = await startOne()
    await t.rejects(legacyClient(late.url(), keys.ada), new RegExp(`initialize: ${status}`), 'after a restart, too')
    t.equal((await kill(path, 'DELETE')).status, 204)
    await until('the caller is let in again', () => legacyClient(one.url(), keys.ada).catch(() => undefined))
    t.equal((await ada.request('ping')).status, 404, 'the session of before has ended')
  }
})

t.test(
  'all sessions of a stopped caller end, and those that were left when it was stopped at the next PUT',
  async (t) => {
    const { one, other, kill, storeUrl } = await start(t)
    const countOf = async (): Promise<number> =>
      ((await other.call('GET', '/v1/tenants/acme/usage')).json as { sessions: number }).sessions
    await legacyClient(one.url(), keys.ben)
    for (let n = 0; n < 130; n++) await legacyClient(one.url(), keys.ada)
    await legacyClient(one.url(), keys.ben)
    t.equal(await countOf(), 132)
    const raw = new Redis(storeUrl)
    t.teardown(() => raw.disconnect())
    const [list = ''] = await raw.keys('gatehouse:open-sessions:*')
    await raw.rename(list, 'aside')
    t.equal((await kill('keys/ada')).status, 201)
    await raw.rename('aside', list)
    t.equal(await countOf(), 132, 'as a process leaves them that died before it had ended any')
    t.equal((await kill('keys/ada')).status, 200)
    await until('they have ended', async () => (await countOf()) === 2)
    const { items } = (await other.call('GET', '/v1/tenants/acme/sessions')).json as { items: object[] }
    t.match(items, [{ subject: 'ben' }, { subject: 'ben' }])
    t.equal(one.log.concat(other.log).filter(({ change }) => change !== undefined).length, 1, 'one change was recorded')
  }
)

t.test('a stopped tenant lets nobody in, and no other tenant notices', async (t) => {
  const { one, other, kill, upstream } = await start(t)
  const client = await legacyClient(one.url(), keys.ada)
  upstream.override(isCall('echo'), () => {}, 1)
  const running = client.request('tools/call', { name: 'up__echo', arguments: {} })
  await until('the call has reached the upstream', () => upstream.seen.some(isCall('echo')))
  t.equal((await kill('tenant')).status, 201)
  t.match((await running).text, /call_stopped|unauthenticated|session_unknown/)
  await until('everybody is refused', async () => (await client.request('ping')).status === 403)
  t.match(await other.call('GET', '/v1/tenants/acme'), { status: 200 })
  t.equal((await other.call('DELETE', '/v1/tenants/acme/kills/tenant', { key: adminKeys.globex })).status, 404)
  t.equal((await other.call('PUT', '/v1/tenants/nobody/kills/tenant')).status, 404)
  t.equal((await kill('tenant', 'DELETE')).status, 204)
  await until('callers are let in again', () => legacyClient(one.url(), keys.ada).catch(() => undefined))
})

t.test('kill switches outlast every rollback, and end with a tenant that is made anew', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, { upstreams: {} })
  const path = '/v1/tenants/initech'
  const any = { 'If-Match': '*' }
  const body = {
    auth: { keys: Object.entries(keys).map(([name, key]) => ({ name, key })) },
    upstreams: { up: { url: upstream.url } }
  }
  const other = { auth: {}, upstreams: {} }
  const statuses = () =>
    Promise.all(
      [keys.ada, keys.ben].map(
        async (token) => (await modernRequest(made.url('default', 'initech'), 'tools/list', {}, { token })).status
      )
    )
  const rollback = async (version: number) => {
    const { status, text } = await made.call('POST', '/v1/rollback', { body: { version } })
    t.equal(status, 200, text)
  }
  t.match(await made.call('PUT', '/v1/tenants/other', { body: other }), { status: 201, json: { version: 1 } })
  t.match(await made.call('PUT', path, { body }), { status: 201, json: { version: 2 } })
  t.same(await statuses(), [200, 200])
  t.equal((await made.call('PUT', `${path}/kills/keys/ada`)).status, 201)
  t.same(await statuses(), [403, 200])
  await rollback(1)
  t.equal((await made.call('GET', path)).status, 404)
  await rollback(2)
  t.same(await statuses(), [403, 200], 'back and forth')
  t.match((await made.call('GET', `${path}/kills`)).json, { items: [{ kind: 'key', key: 'ada', by: 'platform' }] })
  t.equal((await made.call('DELETE', path, { headers: any })).status, 204)
  await rollback(2)
  t.same(await statuses(), [403, 200], 'removed and brought back')
  t.equal((await made.call('PUT', `${path}/kills/tenant`)).status, 201)
  t.same(await statuses(), [403, 403])
  await rollback(1)
  await rollback(2)
  t.same(await statuses(), [403, 403])
  t.equal((await made.call('DELETE', path, { headers: any })).status, 204)
  t.equal((await made.call('PUT', path, { body })).status, 201)
  t.same(await statuses(), [200, 200], 'made anew, by whoever may')
  t.match((await made.call('GET', `${path}/kills`)).json, { items: [] })
})

t.test('the tests of a policy are judged as if nothing were stopped', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const caller = { key: 'ada' }
  const test = (name: string, expect: string) => ({ name, caller, kind: 'tool', expect, endpoint: 'default' })
  const policy = { default: 'deny', rules: [{ name: 'echo', effect: 'allow', what: { names: ['echo'] } }] }
  const tests = [test('up/echo', 'allowed'), test('up/slow', 'allowed')]
  const made = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    auth: { keys: [{ name: 'ada', key: keys.ada }] },
    policy: { ...policy, tests }
  })
  const judged = async () => (await made.call('GET', '/v1/tenants/acme/endpoints/default/policy-tests')).json
  const expected = {
    failed: 1,
    items: [
      { name: 'up/echo', holds: true },
      { name: 'up/slow', holds: false }
    ]
  }
  t.match(await judged(), expected)
  for (const path of ['tools/up/echo', 'tools/up/slow', 'upstreams/up']) {
    t.equal((await made.call('PUT', `/v1/tenants/acme/kills/${path}?force=true`)).status, 201)
    t.match(await judged(), expected, `${path} is stopped`)
  }
})

t.test('a kill switch of what there is not is refused: it would stop nothing', async (t) => {
  const { one, other, kill, startOne } = await start(t)
  for (const path of ['tools/upp/echo', 'tools/*/echo', 'upstreams/upp', 'keys/adda'])
    t.match(await kill(path), { status: 404, json: { type: 'urn:gatehouse:problem:not_found' } }, path)
  t.match(await kill('tools/up/ech*'), { status: 422, json: { detail: /takes no pattern/ } })
  for (const path of ['upstreams/up', 'keys/ada']) t.equal((await kill(path)).status, 201, `the control: ${path}`)
  t.equal((await kill('upstreams/up')).status, 200, 'again, although it is stopped')

  const client = await legacyClient(one.url(), keys.ben)
  await until('its tools are listed', async () => namesIn(await client.request('tools/list')).includes('two__echo'))
  const fresh = await startOne()
  const refused = async (path: string, detail: RegExp, by = other) => {
    const answer = await by.call('PUT', `/v1/tenants/acme/kills/${path}`)
    t.match(answer, { status: 404, json: { type: 'urn:gatehouse:problem:not_found', detail, remedy: /force=true/ } })
  }
  // What one process has listed is stored for the others, which nobody waits for.
  await until('the others know its tools', async () => {
    const { text } = await other.call('PUT', '/v1/tenants/acme/kills/tools/two/ehco')
    return !text.includes('not known yet')
  })
  await refused('tools/two/ehco', /Did you mean "echo"\?/)
  await refused('tools/two/two__echo', /Did you mean "echo"\?/, fresh)
  await refused('tools/two/zzzzzz', /seen a tool of this name at the upstream two\.$/)
  const person = (issuer: string, subject: string) => `principals/${encodeURIComponent(issuer)}/${subject}`
  await refused(person('https://idp.example', 'zoe'), /no issuer of this name/)
  await refused(person('urn:gatehouse:keys', 'ben'), /Did you mean "urn:gatehouse:key"\?/)
  await refused(person('urn:gatehouse:key', 'benn'), /Did you mean "ben"\?/)
  const { items } = (await other.call('GET', '/v1/tenants/acme/kills')).json as { items: unknown[] }
  t.equal(items.length, 2, 'nothing of that was stopped')
  for (const path of ['tools/two/echo', person('urn:gatehouse:key', 'ben')])
    t.equal((await kill(path)).status, 201, `the control: ${path}`)
})

t.test('what nobody has seen yet is stopped on purpose', async (t) => {
  const upstream = await startUpstream()
  await upstream.close()
  const made = await adminGateway(t, {
    upstreams: { away: { type: 'http', url: upstream.url } },
    auth: { keys: [{ name: 'ada', key: keys.ada }] }
  })
  const kill = (path: string, query = '') => made.call('PUT', `/v1/tenants/acme/kills/${path}${query}`)
  const paths = ['tools/away/echo', 'principals/https%3A%2F%2Fidp.example/zoe']
  t.match((await kill('tools/away/echo')).json, { status: 404, detail: /has is not known yet/, remedy: /force=true/ })
  for (const path of paths) {
    t.equal((await kill(path)).status, 404, path)
    t.equal((await kill(path, '?force=yes')).status, 400)
    t.equal((await kill(path, '?force=true')).status, 201)
    t.equal((await kill(path)).status, 200, 'it is stopped already')
  }
  t.equal((await kill('tools/none/echo', '?force=true')).status, 404, 'there is no such upstream')
  t.match((await made.call('GET', '/v1/tenants/acme/kills')).json, { items: [{ subject: 'zoe' }, { tool: 'echo' }] })
  t.equal((await made.call('DELETE', '/v1/tenants/acme/kills/tools/away/echo')).status, 204)
})

t.test('the kill switches of a tenant take no more than so much of the store', async (t) => {
  const dated = (subject: string): DatedKill => ({ kind: 'principal', issuer: 'x', subject, at: '', by: 'platform' })
  const some = Array.from({ length: 100 }, (_, n) => dated(`${n} ${'s'.repeat(1_200)}`))
  t.equal(withKill(some, dated('short'))?.length, 101, 'the control')
  t.throws(() => withKill(some, dated('s'.repeat(10_000))), { code: 'limit_reached', message: /100 kill switches/ })
  const own = some.map((each) => ({ ...each, role: 'tenant-admin' }))
  const much = dated('s'.repeat(10_000))
  t.throws(() => withKill(own, { ...much, role: 'tenant-admin' }), { code: 'limit_reached' })
  t.equal(withKill(own, { ...much, role: 'platform-admin' })?.length, 101, 'those of the platform have their own room')
})

t.test('what a platform-admin has stopped, only a platform-admin starts again', async (t) => {
  const { one, kill } = await start(t)
  const own = { key: adminKeys.acme }
  const turn = (method: string, path: string) => one.call(method, `/v1/tenants/acme/kills/${path}`, own)
  t.equal((await turn('PUT', 'keys/ben')).status, 201)
  t.equal((await turn('DELETE', 'keys/ben')).status, 204, 'its own')
  t.equal((await kill('tenant')).status, 201)
  t.equal((await turn('PUT', 'tenant')).status, 200, 'it is so already')
  const refused = await turn('DELETE', 'tenant')
  t.match(refused, {
    status: 403,
    json: { type: 'urn:gatehouse:problem:forbidden', detail: /platform-admin/, remedy: 'Ask a platform-admin.' }
  })
  await t.rejects(legacyClient(one.url(), keys.ada), /initialize: 403/)
  t.match((await one.call('GET', '/v1/tenants/acme/kills', own)).json, {
    items: [{ kind: 'tenant', by: 'platform', role: 'platform-admin' }]
  })
  t.equal((await kill('tenant', 'DELETE')).status, 204)
  t.equal((await turn('PUT', 'keys/ada')).status, 201)
  t.equal((await kill('keys/ada')).status, 200, 'the platform-admin takes it over')
  t.equal((await turn('DELETE', 'keys/ada')).status, 403)
  t.match((await one.call('GET', '/v1/tenants/acme/kills', own)).json, { items: [{ key: 'ada', by: 'platform' }] })
  t.equal((await kill('keys/ada', 'DELETE')).status, 204)
  t.ok(await until('ada is let in again', () => legacyClient(one.url(), keys.ada).catch(() => undefined)))
})

t.test('the kill switches of a tenant of the file stay, whatever becomes of a document behind it', async (t) => {
  const { one, kill } = await start(t)
  const document = { auth: {}, upstreams: {} }
  const apply = (acme: unknown) =>
    one.call('POST', '/v1/apply', { body: { behindFile: true, tenants: { acme } }, headers: { 'If-Match': '*' } })
  const ping = async () => (await modernRequest(one.url(), 'tools/list', {}, { token: keys.ada })).status
  t.equal((await apply(document)).status, 200)
  t.equal(await ping(), 200)
  t.equal((await kill('tenant')).status, 201)
  await until('it is stopped here, too', async () => (await ping()) === 403)
  t.equal((await apply(null)).status, 200)
  t.equal(await ping(), 403)
  t.match((await one.call('GET', '/v1/tenants/acme/kills')).json, { items: [{ kind: 'tenant' }] })
})

t.test('lists of kill switches are read page by page, however long and alike their names are', async (t) => {
  const { one } = await start(t)
  const callers = [
    ['a'.repeat(500), 'b'.repeat(500)],
    ['z', 'x of y'],
    ['y of z', 'x'],
    ['é'.repeat(400), 'ü'.repeat(400)]
  ] as const
  for (const [issuer, subject] of callers) {
    const path = [issuer, subject].map(encodeURIComponent).join('/')
    t.equal((await one.call('PUT', `/v1/tenants/acme/kills/principals/${path}?force=true`)).status, 201)
  }
  const found: unknown[] = []
  for (let next: string | null = ''; next !== null;) {
    const cursor: string = next === '' ? '' : `&cursor=${next}`
    const { status, json } = await one.call('GET', `/v1/tenants/acme/kills?limit=1${cursor}`)
    t.equal(status, 200)
    const { items, nextCursor } = json as {
      items: Array<{ issuer: string; subject: string }>
      nextCursor: string | null
    }
    found.push(...items.map(({ issuer, subject }) => [issuer, subject]))
    next = nextCursor
  }
  t.same(new Set(found.map(String)), new Set(callers.map(String)))
  t.equal(found.length, callers.length)
})
