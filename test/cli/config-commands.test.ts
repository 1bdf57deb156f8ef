import t from 'tap'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { runCheck } from '../../src/cli/check.ts'
import { configJsonSchema, runImport } from '../../src/cli/offline.ts'
import type { Io } from '../../src/cli/commands/command.ts'
import { compileConfig } from '../../src/config/load.ts'
import { cli } from './kit.ts'

function collected() {
  const out: string[] = []
  const err: string[] = []
  return {
    stdout: { write: (text: string) => out.push(text) },
    stderr: { write: (text: string) => err.push(text) },
    out: () => out.join(''),
    err: () => err.join('')
  }
}

type Collected = ReturnType<typeof collected>

const check = (file: string, { stdout, stderr }: Collected, env: NodeJS.ProcessEnv = {}, connects = false) =>
  runCheck(file, { connects }, { env, version: '1', stdout, stderr } as unknown as Io)

t.test('check says what a valid configuration holds', async (t) => {
  const file = join(
    t.testdir({
      'c.yaml':
        'tenants:\n  a:\n    auth: none\n    upstreams: { x: { command: y }, z: { url: "${URL}" } }\n    ' +
        'endpoints: { default: { upstreams: [x, z] }, one: { upstreams: [x] } }\n'
    }),
    'c.yaml'
  )
  const io = collected()
  t.equal(await check(file, io, { URL: 'https://z.example' }), 0)
  t.equal(io.out(), `${file} is valid: 1 tenant, 2 upstreams, 2 endpoints\n  /t/a/mcp\n  /t/a/one/mcp\n`)
  t.equal(io.err(), '')
})

t.test('check says that few hosts can do what a tenant requires', async (t) => {
  const checked = async (dpop: string): Promise<string> => {
    const auth = `auth: { dpop: ${dpop}, issuers: [{ issuer: https://idp.example.com }] }`
    const text = `publicUrl: https://mcp.example.com\ntenants:\n  acme:\n    ${auth}\n    upstreams: {}\n`
    const io = collected()
    t.equal(await check(join(t.testdir({ 'c.yaml': text }), 'c.yaml'), io, {}), 0)
    return io.out()
  }
  t.match(await checked('required'), /note: acme takes tokens .*DPoP only.*Claude Code, .*none is known to/)
  t.notMatch(await checked('accepted'), 'DPoP')
})

t.test('check says which scopes nobody can get, and which keys open nothing', async (t) => {
  const login = { scopes: ['mcp'], provider: { issuer: 'https://idp.example.com', clientId: 'a', clientSecret: 'b' } }
  const keys = [{ name: 'ci', key: 'q7Xw2Zr9Lk4Vb8Nt', scopes: ['mcp', 'pid'], endpoints: ['default'] }]
  const rule = { name: 'writers', effect: 'requires', what: { names: ['w*'] }, scopes: ['write'] }
  async function said(more: { auth?: object; keys?: object[] } = {}): Promise<string> {
    const acme = {
      auth: { login, keys: more.keys ?? keys, ...more.auth },
      upstreams: { a: { url: 'https://a.example/mcp', requires: { scopes: ['up'] } } },
      policy: { rules: [rule], default: 'allow' },
      endpoints: {
        default: { upstreams: ['a'], tools: { 'a/pid': { requires: { scopes: ['pid', 'tool'] } } } },
        support: { upstreams: ['a'], requires: { scopes: ['support'] } }
      }
    }
    const config = { publicUrl: 'https://mcp.example.com', tenants: { acme } }
    const io = collected()
    t.equal(await check(join(t.testdir({ 'c.json': JSON.stringify(config) }), 'c.json'), io), 0, io.out())
    return io.out()
  }
  const all = await said()
  for (const scope of ['support', 'up', 'write', 'tool'])
    t.match(all, `note: nobody can get the scope ${scope} at acme, which is required`)
  t.notMatch(all, /the scope (mcp|pid) /)
  t.match(all, 'the endpoint support). Add it to auth.login.scopes')
  t.notMatch(all, 'the API key')
  t.notMatch(await said({ auth: { issuers: [{ issuer: 'https://other.example' }] } }), 'nobody can get')
  const shut = await said({ keys: [{ ...keys[0], scopes: ['mcp'], endpoints: ['support'] }] })
  t.match(shut, 'note: the API key ci of acme lacks scopes that each of its endpoints requires')
})

t.test('check says which secrets may come to others than those they are for', async (t) => {
  async function said(upstream: object, b?: object): Promise<string> {
    const upstreams = { a: upstream, ...(b && { b }) }
    const auth = { issuers: [{ issuer: 'https://idp.example.com' }] }
    const vault = { keys: [{ id: '1', key: Buffer.alloc(32, 1).toString('base64') }] }
    const config = {
      vault,
      publicUrl: 'https://mcp.example.com',
      tenants: { acme: { auth, upstreams } }
    }
    const io = collected()
    t.equal(await check(join(t.testdir({ 'c.json': JSON.stringify(config) }), 'c.json'), io), 0, io.out())
    return io.out()
  }
  const url = 'https://a.example/mcp'
  const client = { clientId: 'c', clientSecret: 'of the client' }
  const machine = { type: 'clientCredentials', ...client }
  const issuer = 'https://as.example.com'
  const exchange = { type: 'tokenExchange', issuer: 'https://idp.example.com', ...client }
  for (const [auth, named] of [
    [machine, { ...machine, tokenUrl: 'https://as.example.com/token' }],
    [
      { type: 'user', ...client },
      { type: 'user', ...client, provider: 'github' }
    ],
    [{ type: 'user', ...client }, { type: 'user' }],
    [
      { ...exchange, identityAssertion: client },
      { ...exchange, identityAssertion: { ...client, issuer } }
    ]
  ]) {
    t.match(await said({ url, auth }), 'note: clientSecret of the upstream a of acme is for the authorization server')
    t.notMatch(await said({ url, auth: named }), 'note:')
  }
  t.notMatch(await said({ url, auth: { ...machine, issuer } }), 'note:')
  const program = { command: 'notes-mcp', auth: { type: 'userSecret', env: 'NOTES_TOKEN' } }
  t.match(
    await said(program),
    /note: what people enter for the upstream a of acme .*\(NOTES_TOKEN\).* those of a of acme\./
  )
  t.match(await said({ ...program, sandbox: 'preferred' }), 'note:')
  t.notMatch(await said({ ...program, sandbox: 'required' }), 'note:')
  t.match(await said({ ...program, sandbox: 'required' }, { command: 'b' }), /\(NOTES_TOKEN\).* those of b of acme\./)
  t.notMatch(await said({ command: 'notes-mcp' }), 'note:')
})

t.test('check says of each directory of a product what is to be set there', async (t) => {
  const [one, other] = ['11111111-2222-3333-4444-555555555555', '66666666-7777-8888-9999-000000000000']
  const issuers = [one, other].map((id) => ({
    provider: 'entra',
    issuer: `https://login.microsoftonline.com/${id}/v2.0`,
    audiences: [id]
  }))
  const config = {
    publicUrl: 'https://mcp.example.com',
    tenants: { acme: { auth: { issuers }, upstreams: { a: { url: 'https://a.example/mcp' } } } }
  }
  const io = collected()
  t.equal(await check(join(t.testdir({ 'c.json': JSON.stringify(config) }), 'c.json'), io), 0)
  t.match(io.out(), `at Microsoft Entra ID, ${issuers[0]?.issuer}, ${issuers[1]?.issuer} (docs/providers/entra.md):`)
})

t.test('check says what an administrator has to set at the provider', async (t) => {
  const config = {
    publicUrl: 'https://mcp.example.com',
    tenants: {
      acme: {
        auth: { issuers: [{ provider: 'keycloak', issuer: 'https://sso.acme.example/realms/acme' }] },
        upstreams: { a: { url: 'https://a.example/mcp' } }
      }
    }
  }
  const folder = t.testdir({ 'c.json': JSON.stringify(config) })
  const io = collected()
  t.equal(await check(join(folder, 'c.json'), io), 0)
  t.match(io.out(), 'acme: at Keycloak, https://sso.acme.example/realms/acme (docs/providers/keycloak.md):')
  t.match(io.out(), /2\. .*Audience.*https:\/\/mcp\.example\.com\/t\/acme\/mcp/)
})

t.test('and at the one where people sign in for a login front, which its issuer says', async (t) => {
  async function said(issuer: string): Promise<string> {
    const login = { provider: { issuer, clientId: 'gatehouse', clientSecret: 'at-that-provider' } }
    const acme = { auth: { login }, upstreams: { a: { url: 'https://a.example/mcp' } } }
    const config = { publicUrl: 'https://mcp.example.com', tenants: { acme } }
    const io = collected()
    t.equal(await check(join(t.testdir({ 'c.json': JSON.stringify(config) }), 'c.json'), io), 0)
    return io.out()
  }
  const redirect = 'https://mcp.example.com/login/acme/callback'
  const google = await said('https://accounts.google.com')
  t.match(google, 'at Google, https://accounts.google.com (docs/providers/google.md#behind-the-login-front):')
  t.match(google, redirect)
  t.match(google, 'asks it for: openid profile email, access_type=offline, prompt=consent\n')
  const okta = await said('https://acme.okta.com')
  t.match(okta, 'at Okta, https://acme.okta.com')
  t.match(okta, `${redirect} and the sign-out redirect URI https://mcp.example.com/login/acme/session/end/success`)
  t.match(okta, 'asks it for: openid profile email offline_access\n')
  t.match(await said('https://idp.example.com'), 'at the provider of its people, https://idp.example.com')
})

t.test('check tells every problem at once, each on its line', async (t) => {
  const file = join(
    t.testdir({
      'c.yaml': 'tenants:\n  a:\n    auth: none\n    upstreams:\n      x: { comand: y }\n      z: { url: "${URL}" }\n'
    }),
    'c.yaml'
  )
  const io = collected()
  t.equal(await check(file, io), 1)
  t.equal(
    io.out(),
    [
      `${file} line 5, tenants.a.upstreams.x.comand: is not a known key. Did you mean "command"?`,
      `${file} line 6, tenants.a.upstreams.z.url: needs the environment variable URL, which is not set. Set it, or give ` +
        'a default as in ${URL:-value}.',
      `2 problems in ${file}`,
      ''
    ].join('\n')
  )
  t.equal(io.err(), '')
})

t.test('check of a file that is not there is one problem', async (t) => {
  const io = collected()
  t.equal(await check('/nowhere/c.yaml', io), 1)
  t.equal(io.out(), '/nowhere/c.yaml: there is no such file. Check the path.\n1 problem in /nowhere/c.yaml\n')
})

t.test('import prints a configuration that compiles, and its notes beside it', async (t) => {
  const file = fileURLToPath(new URL('../config/samples/claude_desktop_config.json', import.meta.url))
  const io = collected()
  t.equal(await runImport(file, io.stdout, io.stderr), 0)
  const config = compileConfig(io.out(), { path: 'c.yaml', env: { GATEHOUSE_KEY: 'q7Xw2Zr9Lk4Vb8Nt' } })
  t.equal([...config.tenants.values()][0]?.upstreams.size, 2)
  t.match(io.err(), /^note: .*\nnote: .*\nnote: Set GATEHOUSE_KEY/)
})

t.test('import of something else is refused', async (t) => {
  const folder = t.testdir({ 'other.json': '{"a": 1}' })
  const io = collected()
  t.equal(await runImport(join(folder, 'other.json'), io.stdout, io.stderr), 1)
  t.match(io.err(), /neither mcpServers nor servers.*\n1 problem in /)
  t.equal(await runImport(join(folder, 'none.json'), io.stdout, io.stderr), 1)
  t.match(io.err(), /none\.json cannot be read/)
  t.equal(io.out(), '')
})

t.test('schema prints JSON Schema', async (t) => {
  t.match(configJsonSchema(), { $schema: /2020-12/, type: 'object', properties: { tenants: {} } })
})

t.test('the documents that are made from the code are up to date', async (t) => {
  const script = fileURLToPath(new URL('../../scripts/docs.ts', import.meta.url))
  t.equal(execFileSync(process.execPath, [script, '--check'], { encoding: 'utf8' }), '')
})

t.test('check --connect says what each endpoint offers, what is left out, and what cannot be reached', async (t) => {
  const server = (...names: string[]) => ({
    command: process.execPath,
    args: [
      join(import.meta.dirname, '../kit/stdio-server.ts'),
      JSON.stringify({ tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) })
    ]
  })
  const long = 'x'.repeat(60)
  const upstreams = { one: server('echo', long), two: server('echo'), gone: { command: '/no/such/command' } }
  const config = (members: string[], flat: object = {}) => ({
    store: `file:${t.testdirName}/never.db`,
    tenants: {
      a: {
        auth: 'none',
        upstreams,
        endpoints: { default: { upstreams: members }, flat: { upstreams: ['one', 'two'], prefix: '', ...flat } }
      }
    }
  })
  const folder = t.testdir({
    'good.json': JSON.stringify(
      config(['one', 'two'], { deny: { tools: ['two/echo'], prompts: ['two/*'], resources: ['two/*'] } })
    ),
    'renamed.json': JSON.stringify(
      config(['one', 'two'], { deny: { prompts: ['two/*'] }, tools: { 'two/echo': { rename: 'echo_of_two' } } })
    ),
    'clash.json': JSON.stringify(config(['one', 'two'])),
    'bad.json': JSON.stringify(config(['one', 'gone']))
  })
  const good = collected()
  t.equal(await check(join(folder, 'good.json'), good, {}, true), 0)
  const [, ...all] = good.out().trimEnd().split('\n')
  const isPart = (line: string): boolean => /^ {4}\w+: \d+ tools? \(about \d+ tokens\)$/.test(line)
  t.same(
    all.filter(isPart).map((line) => line.replace(/\d+ tokens/, 'N tokens')),
    ['    one: 2 tools (about N tokens)', '    two: 1 tool (about N tokens)'],
    'each upstream of an endpoint that has several'
  )
  const lines = all.filter((line) => !isPart(line))
  t.match(lines[0], /^ {2}\/t\/a\/mcp: 3 tools \(about \d+ tokens\), 2 prompts, 4 resources, 2 templates$/)
  t.match(lines[1], new RegExp(`^ {4}one__${long} is shown as .{1,64}$`))
  t.match(lines[2], /^ {2}\/t\/a\/flat\/mcp: 2 tools/)
  t.notMatch(good.out(), /is left out/, 'nothing clashes')
  const renamed = collected()
  t.equal(await check(join(folder, 'renamed.json'), renamed, {}, true), 0, renamed.out())
  const clash = collected()
  t.equal(await check(join(folder, 'clash.json'), clash, {}, true), 1)
  t.match(
    clash.out(),
    /^ {4}! two\/echo is left out: one\/echo has the name echo\. Rename one of them, or deny two\/echo$/m,
    'both are named, with what to do'
  )
  const bad = collected()
  t.equal(await check(join(folder, 'bad.json'), bad, {}, true), 1)
  t.match(bad.out(), /\n {4}! gone is missing: .*Upstream gone cannot be started: the command \/no\/such\/command/)
  t.notOk(existsSync(join(folder, 'never.db')), 'the store of the configuration is not touched')
})

t.test(
  'lists of tenants, upstreams and endpoints are read from a file, without a gateway and without its secrets',
  async (t) => {
    const text =
      'tenants:\n  a:\n    auth: none\n    upstreams:\n' +
      '      x: { command: server, args: [--key, canary-1], env: { KEY: canary-2 } }\n' +
      '      z: { url: "https://z.example/canary-3", headers: { Authorization: canary-4 } }\n' +
      '    endpoints: { one: { upstreams: [x, z], maxTools: 5 } }\n  b: { auth: none, upstreams: {} }\n'
    const file = join(t.testdir({ 'c.yaml': text, 'bad.yaml': 'tenants: { a: { upstrems: {} } }' }), 'c.yaml')
    const list = (...argv: string[]) => cli([...argv, '--config', file])
    t.match(await list('tenant', 'list'), { code: 0, out: /^ID .*\na +none +2 +\d.*\nb +none +0 / })
    t.match(await list('upstream', 'list', 'a'), {
      code: 0,
      out: /^NAME .*\nx +stdio +server .*\nz +http +https:\/\/z\.example /
    })
    t.match(await list('endpoint', 'list', 'a'), { code: 0, out: /^NAME .*\n(?:.*\n)?one +\/t\/a\/one\/mcp +x, z +5/ })
    const asData = await list('upstream', 'list', 'a', '--json')
    t.match(JSON.parse(asData.out), [
      { name: 'x', target: 'server' },
      { name: 'z', target: 'https://z.example' }
    ])
    t.notMatch(asData.out, 'canary')
    const unknown = await list('upstream', 'list', 'c')
    t.match(unknown, { code: 2, err: /c\.yaml has no tenant "c"\. It has: a, b\.$/ })
    const bad = await cli(['tenant', 'list', '--config', file.replace('c.yaml', 'bad.yaml')])
    t.match(bad, { code: 1, out: /bad\.yaml line 1, tenants\.a\.upstrems: is not a known key/ })
  }
)
