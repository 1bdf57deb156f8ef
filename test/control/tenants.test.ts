// A tenant made by the admin API: what may be put, who may put it, what is shown of it, and that it serves.

import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { documentPrefix } from '../../src/control/compiled-documents.ts'
import { createJournal } from '../../src/control/journal.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { steadyClock, wallClock } from '../../src/time/clock.ts'
import { adminGateway, adminKeys, adminSection, type AdminGateway } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until, type Teardown } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { quiet } from '../store/kit.ts'

const apiKey = 'gh_key_of_a_tenant_made_by_api'
const canary = 'CANARYk3Vb8Xw2Zr9Lq7'

async function start(t: Teardown, top: object = {}) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, {
    upstreams: {},
    top: {
      admin: {
        ...adminSection,
        keys: adminSection.keys.map((each) =>
          each.name === 'globex' ? { ...each, tenants: ['globex', 'initech'] } : each
        ),
        allowedHosts: ['127.0.0.1'],
        ...top
      }
    }
  })
  const document = {
    auth: { keys: [{ name: 'ci', key: apiKey }] },
    upstreams: { up: { type: 'http', url: upstream.url, headers: { 'X-Api-Key': canary } } }
  }
  return { ...made, upstream, document }
}

const put = (made: AdminGateway, body: unknown, options: object = {}) =>
  made.call('PUT', '/v1/tenants/initech', { body, ...options })

const problemsIn = ({ json }: { readonly json: unknown }) =>
  (json as { errors?: Array<{ path: string; message: string }> }).errors ?? []

t.test('a tenant that is put serves at once, is shown without its secrets, and is gone once deleted', async (t) => {
  const made = await start(t)
  const created = await put(made, made.document)
  t.equal(created.status, 201, created.text)
  t.match(created.json, { id: 'initech', managedBy: 'api', version: 1, problems: [] })
  t.equal(created.headers['etag'], '"1"')
  const client = await legacyClient(made.url('default', 'initech'), apiKey)
  const called = await client.request('tools/call', { name: 'up__echo', arguments: { text: 'hello' } })
  t.match(called.json, { result: { content: [{ type: 'text' }] } })
  t.equal(made.upstream.seen.at(-1)?.headers['x-api-key'], canary, 'the secret is in use')

  const shown = await made.call('GET', '/v1/tenants/initech')
  t.match(shown.json, {
    configuration: {
      auth: { keys: [{ name: 'ci', sha256: { secret: true } }] },
      upstreams: { up: { url: made.upstream.url, headers: { 'X-Api-Key': { secret: true } } } }
    }
  })
  for (const path of ['', '/upstreams/up', '/upstreams', '/endpoints/default', '/endpoints'])
    for (const key of [adminKeys.platform, adminKeys.globex, adminKeys.viewer]) {
      const { status, text } = await made.call('GET', `/v1/tenants/initech${path}`, { key })
      t.equal(status, 200, path)
      t.notMatch(text, canary, path)
      t.notMatch(text, apiKey, path)
    }
  const asViewer = await made.call('GET', '/v1/tenants/initech', { key: adminKeys.viewer })
  t.match(asViewer.json, { configuration: null, version: 1 })

  t.equal((await made.call('DELETE', '/v1/tenants/initech')).status, 428)
  t.equal((await made.call('DELETE', '/v1/tenants/initech', { headers: { 'If-Match': '"1"' } })).status, 204)
  t.equal((await made.call('GET', '/v1/tenants/initech')).status, 404)
  const late = await client.request('tools/list')
  t.equal(late.status, 404)
  t.notMatch(JSON.stringify(made.log), canary, 'no secret in the log')
  t.notMatch(JSON.stringify(made.log), apiKey, 'no key in the log')
})

t.test('a change needs the version that it changes; the same thing put again changes nothing', async (t) => {
  const made = await start(t)
  await put(made, made.document)
  t.equal((await put(made, { ...made.document, origins: ['https://a.example'] })).status, 428)
  const stale = await put(
    made,
    { ...made.document, origins: ['https://a.example'] },
    { headers: { 'If-Match': '"7"' } }
  )
  t.equal(stale.status, 412)
  t.equal(stale.headers['etag'], '"1"')
  const bare = await put(made, { ...made.document, origins: [] }, { headers: { 'If-Match': '1' } })
  t.match(bare, { status: 412, json: { detail: /no version in quotes/ } })
  const none = await made.call('PUT', '/v1/tenants/none', { body: made.document, headers: { 'If-Match': '*' } })
  t.match(none, { status: 412, json: { detail: 'There is none yet.', remedy: /send no If-Match/ } })
  const again = await put(made, made.document)
  t.equal(again.status, 200)
  t.equal(again.headers['etag'], '"1"')
  t.equal((await put(made, made.document, { headers: { 'If-None-Match': '*' } })).status, 412, 'somebody was first')
  t.equal((await put(made, made.document, { headers: { 'If-Match': '"7"' } })).status, 200, 'it is so already')
  const other = { ...made.document, origins: ['https://a.example'] }
  t.equal((await put(made, other, { headers: { 'If-None-Match': '*' } })).status, 412)
  const changed = await put(made, other, { headers: { 'If-Match': '"1"' } })
  t.equal(changed.status, 200)
  t.equal(changed.headers['etag'], '"2"')
  // What is read can be put back: secrets stay.
  const { configuration } = (await made.call('GET', '/v1/tenants/initech')).json as { configuration: object }
  const back = await put(made, { ...configuration, origins: [] }, { headers: { 'If-Match': '"2"' } })
  t.equal(back.status, 200, back.text)
  const client = await legacyClient(made.url('default', 'initech'), apiKey)
  await client.request('tools/call', { name: 'up__echo', arguments: {} })
  t.equal(made.upstream.seen.at(-1)?.headers['x-api-key'], canary)
})

t.test('a key for one endpoint does not become one for all by an empty list', async (t) => {
  const made = await start(t)
  const endpoints = { default: { upstreams: ['up'] }, x: { upstreams: ['up'] } }
  await put(made, { ...made.document, endpoints })
  const at = '/v1/tenants/initech'
  const only = await made.call('POST', `${at}/keys`, { body: { name: 'only-x', endpoints: ['x'] } })
  const { key } = only.json as { key: string }
  const status = async (endpoint?: string) =>
    (await modernRequest(made.url(endpoint, 'initech'), 'tools/list', {}, { token: key })).status
  t.same([await status('x'), await status()], [200, 401])
  const { configuration } = (await made.call('GET', at)).json as { configuration: { auth: { keys: object[] } } }
  t.match(configuration.auth.keys, [{ name: 'ci' }, { name: 'only-x', endpoints: ['x'] }])
  const emptied = configuration.auth.keys.map((each) => ('endpoints' in each ? { ...each, endpoints: [] } : each))
  const patch = (keys: object[]) => made.call('PATCH', at, { body: { auth: { keys } }, headers: { 'If-Match': '*' } })
  const refused = await patch(emptied)
  t.equal(refused.status, 422)
  t.match(problemsIn(refused), [
    { path: 'auth.keys[1].endpoints', message: 'is empty', suggestion: /for all endpoints/ }
  ])
  t.equal(await status(), 401, 'it is for the one still')
  const none = await made.call('POST', `${at}/keys`, { body: { name: 'none', endpoints: [] } })
  t.equal(none.status, 400)
  t.match(problemsIn(none), [{ path: 'endpoints', message: /is empty/ }])
  const all = await made.call('POST', `${at}/keys`, { body: { name: 'all' } })
  t.match(all.json, { name: 'all', endpoints: undefined }, 'what is for all names none')
  const wide = await patch(configuration.auth.keys.map((each) => ({ ...each, endpoints: undefined })))
  t.equal(wide.status, 200, 'whoever means all leaves the list out')
  t.equal(await status(), 200)
})

t.test('a document of the first version, which wrote empty lists, is read as it was meant', async (t) => {
  const store = `file:${join(t.testdir(), 'gatehouse.db')}`
  const before = await createSqliteStore({ path: store.slice('file:'.length), clock: wallClock, log: quiet })
  const sealer = await createSealer({ store: before, randomBytes, timer: steadyClock.timer, log: quiet })
  const journal = createJournal({ store: before, sealer, log: quiet })
  await journal.pull()
  const key = { name: 'ci', sha256: createHash('sha256').update(apiKey).digest('hex'), scopes: [], endpoints: [] }
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const tree = { auth: { keys: [key] }, upstreams: { up: { url: upstream.url } } }
  const about = { author: { name: 'ops', role: 'platform-admin' }, action: 'tenant.put', at: '2026-07-28T09:00:00Z' }
  await journal.append(about, new Map([[`${documentPrefix}initech`, JSON.stringify({ tree, byPlatform: false })]]))
  sealer.close()
  await before.close()
  const made = await adminGateway(t, { upstreams: {}, store })
  const shown = (await made.call('GET', '/v1/tenants/initech')).json as { configuration: object; problems: unknown }
  t.match(shown, { problems: [], configuration: { auth: { keys: [{ name: 'ci', endpoints: undefined }] } } })
  t.equal((await modernRequest(made.url('default', 'initech'), 'tools/list', {}, { token: apiKey })).status, 200)
  t.equal((await put(made, shown.configuration)).status, 200, 'and put again as it is shown')
})

t.test('a kept secret does not go elsewhere', async (t) => {
  const made = await start(t)
  await put(made, made.document)
  const body = { url: 'http://127.0.0.1:1/elsewhere' }
  const headers = { 'If-Match': '*' }
  const moved = await made.call('PATCH', '/v1/tenants/initech/upstreams/up', { body, headers })
  t.equal(moved.status, 422, moved.text)
  t.match(problemsIn(moved), [{ path: 'upstreams.up.headers.X-Api-Key', message: /leads elsewhere/ }])
  const given = { ...body, headers: { 'X-Api-Key': 'another' } }
  t.equal((await made.call('PATCH', '/v1/tenants/initech/upstreams/up', { body: given, headers })).status, 200)
})

t.test('upstreams and endpoints are put, patched and removed one by one', async (t) => {
  const made = await start(t)
  await put(made, made.document)
  const at = (part: string) => `/v1/tenants/initech/${part}`
  const any = { 'If-Match': '*' }
  const second = { type: 'http', url: made.upstream.url }
  t.equal((await made.call('PUT', at('upstreams/two'), { body: second })).status, 201)
  t.equal((await made.call('PUT', at('upstreams/two'), { body: { ...second, maxCalls: 3 } })).status, 428)
  t.equal((await made.call('PUT', at('endpoints/files'), { body: { upstreams: ['up'] } })).status, 409)
  const both = { upstreams: ['up', 'two'] }
  t.equal((await made.call('PUT', at('endpoints/default'), { body: both })).status, 428, 'it is there by itself')
  t.equal((await made.call('PUT', at('endpoints/default'), { body: both, headers: any })).status, 200)
  t.equal((await made.call('PUT', at('endpoints/other'), { body: both, headers: any })).status, 412)
  const files = await made.call('PUT', at('endpoints/files'), { body: { upstreams: ['up'], prefix: '' } })
  t.equal(files.status, 201, files.text)
  t.match(files.json, { name: 'files', path: '/t/initech/files/mcp', configuration: { prefix: '' } })
  const client = await legacyClient(made.url('files', 'initech'), apiKey)
  t.match((await client.request('tools/call', { name: 'echo', arguments: {} })).json, { result: {} })
  t.equal((await made.call('DELETE', at('upstreams/two'), { headers: any })).status, 422, 'default names it')
  const patch = { type: 'application/merge-patch+json', body: { upstreams: ['up'] } }
  const patched = await made.call('PATCH', at('endpoints/default'), {
    body: patch.body,
    headers: { ...any, 'Content-Type': patch.type }
  })
  t.equal(patched.status, 200, patched.text)
  for (const type of [`${patch.type}; charset=utf-8`, 'application/json; charset="UTF-8"']) {
    const headers = { ...any, 'Content-Type': type }
    t.equal((await made.call('PATCH', at('endpoints/default'), { body: patch.body, headers })).status, 200, type)
  }
  for (const type of ['application/json-patch+json', `${patch.type}; charset=latin1`, `${patch.type}x`]) {
    const headers = { ...any, 'Content-Type': type }
    const answer = await made.call('PATCH', at('endpoints/default'), { body: patch.body, headers })
    t.match(answer, { status: 415, headers: { 'accept-patch': `${patch.type}, application/json` } }, type)
  }
  t.equal((await made.call('DELETE', at('upstreams/two'), { headers: any })).status, 204)
  t.equal((await made.call('GET', at('upstreams/two'))).status, 404)
  const off = await made.call('PATCH', at('upstreams/up'), { body: { disabled: true }, headers: any })
  t.match(off.json, { state: 'disabled', connections: 0 }, off.text)
})

t.test('what does not compile is refused with its place, and nothing is written', async (t) => {
  const made = await start(t)
  const bad = await put(made, {
    auth: {},
    upstreams: { up: { url: 'http://a.example', comand: 1 } },
    endpoints: { default: { upstreams: ['pu'] } }
  })
  t.equal(bad.status, 422)
  t.match(
    problemsIn(bad)
      .map(({ path }) => path)
      .sort(),
    ['endpoints.default.upstreams[0]', 'upstreams.up.comand']
  )
  t.equal((await made.call('GET', '/v1/tenants/initech')).status, 404)
  for (const body of [[], 'x', 1]) t.equal((await put(made, JSON.stringify(body))).status, 400)
  const proto = await put(made, '{"auth":{},"upstreams":{"__proto__":{"url":"http://a.example"}}}')
  t.equal(proto.status, 422, proto.text)
  t.equal((await put(made, { auth: {}, upstreams: {} })).status, 201, 'a tenant that lets nobody in yet')
})

t.test('what the file says is changed in the file', async (t) => {
  const made = await start(t)
  for (const [method, path, body] of [
    ['PUT', '/v1/tenants/acme', { auth: {}, upstreams: {} }],
    ['PATCH', '/v1/tenants/acme', {}],
    ['DELETE', '/v1/tenants/acme', undefined],
    ['PUT', '/v1/tenants/acme/upstreams/x', { url: 'http://a.example' }],
    ['DELETE', '/v1/tenants/acme/endpoints/default', undefined]
  ] as const) {
    const answer = await made.call(method, path, { body, headers: { 'If-Match': '*' } })
    t.match(answer.json, { status: 409, type: 'urn:gatehouse:problem:managed_by_file' }, `${method} ${path}`)
  }
  t.match((await made.call('GET', '/v1/tenants/acme')).json, { managedBy: 'file', version: null, configuration: null })
})

t.test('a tenant-admin changes its own tenant, and reaches nothing beyond it', async (t) => {
  const made = await start(t, { allowedCommands: [process.execPath] })
  const key = adminKeys.globex
  const any = { 'If-Match': '*' }
  t.equal((await put(made, made.document, { key })).status, 403, 'makes none')
  await put(made, made.document)
  const change = (body: object) => made.call('PATCH', '/v1/tenants/initech', { key, body, headers: any })
  t.equal((await change({ origins: ['https://a.example'] })).status, 200)
  t.equal((await change({ upstreams: { new: { url: made.upstream.url } } })).status, 200, 'an allowed host')
  for (const [what, upstreams] of Object.entries({
    'a host that is not allowed': { bad: { url: 'http://169.254.169.254/latest' } },
    'a program': { bad: { command: process.execPath, args: ['-e', ''] } },
    'a variable of the gateway': { bad: { url: made.upstream.url, headers: { A: '${PATH}' } } },
    'a file of the gateway': { bad: { url: made.upstream.url, headers: { A: '${file:/etc/hostname}' } } }
  }))
    t.equal((await change({ upstreams })).status, 403, what)
  const issuer = { issuers: [{ issuer: 'https://idp.elsewhere.example' }] }
  t.equal((await change({ auth: issuer })).status, 403, 'an issuer')
  const front = (host: string) => ({
    auth: { login: { provider: { issuer: `http://${host}/idp`, clientId: 'a', clientSecret: 'b' } } }
  })
  t.equal((await change(front('localhost:1'))).status, 403, 'the provider of a login front')
  t.not((await change(front('127.0.0.1:1'))).status, 403, 'or at an allowed host')
  t.equal((await change({ upstreams: { good: { url: made.upstream.url, headers: { A: '$${PATH}' } } } })).status, 200)
  for (const path of ['/v1/tenants/acme', '/v1/tenants/nobody']) {
    const foreign = await made.call('PUT', path, { key, body: made.document })
    t.match(foreign.json, { status: 404, detail: /tenant/ })
  }
  t.equal((await made.call('DELETE', '/v1/tenants/initech', { key, headers: any })).status, 403)
  t.equal((await put(made, {}, { key: adminKeys.viewer })).status, 403)
  // A platform admin may do all of it, and then nobody else may change the document.
  const mine = await made.call('PATCH', '/v1/tenants/initech', {
    body: { upstreams: { own: { url: made.upstream.url, headers: { A: '${HOME:-x}', B: '${HOME}' } } } },
    headers: any
  })
  t.equal(mine.status, 200, mine.text)
  t.match(mine.json, { configuration: { upstreams: { own: { headers: { A: { secret: true }, B: '${HOME}' } } } } })
  t.equal((await change({ upstreams: { good: null } })).status, 403)
  t.equal((await change({ origins: [] })).status, 200, 'what has nothing to do with it')
})

t.test('only programs of the list are started, also where a document is older than the list', async (t) => {
  const made = await start(t, { allowedCommands: [process.execPath] })
  const child = (command: string, more: object = {}) => ({ auth: {}, upstreams: { child: { command, ...more } } })
  t.equal((await put(made, child('/bin/sh'))).status, 422)
  t.equal((await put(made, child(process.execPath, { env: { PATH: '/tmp' } }))).status, 422)
  t.equal((await put(made, child(process.execPath, { cwd: 'x' }))).status, 422)
  const any = { 'If-Match': '*' }
  t.equal((await put(made, child(process.execPath, { args: ['-e', ''] }))).status, 201)
  t.match((await made.call('GET', '/v1/tenants/initech')).json, { upstreams: 1, problems: [] })
  made.reload(configOf({ upstreams: {}, top: { admin: adminSection } }))
  t.match((await made.call('GET', '/v1/tenants/initech')).json, {
    upstreams: 0,
    problems: [{ path: 'upstreams.child.command' }]
  })
  const patch = { body: { origins: ['https://a.example'] }, headers: any }
  t.equal((await made.call('PATCH', '/v1/tenants/initech', patch)).status, 422)
})

t.test('a program that the list names by its digest is started only as long as it is that file', async (t) => {
  const folder = t.testdir()
  const command = join(folder, 'server')
  const write = (more = ''): void => {
    const script = new URL('../kit/stdio-server.ts', import.meta.url).pathname
    writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${script}' '{}'\n${more}`, { mode: 0o755 })
  }
  write()
  const sha256 = createHash('sha256').update(readFileSync(command)).digest('hex').toUpperCase()
  const made = await start(t, { allowedCommands: [{ command, sha256 }] })
  const auth = { keys: [{ name: 'ci', key: apiKey }] }
  const child = { command, isolation: 'session' }
  t.equal((await put(made, { auth, upstreams: { child } })).status, 201)
  const pid = async () => {
    const client = await legacyClient(made.url('default', 'initech'), apiKey)
    return (await client.request('tools/call', { name: 'child__pid', arguments: {} })).json as object
  }
  t.match(await pid(), { result: { content: [{ type: 'text' }] } })
  write('# changed')
  t.match(await pid(), { error: { data: { reason: 'upstream_unavailable' } } })
  t.ok(
    made.log.some((line) => JSON.stringify(line).includes('not the program whose digest')),
    'the log says why'
  )
  write()
  await until('it starts again once it is back', async () => 'result' in (await pid()))
})

t.test('sessions learn of a changed endpoint, and end with their tenant', async (t) => {
  const made = await start(t)
  await put(made, made.document)
  const client = await legacyClient(made.url('default', 'initech'), apiKey)
  const stream = await client.listen()
  await until('its lists are known', async () => {
    const { json } = await client.request('tools/list')
    return json.result?.tools?.length > 0
  })
  const any = { 'If-Match': '*' }
  const body = { endpoints: { default: { upstreams: ['up'], deny: { tools: ['up/echo'] } } } }
  t.equal((await made.call('PATCH', '/v1/tenants/initech', { body, headers: any })).status, 200)
  await stream.next(({ method }: { method?: string }) => method === 'notifications/tools/list_changed')
  const { json } = await client.request('tools/list')
  t.notOk(json.result.tools.some(({ name }: { name: string }) => name === 'up__echo'))
  await made.call('DELETE', '/v1/tenants/initech', { headers: any })
  t.equal((await client.request('tools/list')).status, 404)
  t.equal((await put(made, made.document)).status, 201)
  const inherited = await client.request('tools/list')
  t.equal(inherited.status, 404, 'a tenant of the same name has none of its sessions')
  const again = await legacyClient(made.url('default', 'initech'), apiKey)
  t.match((await again.request('ping')).json, { result: {} })
})

t.test(
  'secrets that the gateway has at identity providers are written, and never read or sent elsewhere',
  async (t) => {
    const made = await start(t)
    const auth = (issuer: string, clientSecret: unknown) => ({
      issuers: [{ issuer, introspection: { clientId: 'gateway', clientSecret } }]
    })
    const created = await put(made, { ...made.document, auth: auth('https://idp.example', 'a-secret-of-the-gateway') })
    t.equal(created.status, 201, created.text)
    const shown = await made.call('GET', '/v1/tenants/initech')
    t.notMatch(shown.text, 'a-secret-of-the-gateway')
    t.match(shown.json, { configuration: { auth: auth('https://idp.example', { secret: true }) } })
    const change = (body: object) =>
      made.call('PATCH', '/v1/tenants/initech', { body: { auth: body }, headers: { 'If-Match': '*' } })
    t.equal((await change(auth('https://idp.example', { secret: true }))).status, 200, 'kept')
    t.equal((await change(auth('https://other.example', { secret: true }))).status, 422, 'but not for another issuer')
    t.equal((await change(auth('https://other.example', 'another-secret'))).status, 200)
  }
)

t.test(
  'the secrets of a client at the authorization server of an upstream are kept for that server alone',
  async (t) => {
    const made = await start(t)
    const upstreams = (tokenUrl: string, clientSecret: unknown) => ({
      up: { url: made.upstream.url, auth: { type: 'clientCredentials', clientId: 'robot', clientSecret, tokenUrl } }
    })
    const document = { ...made.document, upstreams: upstreams('https://idp.example/token', 'a-secret-of-the-robot') }
    const created = await put(made, document)
    t.equal(created.status, 201, created.text)
    const shown = await made.call('GET', '/v1/tenants/initech')
    t.notMatch(shown.text, 'a-secret-of-the-robot')
    const change = (tokenUrl: string, secret: unknown) =>
      made.call('PATCH', '/v1/tenants/initech', {
        body: { upstreams: upstreams(tokenUrl, secret) },
        headers: { 'If-Match': '*' }
      })
    t.equal((await change('https://idp.example/token', { secret: true })).status, 200, 'kept')
    t.equal((await change('https://evil.example/token', { secret: true })).status, 422, 'but not for another server')
    t.equal((await change('https://evil.example/token', 'another-secret')).status, 200)
  }
)
