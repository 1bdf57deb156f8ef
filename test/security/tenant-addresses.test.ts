// Server-side request forgery by a tenant-admin: a host below an allowed `*.` leads wherever its owner's DNS says. What a
// tenant-admin wrote is connected to at public addresses only, unless the operator named that very host, or opened the
// range. Here the hosts of tenants lead to this machine, where nothing may be asked.

import { randomBytes } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { freePort } from '../kit/free-port.ts'
import { configOf } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { nameServer } from '../kit/name-server.ts'
import { startUpstream } from '../kit/upstream.ts'

const apiKey = 'gh_key_of_a_tenant_made_by_api'
const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['initech'] } : each))
const opaque = 'an-opaque-token-0123456789'
const allowedHosts = ['localhost', '*.example.com', '*.0.0.1']
const echo = { name: 'up__echo', arguments: { text: 'hello' } }

/** How many have connected to it; it says nothing. */
async function standIn(t: Test, host = '127.0.0.1', port = 0) {
  let count = 0
  const server = createServer((socket: Socket) => {
    count++
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  t.teardown(() => server.close())
  const address = server.address()
  return { port: typeof address === 'object' && address !== null ? address.port : 0, connections: () => count }
}

/** A login front needs a public URL that is known before. */
async function listenHere() {
  const port = await freePort()
  const vault = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] }
  return { listen: { host: '127.0.0.1', port }, publicUrl: `http://127.0.0.1:${port}`, vault }
}

/** A tenant made by a platform-admin, and every name below example.com, which leads where `addresses` says. */
async function setup(t: Test, allow: readonly string[] = []) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const addresses = ['127.0.0.1']
  const names = await nameServer(t, () => addresses)
  const own = await listenHere()
  const { port } = new URL(upstream.url)
  const optionsWith = (hosts: readonly string[]) => ({
    upstreams: {},
    top: { ...own, egress: { allow, ports: [Number(port)] }, admin: { ...adminSection, keys, allowedHosts: hosts } }
  })
  const made = await adminGateway(t, {
    ...optionsWith(allowedHosts),
    overrides: { nameServers: [names.address] }
  })
  const body = { auth: { keys: [{ name: 'ci', key: apiKey }] }, upstreams: {} }
  const { status, text } = await made.call('PUT', '/v1/tenants/initech', { body })
  if (status !== 201) throw new Error(text)
  async function patch(body: object, key: string = adminKeys.globex): Promise<void> {
    const answer = await made.call('PATCH', '/v1/tenants/initech', { key, body, headers: { 'If-Match': '*' } })
    if (answer.status >= 300) throw new Error(answer.text)
  }
  return {
    made,
    upstream,
    addresses,
    names,
    at: (host: string): string => `http://${host}:${port}/mcp`,
    allowHosts: (hosts: readonly string[]) =>
      made.reload(configOf({ ...optionsWith(hosts), tenants: { globex: { auth: body.auth, upstreams: {} } } })),
    patch,
    put: (url: string, key: string = adminKeys.globex, rest: object = {}) =>
      patch({ upstreams: { up: { url, ...rest } } }, key),
    /** @returns what it answers; or what the caller and the tenant-admin are told */
    async called(): Promise<string> {
      const client = await legacyClient(made.url('default', 'initech'), apiKey)
      const { json } = await client.request('tools/call', echo)
      if (json.error === undefined) return json.result.content[0].text
      const { json: seen } = await made.call('GET', '/v1/tenants/initech/upstreams/up', { key: adminKeys.globex })
      return `${json.error.message} ${(seen as { lastError?: string }).lastError ?? ''}`
    }
  }
}

const hello = JSON.stringify({ text: 'hello' })
const refusal = /is not connected to.*no public address.*admin\.allowedHosts.*egress\.allow/

t.test(
  'an upstream below an allowed wildcard is not connected to inside, and the answer says what to do',
  async (t) => {
    const { upstream, put, called, at, made } = await setup(t)
    await put(at('up.example.com'))
    t.match(await called(), refusal)
    await put(at('127.0.0.1'))
    t.match(await called(), refusal, 'an address that fits a wildcard is judged as it stands')
    t.same(upstream.seen, [])
    t.notMatch(await called(), /up\.example\.com \(127/, 'nobody of the tenant is told where a name leads')
    t.ok(made.log.some((line) => JSON.stringify(line).includes('127.0.0.1 is no public address')))
    await put(at('localhost'))
    t.equal(await called(), hello, 'the host that the operator named is, wherever it leads')
    await put(at('127.0.0.1'), adminKeys.platform)
    t.match(await called(), refusal, 'below a wildcard it does not matter who wrote it')
  }
)

t.test('a port that is not reached below a wildcard is refused when it is written, by whomever', async (t) => {
  const [{ made, upstream }, ranges] = await Promise.all([setup(t), setup(t, ['10.0.0.0/8'])])
  const put = ({ call }: typeof made, url: string, key: string = adminKeys.globex, name = 'up') =>
    call('PUT', `/v1/tenants/initech/upstreams/${name}`, { key, body: { url } })
  const { port } = new URL(upstream.url)
  for (const key of [adminKeys.globex, adminKeys.platform])
    for (const [url, told] of [
      ['http://up.example.com/mcp', `port 80, and hosts below a wildcard are reached at 443, ${port} only`],
      ['https://up.example.com:8443/mcp', 'port 8443,']
    ] as const) {
      const { status, json, text } = await put(made, url, key)
      t.match({ status, json }, { status: 422, json: { errors: [{ message: new RegExp(told) }] } }, text)
      t.match(text, /upstreams\.up\.url.*egress\.ports/)
    }
  const good = ['https://up.example.com/mcp', `http://up.example.com:${port}/mcp`, 'http://localhost:3000/mcp']
  for (const [at, url] of good.entries())
    t.equal((await put(made, url, adminKeys.globex, `good${at}`)).status, 201, url)
  t.equal((await put(ranges.made, 'http://up.example.com:3000/mcp')).status, 201, 'any port of an opened range')
  const tenants = { initech: { upstreams: { up: { url: 'http://up.example.com/mcp' } } } }
  t.equal((await made.call('POST', '/v1/plan', { body: { tenants } })).status, 422, 'a plan says so, too')
})

t.test('what only a platform-admin may name is reached, and so is what is in an opened range', async (t) => {
  const plain = await setup(t)
  plain.allowHosts(['*.example.com'])
  await plain.put(plain.at('127.0.0.1'), adminKeys.platform)
  t.equal(await plain.called(), hello)
  const { put, called, at, names } = await setup(t, ['127.0.0.0/8'])
  await put(at('up.example.com'))
  t.equal(await called(), hello)
  t.ok(names.asked.includes('up.example.com'))
})

t.test('a name that leads elsewhere once it is connected to again (DNS rebinding) leads nowhere', async (t) => {
  const { put, called, at, addresses } = await setup(t, ['127.0.0.1/32'])
  const { port, connections } = await standIn(t, '127.0.0.2', Number(new URL(at('x')).port))
  t.ok(port)
  await put(at('up.example.com'))
  t.equal(await called(), hello)
  addresses[0] = '127.0.0.2'
  await put(at('up.example.com'), adminKeys.globex, { connectMs: 9_000 })
  t.match(await called(), refusal)
  t.equal(connections(), 0)
})

t.test('what a tenant-admin wrote stays so when the list of hosts becomes shorter', async (t) => {
  const { upstream, put, called, at, allowHosts } = await setup(t)
  await put(at('localhost'))
  t.equal(await called(), hello)
  allowHosts([])
  const calls = upstream.server.calls('echo')
  t.match(await called(), refusal, 'its host is named no more')
  await put(at('localhost'), adminKeys.platform, { connectMs: 9_000 })
  t.match(await called(), refusal, 'nor is it by a platform-admin who changes something else')
  t.equal(upstream.server.calls('echo'), calls)
  await put(at('127.0.0.1'), adminKeys.platform)
  t.equal(await called(), hello)
  await put(at('localhost'), adminKeys.platform)
  t.equal(await called(), hello, 'a platform-admin who names the host anew does')
})

t.test('a version that is taken up again keeps whose its hosts are, also after its tenant was removed', async (t) => {
  const { made, upstream, put, called, at, allowHosts } = await setup(t)
  const versionOf = async () => ((await made.call('GET', '/v1/tenants/initech')).json as { version: number }).version
  await put(at('localhost'), adminKeys.platform)
  const ofPlatform = await versionOf()
  await put(at('127.0.0.1'), adminKeys.platform)
  await put(at('localhost'))
  const ofTenant = await versionOf()
  await put(at('127.0.0.1'), adminKeys.platform)
  allowHosts([])
  const takenUp = async (version: number): Promise<string> => {
    const { status, text } = await made.call('POST', '/v1/rollback', { body: { version, tenant: 'initech' } })
    t.equal(status, 200, text)
    return await called()
  }
  t.match(await takenUp(ofTenant), refusal, 'a tenant-admin had named it')
  t.equal(upstream.server.calls('echo'), 0)
  t.equal(await takenUp(ofPlatform), hello, 'a platform-admin had')
  const headers = { 'If-Match': '*' }
  for (const [version, answer] of [
    [ofTenant, refusal],
    [ofPlatform, hello]
  ] as const) {
    t.equal((await made.call('DELETE', '/v1/tenants/initech', { headers })).status, 204)
    t.match(await takenUp(version), answer)
  }
})

t.test(
  'an issuer, its keys and its introspection, and where tokens for an upstream come from, are held to it',
  async (t) => {
    const inside = await standIn(t)
    const refused = await setup(t)
    const opened = await setup(t, ['127.0.0.0/8'])
    const origin = `https://idp.example.com:${inside.port}`
    const now = Math.floor(Date.now() / 1000)
    const unsigned = [
      { alg: 'RS256', typ: 'at+jwt', kid: 'x' },
      { iss: origin, sub: 'ada', iat: now, exp: now + 300 },
      'x'
    ]
    const jwt = unsigned
      .map((part) => Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url'))
      .join('.')
    for (const [isOpened, { made, patch, put, called, at }] of [
      [false, refused],
      [true, opened]
    ] as const) {
      const asks = async (what: unknown, ask: () => Promise<unknown>): Promise<void> => {
        const before = inside.connections()
        await ask()
        t.equal(inside.connections() > before, isOpened, JSON.stringify(what))
      }
      const bare = { issuer: origin, clientId: 'gatehouse', clientSecret: 'of the gateway' }
      const { issuer: _none, ...introspection } = bare
      const calledWith = async (token: string): Promise<void> => {
        t.not((await modernRequest(made.url('default', 'initech'), 'tools/list', {}, { token })).status, 200)
      }
      for (const [token, issuer] of [
        [jwt, {}],
        [jwt, { jwksUri: `${origin}/jwks` }],
        [opaque, { introspection }],
        [opaque, { introspection: { ...introspection, url: `${origin}/introspect` } }]
      ] as const) {
        await patch({ auth: { issuers: [{ issuer: origin, ...issuer }] } })
        await asks(issuer, () => calledWith(token))
      }
      for (const auth of [
        { ...bare, type: 'clientCredentials' },
        { ...introspection, type: 'clientCredentials', tokenUrl: `${origin}/token` }
      ]) {
        await put(at('localhost'), adminKeys.globex, { auth: { issuer: null, ...auth } })
        await asks(auth, called)
      }
      const none = { clientId: null, clientSecret: null, tokenUrl: null }
      await put(at('localhost'), adminKeys.globex, { auth: { ...none, type: 'user', issuer: origin } })
      const page = `${made.publicUrl}/t/initech/connections`
      const person = await signedIn(page, apiKey)
      await asks('an account', () => submit(person.tab, person.page, 'connect'))
      await patch({ auth: { issuers: [{ issuer: origin }], signIn: bare } })
      await asks('people sign in', () => fetch(`${page}/sign-in`, { redirect: 'manual' }))
      await patch({ auth: { signIn: null, login: { name: 'Initech', scopes: ['mcp'], provider: bare } } })
      const door = `${made.publicUrl}/login/initech/connections?state=${'x'.repeat(43)}`
      await asks('people sign in at the front', () => fetch(door, { redirect: 'manual' }))
    }
    t.ok(refused.names.asked.length >= 10, 'each time the name is looked up')
    t.ok(refused.made.log.some((line) => /idp\.example\.com \(127\.0\.0\.1\) is no public/.test(JSON.stringify(line))))
  }
)

t.test('the token of a caller is exchanged at no such place', async (t) => {
  const inside = await standIn(t)
  for (const allow of [[], ['127.0.0.0/8']]) {
    const { made, patch, at, allowHosts } = await setup(t, allow)
    allowHosts(['*.example.com'])
    const endpoint = made.url('default', 'initech')
    const issuer = await forgingIssuer(t, { resource: endpoint, now: Date.now() })
    const tokenUrl = `https://idp.example.com:${inside.port}/token`
    const auth = {
      type: 'tokenExchange',
      issuer: issuer.issuer,
      clientId: 'c',
      clientSecret: 'of the gateway',
      tokenUrl
    }
    const whole = { auth: { issuers: [{ issuer: issuer.issuer }] }, upstreams: { up: { url: at('127.0.0.1'), auth } } }
    await patch(whole, adminKeys.platform)
    const before = inside.connections()
    const { json } = await modernRequest(endpoint, 'tools/call', echo, { token: await issuer.sign() })
    t.match(json, { error: { message: /upstream up/i } }, JSON.stringify(json))
    t.equal(inside.connections() > before, allow.length > 0)
    t.equal(
      made.log.some((line) => /idp\.example\.com \(127\.0\.0\.1\) is no public/.test(JSON.stringify(line))),
      allow.length === 0
    )
  }
})

t.test('the doctor of the admin API goes to such an issuer no more than the gateway does', async (t) => {
  const inside = await standIn(t)
  for (const [hosts, host, isAsked, allow] of [
    [['localhost'], 'localhost', true],
    [[], 'localhost', false],
    [['*.0.0.1'], '127.0.0.1', false],
    [[], 'localhost', true, ['127.0.0.0/8', '::1/128']]
  ] as const) {
    const { made, patch, allowHosts } = await setup(t, allow)
    await patch({ auth: { issuers: [{ issuer: `https://${host}:${inside.port}` }] } })
    allowHosts(hosts)
    const before = inside.connections()
    const examine = '/v1/tenants/initech/endpoints/default/doctor'
    const { text, json } = await made.call('POST', examine, { key: adminKeys.globex, body: {} })
    t.match(json, { fault: { code: 'issuer_unreachable' } }, text)
    const what = `${host}, where ${hosts.join() || 'nothing'} is listed and ${allow?.join() ?? 'nothing'} is open`
    t.equal(inside.connections() > before, isAsked, what)
    t.equal(text.includes('none of those that the gateway asks'), !isAsked, 'where it leads is told to nobody')
  }
})
