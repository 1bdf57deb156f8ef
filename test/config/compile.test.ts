import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problems.ts'
import type { HttpDefinition } from '../../src/config/snapshot.ts'
import { endpointName, tenantId, upstreamName } from '../../src/protocol/messages.ts'
import { base, compiled, goodKey, withValue } from './kit.ts'

const acme = (config: object, options = {}) => {
  const tenant = compiled(config, options).tenants.get(tenantId('acme'))
  if (tenant === undefined) throw new Error('no tenant acme')
  return tenant
}
const upstream = (config: object, name: string) => acme(config).upstreams.get(upstreamName(name))
const endpoint = (config: object, name: string) => acme(config).endpoints.get(endpointName(name))
const files = ['tenants', 'acme', 'upstreams', 'files']
const tickets = ['tenants', 'acme', 'upstreams', 'tickets']

t.test('every default is applied', async (t) => {
  const config = compiled({
    tenants: {
      a: {
        auth: { issuers: [{ issuer: 'https://idp.example' }] },
        upstreams: { p: { command: 'x' }, h: { url: 'https://a.example' } }
      }
    }
  })
  t.same(
    { ...config, tenants: 0 },
    {
      listen: { host: '127.0.0.1', port: 8080 },
      publicUrl: undefined,
      hosts: [],
      store: { kind: 'sqlite', path: '/srv/gatehouse/data/gatehouse.db' },
      logLevel: 'info',
      limits: {
        bodyBytes: 4_194_304,
        sessionIdleMs: 1_800_000,
        sessionMaxMs: 86_400_000,
        sessionsPerPrincipal: 1000,
        callsPerSession: 256,
        requestsPerSecondPerPrincipal: 1000,
        requestsPerSecondPerTenant: 2000,
        bodyBytesPerSecondPerPrincipal: 16_777_216,
        bodyBytesPerSecondPerTenant: 33_554_432,
        sessionsPerSecondPerPrincipal: 100,
        sessionsPerSecondPerTenant: 200,
        queueMs: 10_000,
        callsPerPrincipal: 1_024,
        callsPerTenant: 4_096,
        batchMessages: 50,
        processes: 256,
        processesPerTenant: 128,
        coldStartMs: 1500,
        readyDelayMs: 0,
        drainMs: 24_000,
        pageSize: 1000,
        streamMs: 0
      },
      audit: undefined,
      egress: { allow: [], ports: [] },
      tenants: 0
    }
  )
  const tenant = config.tenants.get(tenantId('a'))
  t.same(tenant?.auth, {
    mode: 'bearer',
    keys: [],
    requiredScopes: [],
    askedScopes: [],
    dpop: 'accepted',
    dpopNonces: false,
    leewaySeconds: 30,
    issuers: [
      {
        issuer: 'https://idp.example',
        jwksUri: undefined,
        algorithms: ['ES256', 'ES384', 'Ed25519', 'EdDSA', 'PS256', 'RS256'],
        requireTyp: true,
        audiences: [],
        otherAudiences: [],
        clients: [],
        staleSeconds: 3_600,
        maxLifetimeSeconds: 86_400
      }
    ]
  })
  const shared = {
    isolation: 'session',
    era: 'auto',
    timeoutMs: 600_000,
    maxTimeoutMs: 21_600_000,
    idleMs: 300_000,
    maxMessageBytes: 16_777_216,
    maxCalls: 1_024
  }
  t.match(tenant?.upstreams.get(upstreamName('p')), {
    ...shared,
    type: 'stdio',
    connectMs: 30_000,
    args: [],
    env: {},
    cwd: undefined
  })
  t.match(tenant?.upstreams.get(upstreamName('h')), {
    ...shared,
    type: 'http',
    transport: 'auto',
    connectMs: 10_000,
    headers: {}
  })
})

t.test('a gateway that other machines reach gives load balancers five seconds to notice that it ends', async (t) => {
  const delay = (config: object, options = {}): number => compiled(config, options).limits.readyDelayMs
  const open = { ...base(), publicUrl: 'https://mcp.example.com' }
  t.equal(delay(open, { host: '0.0.0.0' }), 5_000)
  t.equal(delay(open, { host: '::1' }), 0)
  t.equal(delay({ ...open, listen: { host: '10.0.0.5' }, limits: { readyDelayMs: 20 } }), 20)
})

t.test('endpoints have their paths, members and prefixes', async (t) => {
  t.match(endpoint(base(), 'default'), {
    path: '/t/acme/mcp',
    separator: '__',
    members: [
      { upstream: 'files', prefix: 'files' },
      { upstream: 'tickets', prefix: 'tickets' }
    ]
  })
  t.match(endpoint(base(), 'files'), { path: '/t/acme/files/mcp', members: [{ upstream: 'files', prefix: '' }] })
  const mixed = withValue(['tenants', 'acme', 'endpoints', 'mixed'], {
    prefix: 'p',
    separator: '.',
    upstreams: ['files', { upstream: 'tickets', prefix: '' }]
  })
  t.match(endpoint(mixed, 'mixed'), {
    separator: '.',
    members: [
      { upstream: 'files', prefix: 'p' },
      { upstream: 'tickets', prefix: '' }
    ]
  })
})

t.test('a tenant that names no endpoint has a default one with every upstream', async (t) => {
  const config = withValue(['tenants', 'acme', 'endpoints'], undefined)
  t.same([...acme(config).endpoints.keys()], ['default'])
  t.same(
    endpoint(config, 'default')?.members.map((member) => member.upstream),
    ['files', 'tickets']
  )
})

t.test('an upstream that is switched off is nowhere', async (t) => {
  const config = withValue([...files, 'disabled'], true)
  t.same([...acme(config).upstreams.keys()], ['tickets'])
  t.same(
    endpoint(config, 'default')?.members.map((member) => member.upstream),
    ['tickets']
  )
  t.same(endpoint(config, 'files')?.members, [])
})

t.test('every name of a transport in mcp.json is known, and some mean the same', async (t) => {
  const transportOf = (type: string | undefined) => upstream(withValue([...tickets, 'type'], type), 'tickets')
  t.same(
    [undefined, 'http', 'streamable-http', 'streamableHttp', 'sse'].map(
      (type) => (transportOf(type) as HttpDefinition).transport
    ),
    ['auto', 'auto', 'streamable', 'streamable', 'sse']
  )
  t.equal(transportOf(undefined)?.hash, transportOf('http')?.hash)
  t.not(transportOf('sse')?.hash, transportOf('http')?.hash, 'another transport is another connection')
})

t.test('the hash follows everything that defines the connection and nothing else', async (t) => {
  const hash = (config: object, name = 'files') => upstream(config, name)?.hash
  const before = hash(base())
  t.match(before, /^[0-9a-f]{64}$/)
  t.equal(hash({ logLevel: 'debug', ...withValue([...files, 'description'], 'other words') }), before)
  t.equal(
    hash(withValue([...files, 'env'], { B: 'c', A: 'b' })),
    hash(withValue([...files, 'env'], { A: 'b', B: 'c' })),
    'the order of keys does not count'
  )
  const changes: [string, unknown][] = [
    ['command', 'node'],
    ['args', ['some-server', '-y']],
    ['env', { A: 'c' }],
    ['cwd', '/x'],
    ['isolation', 'shared'],
    ['era', 'modern'],
    ['connectMs', 100],
    ['timeoutMs', 100],
    ['maxTimeoutMs', 100],
    ['idleMs', 100],
    ['maxMessageBytes', 1024]
  ]
  for (const [key, value] of changes) t.not(hash(withValue([...files, key], value)), before, key)
  t.not(hash(withValue([...tickets, 'headers'], { 'X-Api-Key': 'abd' }), 'tickets'), hash(base(), 'tickets'))
  for (const lends of [true, false]) {
    const config = withValue([...tickets, 'lendSessions'], lends)
    t.equal(hash(config, 'tickets'), hash(base(), 'tickets'), 'as versions that do not know the key make it')
    t.match(upstream(config, 'tickets'), { lendSessions: lends })
  }
  t.match(upstream(base(), 'tickets'), { lendSessions: true }, 'the default')
  const other = compiled({ tenants: { other: (base()['tenants'] as Record<string, unknown>)['acme'] } })
  t.not(other.tenants.get(tenantId('other'))?.upstreams.get(upstreamName('files'))?.hash, before, 'another tenant')
})

t.test('of an API key only the digest is kept', async (t) => {
  const config = compiled(base())
  const { keys } = acme(base()).auth
  t.same(keys, [{ name: 'ci', sha256: keys[0]?.sha256, scopes: ['mcp'] }])
  t.equal(
    acme(withValue(['tenants', 'acme', 'auth', 'keys', 0], { name: 'ci', sha256: keys[0]?.sha256.toUpperCase() })).auth
      .keys[0]?.sha256,
    keys[0]?.sha256,
    'key and sha256 are two ways to say the same'
  )
  const everything = JSON.stringify(config, (_key, value: unknown) =>
    value instanceof Map ? [...value] : value instanceof Set ? [...value] : value
  )
  t.match(everything, 'X-Api-Key', 'the walk sees the tenants')
  t.notMatch(everything, goodKey)
})

t.test('a snapshot cannot be changed anywhere', async (t) => {
  const config = compiled(base())
  const seen = new Set<object>()
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return
    seen.add(value)
    if (!Object.isFrozen(value)) t.fail(`${path} is not frozen`)
    const entries =
      value instanceof Map || value instanceof Set
        ? ([...value.entries()] as [unknown, unknown][])
        : Object.entries(value)
    for (const [key, item] of entries) walk(item, `${path}.${String(key)}`)
  }
  walk(config, 'config')
  t.ok(seen.size > 15, 'the walk went down')
  const tenants = config.tenants as Map<unknown, unknown>
  t.throws(() => tenants.set('x', 1), TypeError)
  t.throws(() => tenants.delete('acme'), TypeError)
  t.throws(() => tenants.clear(), TypeError)
  t.throws(() => (acme(base()).origins as Set<string>).add('*'), TypeError)
})

t.test('the store is where the file or --data says', async (t) => {
  const store = (value: string, dataDir?: string) => compiled({ ...base(), store: value }, { dataDir }).store
  t.same(store('file:x.db'), { kind: 'sqlite', path: '/srv/gatehouse/x.db' })
  t.same(store('file:/var/x.db'), { kind: 'sqlite', path: '/var/x.db' })
  t.same(store('file:x.db', '/data'), { kind: 'sqlite', path: '/data/gatehouse.db' })
  t.same(store('memory:', '/data'), { kind: 'sqlite', path: ':memory:' })
  t.same(store('redis://h:6379/0', '/data'), { kind: 'redis', url: 'redis://h:6379/0' })
})

t.test('what the command line says wins over the file', async (t) => {
  t.same(compiled({ ...base(), listen: { port: 1 } }, { port: 0, host: '::1' }).listen, { host: '::1', port: 0 })
})

t.test('a relative working directory starts at the configuration', async (t) => {
  t.match(upstream(withValue([...files, 'cwd'], 'work'), 'files'), { cwd: '/srv/gatehouse/work' })
})

t.test('URLs are kept in one spelling', async (t) => {
  t.equal(compiled({ ...base(), publicUrl: 'https://MCP.example.com:443/' }).publicUrl, 'https://mcp.example.com')
  t.same([...acme(withValue(['tenants', 'acme', 'origins'], ['HTTPS://Claude.ai:443'])).origins], ['https://claude.ai'])
})

t.test('a file is loaded, and one that cannot be is a problem like any other', async (t) => {
  const folder = t.testdir({
    'good.yaml': 'tenants: { a: { auth: none, upstreams: {} } }',
    'latin1.yaml': Buffer.from([0x61, 0x3a, 0x20, 0xe9])
  })
  t.equal((await loadConfig(join(folder, 'good.yaml'), { env: {} })).tenants.size, 1)
  await t.rejects(loadConfig(join(folder, 'none.yaml'), { env: {} }), {
    name: 'ConfigError',
    problems: [{ message: 'there is no such file' }]
  })
  await t.rejects(loadConfig(folder, { env: {} }), {
    name: 'ConfigError',
    problems: [{ message: 'the file cannot be read' }]
  })
  await t.rejects(loadConfig(join(folder, 'latin1.yaml'), { env: {} }), {
    name: 'ConfigError',
    problems: [{ message: 'the file is not text in UTF-8' }]
  })
})

t.test('the error itself tells every problem, in the order of the file', async (t) => {
  try {
    compiled('store: x\nlogLevel: y\ntenants: { a: { auth: none } }')
    t.fail('must be refused')
  } catch (error) {
    t.ok(error instanceof ConfigError)
    t.match(error, {
      message:
        /config\.yaml cannot be used, 3 problems:\n {2}store \(line 1\): is no store\. Use .*\n {2}logLevel \(line 2\): .*\n {2}tenants\.a\.upstreams \(line 3\): is missing\. /
    })
  }
})

t.test('the claim of ID tokens that names a person is that of access tokens, unless the product has another', (t) => {
  const claimOf = (issuer: object, signIn: object = {}) => {
    const one = { issuer: 'https://acme.okta.com/oauth2/default', ...issuer }
    const auth = { issuers: [one], signIn: { issuer: one.issuer, clientId: 'g', clientSecret: 's', ...signIn } }
    const vault = { keys: [{ id: 'k1', key: Buffer.alloc(32, 7).toString('base64') }] }
    const publicUrl = 'https://mcp.example.com'
    return acme(withValue(['tenants', 'acme', 'auth'], auth, { ...base(), vault, publicUrl })).auth.signIn?.subjectClaim
  }
  t.equal(claimOf({}), 'sub')
  t.equal(claimOf({ claims: { subject: 'oid' } }), 'oid')
  // Its access tokens have the same in `uid`.
  t.equal(claimOf({ provider: 'okta' }), 'sub')
  t.equal(claimOf({ provider: 'okta', claims: { subject: 'employee' } }), 'employee')
  t.equal(claimOf({ provider: 'okta' }, { subjectClaim: 'uid' }), 'uid')
  t.end()
})
