// The commands over the admin API, as somebody types them, at a real gateway.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { key } from '../kit/gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startUpstream } from '../kit/upstream.ts'
import { cli } from './kit.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const made = await adminGateway(t, {
  upstreams: {
    up: { url: upstream.url },
    gone: { url: 'http://127.0.0.1:1/mcp' },
    broken: {
      command: process.execPath,
      args: [join(import.meta.dirname, '../kit/stdio-server.ts'), JSON.stringify({ die: 3 })]
    }
  },
  endpoints: { default: { upstreams: ['up'] }, all: { upstreams: ['up', 'gone', 'broken'] } }
})
const env = { GATEHOUSE_ADMIN_URL: made.adminUrl, GATEHOUSE_ADMIN_KEY: adminKeys.platform }
const admin = (...argv: string[]) => cli(argv, env)

t.test('status says which upstream is away, since when and why, and exits with 1', async (t) => {
  const client = await legacyClient(made.url('all'), key)
  await client.request('tools/list')
  const { code, out } = await admin('status')
  t.equal(code, 1)
  t.match(out, /^TENANT +UPSTREAM +TRANSPORT +STATE +ERA +REVISION +TOOLS +CONNECTIONS +PROCESSES +CALLS +NEXT TRY/)
  t.match(out, /acme +up +streamable-http +connected +legacy +2025-11-25 +\d+ /)
  t.match(out, /acme +gone +http +away/)
  t.match(out, /acme\/broken is away since [^]*does not say why, run its command[^]*cannot start: bad configuration/)
  const { out: problems } = await admin('problems')
  const inOneLine = problems.replaceAll(/\n {2}/g, ' ')
  t.match(inOneLine, /^fault: .*does not say why, run its command.*last stderr line: cannot start: bad.*reconnect\.$/m)
  t.ok(
    problems.split('\n').every((line) => line.length <= 100),
    'wrapped'
  )
  const { out: json } = await admin('status', '--tenant', 'acme', '--json')
  t.equal((JSON.parse(json) as unknown[]).length, 3)
  t.match(await admin('status', '--tenant', 'globex'), { code: 0, out: 'none\n' })
})

t.test('tenants, upstreams, endpoints and keys are made, shown, changed and removed', async (t) => {
  const folder = t.testdir({
    'tenant.yaml': 'auth: {}\nupstreams: {}\n',
    'up.yaml': `url: ${upstream.url}\n`,
    'endpoint.json': '{ "upstreams": ["files"], "prefix": "" }',
    'bad.yaml': 'comand: x\n'
  })
  const at = (name: string): string => join(folder, name)
  t.match(await admin('tenant', 'put', 'initech', at('tenant.yaml')), { code: 0, out: /^id: initech/ })
  t.match(await admin('upstream', 'put', 'initech', 'files', at('up.yaml')), { code: 0, out: /^name: files/ })
  t.match(await admin('upstream', 'put', 'initech', 'files', at('up.yaml')), { code: 0 }, 'again: its version is known')
  const bad = await admin('upstream', 'put', 'initech', 'files', at('bad.yaml'))
  t.match(bad, { code: 1, out: '', err: /comand: is not a known key\. Did you mean "command"\?/ })
  t.match(await admin('endpoint', 'put', 'initech', 'flat', at('endpoint.json')), { code: 1, err: /default first/ })
  t.match(await admin('endpoint', 'put', 'initech', 'default', at('endpoint.json')), { code: 0 })
  t.match(await admin('endpoint', 'put', 'initech', 'flat', at('endpoint.json')), { code: 0, out: /^name: flat/ })
  t.match(await admin('endpoint', 'list', 'initech'), { code: 0, out: /flat +\/t\/initech\/flat\/mcp +files/ })
  const { out: newKey } = await admin('key', 'new', 'initech', 'ci')
  t.match(newKey, /^gatehouse_\S+\n$/)
  const client = await legacyClient(made.url('flat', 'initech'), newKey.trim())
  t.match((await client.request('tools/list')).json, { result: { tools: Array } })
  t.match(await admin('session', 'list', 'initech'), { code: 0, out: /flat +ci/ })
  t.match(await admin('catalog', 'initech', 'flat'), { code: 0, out: /^NAME[^]*echo/ })
  t.match(await admin('key', 'list', 'initech'), { code: 0, out: /^NAME +SCOPES\nci +mcp\n$/ })
  t.match(await admin('key', 'revoke', 'initech', 'ci'), { code: 0, out: 'revoked\n' })
  t.match(await admin('versions'), { code: 0, out: /key\.revoke/ })
  const { out: before } = await admin('versions', '--json')
  const [{ version } = { version: 0 }] = JSON.parse(before) as Array<{ version: number }>
  t.match(await admin('upstream', 'delete', 'initech', 'files'), { code: 1, err: /flat/ }, 'an endpoint has it')
  t.match(await admin('endpoint', 'delete', 'initech', 'flat'), { code: 0, out: 'removed\n' })
  t.match(await admin('rollback', String(version), '--tenant', 'initech'), { code: 0, out: /tenants:\n.*initech/ })
  t.match(await admin('endpoint', 'get', 'initech', 'flat'), { code: 0, out: /^name: flat/ })
  t.match(await admin('tenant', 'delete', 'initech'), { code: 0, out: 'removed\n' })
  t.match(await admin('tenant', 'get', 'initech'), { code: 1, err: /no/i })
})

t.test('plan, apply and its version', async (t) => {
  const change = join(t.testdir({ 'c.yaml': 'tenants:\n  hooli: { auth: {}, upstreams: {} }\n' }), 'c.yaml')
  const plan = await admin('plan', change)
  t.match(plan, { code: 0, out: /tenant: hooli\n +change: made/ })
  const [, version = ''] = /^version: (\d+)/m.exec(plan.out) ?? []
  t.match(await admin('apply', change, '--version', version), { code: 0, out: /hooli/ })
  const late = await cli(['apply', '-', '--version', version], env, 'tenants: { hooli: null }')
  t.match(late, { code: 1, err: /has changed since/ })
  const piped = await cli(['plan', '-'], env, '{ "tenants": { "hooli": null } }')
  t.match(piped, { code: 0, out: /change: removed/ })
})

t.test('a tool is stopped and let go again', async (t) => {
  const client = await legacyClient(made.url(), key)
  const call = async () => (await client.request('tools/call', { name: 'up__echo', arguments: {} })).json
  t.match(await call(), { result: {} })
  t.match(await admin('kill', 'tool', 'acme', 'up', 'echo'), { code: 0, out: 'stopped\n' })
  t.match(await call(), { error: {} })
  t.match(await admin('kill', 'list', 'acme'), { code: 0, out: /echo/ })
  t.match(await admin('kill', 'tool', 'acme', 'up', 'echo', '--undo'), { code: 0, out: 'taken back\n' })
  t.match(await call(), { result: {} })
})

t.test(
  'an upstream, a principal, a key and a tenant are stopped and let go again, and a session is ended',
  async (t) => {
    const call = () => modernRequest(made.url(), 'tools/call', { name: 'up__echo', arguments: {} }, { token: key })
    for (const target of [
      ['upstream', 'acme', 'up'],
      ['principal', 'acme', 'urn:gatehouse:key', 'test'],
      ['key', 'acme', 'test'],
      ['tenant', 'acme']
    ]) {
      const named = target.join(' ')
      t.match((await call()).json, { result: {} }, `${named}: before`)
      t.match(await admin('kill', ...target), { code: 0, out: 'stopped\n' }, named)
      t.match((await call()).json, { error: {} }, `${named}: stopped`)
      t.match(await admin('kill', ...target, '--undo'), { code: 0, out: 'taken back\n' }, named)
    }
    t.match((await call()).json, { result: {} }, 'after all of them')
    const client = await legacyClient(made.url(), key)
    t.match((await client.request('ping')).json, { result: {} })
    const { out } = await admin('session', 'list', 'acme', '--json')
    for (const { id } of JSON.parse(out) as Array<{ id: string }>)
      t.match(await admin('session', 'end', 'acme', id), { code: 0 }, id)
    t.equal((await client.request('ping')).status, 404)
    t.match(await admin('session', 'end', 'acme', 'nobody'), { code: 1, err: /session/ })
  }
)

t.test('whoever stops an upstream reads what stops with it, and what leads there and goes on', async (t) => {
  const { url } = upstream
  const body = { auth: {}, upstreams: { up: { url }, beside: { url } } }
  t.equal((await made.call('PUT', '/v1/tenants/twins', { body })).status, 201)
  const goesOn = 'not stopped, though they lead to the same server: beside\n'
  t.match(await admin('kill', 'upstream', 'twins', 'up'), { code: 0, out: `stopped\n${goesOn}` })
  t.equal((await made.call('PUT', '/v1/tenants/twins/upstreams/again', { body: { url } })).status, 201)
  t.match(await admin('kill', 'upstream', 'twins', 'up'), {
    code: 0,
    out: `stopped\nstopped with it, as other names of the same: again\n${goesOn}`
  })
  const data = await admin('kill', 'upstream', 'twins', 'up', '--json')
  t.match(JSON.parse(data.out), { kind: 'upstream', upstream: 'up', also: ['again'], besides: ['beside'] })
  t.match(await admin('kill', 'list', 'twins'), { code: 0, out: /ALSO +BESIDES[^]*again +beside/ })
  t.same(await admin('kill', 'upstream', 'twins', 'up', '--undo'), { code: 0, out: 'taken back\n', err: '' })
  t.equal((await made.call('DELETE', '/v1/tenants/twins', { headers: { 'If-Match': '*' } })).status, 204)
})

t.test('a gateway explains what it decides now, kill switches and tenants of the API included', async (t) => {
  const policy = { default: 'allow', rules: [{ name: 'no-pid', effect: 'deny', what: { names: ['pid'] } }] }
  const body = {
    auth: { keys: [{ name: 'ci', key: 'gh_key_of_ci_0123456789' }] },
    upstreams: { up: { url: upstream.url } }
  }
  t.equal((await made.call('PUT', '/v1/tenants/umbrella', { body: { ...body, policy } })).status, 201)
  const explain = (...rest: string[]) => admin('explain', '--endpoint', 'umbrella', ...rest)
  const denied = await explain('--tool', 'up/pid', '--caller', '{ key: ci }')
  t.match(denied, { code: 0, out: /^Denied[^]*\n {2}\+ no-pid \(deny, tenant\)/ })
  const { out } = await admin('explain', '--endpoint', '/t/umbrella/mcp', '--tool', 'up/echo', '--json')
  t.match(JSON.parse(out), { outcome: 'allowed', rules: [{ name: 'no-pid', applies: false }] })
  // Nobody has listed its tools yet.
  t.match(await admin('kill', 'tool', 'umbrella', 'up', 'echo'), { code: 1, err: /--force/ })
  t.match(await admin('kill', 'tool', 'umbrella', 'up', 'echo', '--force'), { code: 0, out: 'stopped\n' })
  t.match(await explain('--tool', 'up/echo'), { code: 0, out: /^Denied/ }, 'it is stopped')
  t.match(await admin('explain', '--endpoint', 'nobody', '--tool', 'up/echo'), { code: 1, err: /no such/i })
  t.match(await explain('--tool', 'down/echo'), { code: 1, err: /names no upstream/ })
  t.match(await admin('explain', '--endpoint', '/x/y/z', '--tool', 'up/echo'), { code: 2, err: /names no endpoint/ })
  t.match(await explain('--tool', 'up/echo', '--admin', 'nowhere'), { code: 2, err: /takes the URL of the admin API/ })
  t.equal((await made.call('DELETE', '/v1/tenants/umbrella', { headers: { 'If-Match': '*' } })).status, 204)
})

t.test('what is missing or refused is said, with what to do', async (t) => {
  t.match(await cli(['tenant', 'list'], {}), { code: 2, err: /--admin-key-file FILE, or GATEHOUSE_ADMIN_KEY/ })
  t.match(await cli(['tenant', 'list', '--admin-key-file', '/nowhere'], env), {
    code: 2,
    err: /^\/nowhere cannot be read/
  })
  const wrong = { ...env, GATEHOUSE_ADMIN_KEY: 'gha_wrong' }
  t.match(await cli(['tenant', 'list'], wrong), { code: 1, err: /admin key/ })
  const closed = { ...env, GATEHOUSE_ADMIN_URL: 'http://127.0.0.1:1' }
  t.match(await cli(['status'], closed), {
    code: 1,
    err: /Is the gateway running, and is this its admin API\? A gateway has one where .* has "admin"/
  })
  const other = { ...env, GATEHOUSE_ADMIN_URL: made.publicUrl }
  t.match(await cli(['status'], other), { code: 1, err: /not as the admin API does/ })
  const file = join(t.testdir(), 'x.yaml')
  writeFileSync(file, 'a: [')
  t.match(await admin('apply', file), { code: 2, err: new RegExp(`^${file} is neither YAML nor JSON`) })
  writeFileSync(file, 'tenants: { one: { upstreams: { up: { comand: x } } }, two: { nope: 1 } }')
  const { code, err } = await admin('plan', file)
  t.equal(code, 1)
  for (const path of ['one.upstreams.up.comand', 'two.nope'])
    t.match(err, new RegExp(`\\n  ${file}, ${path}: is not a known key`), 'the file first')
  t.match(await admin('plan', `${file}.not`), { code: 2, err: /x\.yaml\.not: there is no such file/ })
  t.match(await admin('rollback', 'last'), { code: 2, err: /The version is a number/ })
})
