// Tenants from a file into the store, from the store into a file, and back: what did not change is not changed, secrets
// are never told, and a tenant moves from one to the other without a gap.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf, key as apiKey } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'
import { cli } from './kit.ts'

const canary = 'CANARYq7Xw2Zr9Lk4Vb8'
const ownKey = 'gh_key_of_initech_0123456789'

async function start(t: Parameters<typeof adminGateway>[0] & { testdir(): string }) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const folder = t.testdir()
  const up = { type: 'http', url: upstream.url, headers: { 'X-Api-Key': canary } }
  const top = { admin: { ...adminSection, allowedCommands: [process.execPath] } }
  const options = { upstreams: { up }, top }
  const made = await adminGateway(t, options)
  const env = { GATEHOUSE_ADMIN_URL: made.adminUrl, GATEHOUSE_ADMIN_KEY: adminKeys.platform }
  const file = (name: string, content: unknown): string => {
    const path = join(folder, name)
    writeFileSync(path, typeof content === 'string' ? content : stringify(content))
    return path
  }
  const initech = {
    auth: { keys: [{ name: 'ci', key: ownKey }], requiredScopes: [] },
    upstreams: {
      up,
      child: { command: process.execPath, args: ['-e', ''], cwd: './here', env: { A: '${file:./secret}' } }
    },
    policy: { default: 'allow', rules: [{ name: 'r', effect: 'deny', what: { names: ['delete_*'] } }] }
  }
  file('secret', canary)
  const run = (...argv: string[]) => cli(argv, env)
  return { ...made, run, file, folder, up, options, initech }
}

t.test('what is wrong with a file is told with its name in front', async (t) => {
  const { run, file, up } = await start(t)
  t.match(await run('import', '--into-store', '/nowhere/missing.yaml'), {
    code: 2,
    err: /^\/nowhere\/missing\.yaml: there is no such file/
  })
  const taken = file('taken.yaml', { auth: {}, upstreams: { up } })
  const refused = await run('tenant', 'put', 'acme', taken)
  t.equal(refused.code, 1)
  t.ok(refused.err.startsWith(`gatehouse: ${taken}: `), refused.err)
  const ofKey = await cli(['tenant', 'put', 'acme', taken], { GATEHOUSE_ADMIN_KEY: 'gha_x' })
  t.notMatch(ofKey.err, taken, 'what is no fault of the file does not name it')
})

t.test(
  'what is imported serves, what is exported tells no secret, and imported again it changes nothing',
  async (t) => {
    const { run, file, folder, initech, url, call } = await start(t)
    const source = file('gatehouse.yaml', { tenants: { initech, hooli: { auth: {}, upstreams: {} } } })
    const dry = await run('import', source, '--into-store', '--dry-run')
    t.match(dry, { code: 0, out: /initech +made[^]*2 tenants would change/ }, dry.err)
    t.equal((await call('GET', '/v1/tenants/initech')).status, 404)
    const imported = await run('import', source, '--into-store')
    t.match(imported, { code: 0, out: /2 tenants imported/ }, imported.err)
    const client = await legacyClient(url('default', 'initech'), ownKey)
    t.match((await client.request('ping')).json, { result: {} })
    t.equal((await run('import', source, '--into-store')).out, 'Everything is so already.\n', 'the same file again')
    const exported = await run('export')
    t.equal(exported.code, 0, exported.err)
    t.match(exported.err, /acme stands in the configuration file/)
    t.notMatch(exported.out, new RegExp(`${canary}|${ownKey}`))
    const { tenants } = parse(exported.out) as { tenants: Record<string, unknown> }
    t.match(tenants['initech'], {
      auth: { keys: [{ name: 'ci', sha256: { secret: true } }] },
      upstreams: {
        up: { headers: { 'X-Api-Key': { secret: true } } },
        child: { cwd: join(folder, 'here'), env: { A: `\${file:${join(folder, 'secret')}}` } }
      },
      policy: initech.policy
    })
    const { version } = (await call('GET', '/v1/tenants/initech')).json as { version: number }
    const again = await run('import', file('exported.yaml', exported.out), '--into-store', '--prune')
    t.equal(again.out, 'Everything is so already.\n', again.err)
    t.match((await call('GET', '/v1/tenants/initech')).json, { version }, 'no new version')
    t.match((await client.request('ping')).json, { result: {} }, 'its session goes on')
    const pruned = await run('import', file('less.yaml', { tenants: { initech } }), '--into-store', '--prune')
    t.match(pruned, { code: 0, out: /hooli +removed[^]*1 tenant imported/ }, pruned.err)
  }
)

t.test('what is exported with references is a configuration file, once its variables are set', async (t) => {
  const { run, file, initech, call } = await start(t)
  const { child: _child, ...upstreams } = initech.upstreams
  await run('import', file('a.yaml', { tenants: { initech: { ...initech, upstreams } } }), '--into-store')
  const { out } = await run('export', '--tenant', 'initech', '--references')
  t.match(out, /^# Secrets are never read[^]*# INITECH_UP_X_API_KEY\n/)
  t.match(parse(out), {
    tenants: { initech: { upstreams: { up: { headers: { 'X-Api-Key': '${INITECH_UP_X_API_KEY}' } } } } }
  })
  const checked = await run('check', file('whole.yaml', out))
  t.match(checked.out + checked.err, /INITECH_UP_X_API_KEY/, 'it says what is not set')
  t.match(checked.out + checked.err, /INITECH_KEY_CI_SHA256/)
  t.notMatch(checked.out + checked.err, /is not a known key|must be/)
  t.equal((await call('DELETE', '/v1/tenants/initech', { headers: { 'If-Match': '*' } })).status, 204)
  const elsewhere = await run('import', file('hidden.yaml', out.replaceAll(/\$\{[A-Z_0-9]+\}/g, 'x')), '--into-store')
  t.equal(elsewhere.code, 1, 'and what is no secret any more is judged as any other')
})

t.test('an export with references tells which tenants a file cannot have as they are', async (t) => {
  const { run, file } = await start(t)
  const keys = [{ name: 'ci', key: ownKey }]
  const source = {
    tenants: {
      initech: { auth: { keys }, upstreams: {} },
      hooli: { auth: {}, upstreams: {} },
      open: { auth: 'none', upstreams: {} }
    }
  }
  t.equal((await run('import', file('a.yaml', source), '--into-store')).code, 0)
  const exported = await run('export', '--references')
  t.match(exported.err, /^note: hooli lets nobody in: .* an issuer or key there\.$/m)
  t.notMatch(exported.err, /initech|open/)
  t.notMatch((await run('export')).err, 'nobody', 'what goes back into a store may be so')
  const whole = exported.out.replaceAll(/\$\{[A-Z_0-9]+\}/g, 'a'.repeat(64))
  const checked = await run('check', file('whole.yaml', whole))
  t.match(checked, { code: 1, out: /^1 problem|hooli\.auth.*lets nobody in/m })
  t.match(await run('check', file('mended.yaml', whole.replace('auth: {}', 'auth: none'))), { code: 0 })
})

t.test('a tenant moves from the file into the store without losing a session, and back', async (t) => {
  const { run, file, up, options, url, reload, call } = await start(t)
  const acme = { auth: { keys: [{ name: 'test', key: apiKey }] }, upstreams: { up } }
  const client = await legacyClient(url(), apiKey)
  const echo = async () => (await client.request('tools/call', { name: 'up__echo', arguments: {} })).json
  t.match(await echo(), { result: {} })
  const source = file('gatehouse.yaml', { tenants: { acme } })
  const refused = await run('import', source, '--into-store')
  t.match(refused, { code: 1, err: /acme stands in the configuration file/ })
  const behind = await run('import', source, '--into-store', '--behind-file')
  t.match(behind, { code: 0, out: /1 tenant imported/ }, behind.err)
  t.match((await call('GET', '/v1/tenants/acme')).json, { managedBy: 'file' }, 'the file still has it')
  const config = configOf(options) as { tenants: object }
  reload({ ...config, tenants: {} })
  t.match((await call('GET', '/v1/tenants/acme')).json, { managedBy: 'api', upstreams: 1 })
  t.match(await echo(), { result: {} }, 'the session goes on')
  reload(config)
  t.match((await call('GET', '/v1/tenants/acme')).json, { managedBy: 'file' })
  t.match(await echo(), { result: {} })
  const asAcme = { key: adminKeys.acme, body: { tenants: { acme: { auth: {}, upstreams: {} } }, behindFile: true } }
  t.match((await call('POST', '/v1/apply', asAcme)).json, { status: 409 }, 'only a platform-admin does so')
})

t.test('a file that cannot be used is refused by its places, and nothing of it is imported', async (t) => {
  const { run, file, call } = await start(t)
  const cases = [
    ['tenants: [', /cannot be used/],
    ['mcpServers: {}', /has no "tenants"/],
    ['tenants:\n  a: &a { b: *a }', /nested deeper/],
    ['tenants:\n  a: !!js/function x', /has a tag/],
    [
      'tenants:\n  good: { auth: {}, upstreams: {} }\n  bad: { auth: {}, upstreams: { x: { comand: y } } }',
      /bad\.upstreams/
    ]
  ] as const
  for (const [content, says] of cases) {
    const { code, err } = await run('import', file('bad.yaml', content), '--into-store')
    t.ok(code > 0, content)
    t.match(err, says)
  }
  t.equal((await call('GET', '/v1/tenants/good')).status, 404)
})
