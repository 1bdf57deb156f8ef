// What the admin API refuses before it looks at what is asked: other hosts, pages of other origins, keys that are not in
// the Authorization header, too many requests; and bodies that are not what they should be. Each with the same request
// in its legitimate form.

import pino from 'pino'
import t from 'tap'
import { createAdminAccess } from '../../src/admin/access.ts'
import { createFetch } from '../../src/egress/fetch.ts'
import { compileConfig } from '../../src/config/load.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { configOf, key as apiKey } from '../kit/gateway.ts'
import { stopSteadyClock } from '../kit/held-time.ts'
import { rawExchange } from '../kit/raw-http.ts'
import { send } from '../kit/client.ts'

const started = adminGateway({ teardown: (run) => t.teardown(run) }, { upstreams: {} })
const explain = '/v1/tenants/acme/endpoints/default/catalog'

async function raw(lines: readonly string[], body = '') {
  const { adminUrl } = await started
  const port = Number(new URL(adminUrl).port)
  const given = lines.map((line) => line.replace('PORT', String(port)))
  return await rawExchange(port, [...given, 'Connection: close', '', body].join('\r\n'))
}

const bearer = `Authorization: Bearer ${adminKeys.platform}`

t.test('a name that resolves to the listener is no host of it, and loopback is', async (t) => {
  for (const host of ['evil.example:PORT', 'evil.example', '127.0.0.1:1', '']) {
    const { status, body } = await raw(['GET /v1/limits HTTP/1.1', `Host: ${host}`, bearer])
    t.equal(status, 403, host)
    t.match(JSON.parse(body), { type: 'urn:gatehouse:problem:forbidden_host', remedy: /admin\.hosts/ })
  }
  for (const host of ['127.0.0.1:PORT', 'localhost:PORT', '[::1]:PORT'])
    t.equal((await raw(['GET /v1/limits HTTP/1.1', `Host: ${host}`, bearer])).status, 200, host)
})

t.test('a process that listens everywhere is asked at the address that it has, and at no name', async (t) => {
  const top = { admin: { ...adminSection, listen: { host: '0.0.0.0', port: 0 }, behindTlsProxy: true } }
  const { adminUrl } = await adminGateway(t, { upstreams: {}, top })
  const { port } = new URL(adminUrl)
  const status = async (host: string): Promise<number> =>
    (
      await rawExchange(
        Number(port),
        [`GET /metrics HTTP/1.1`, `Host: ${host}`, bearer, 'Connection: close', '', ''].join('\r\n')
      )
    ).status
  t.equal(await status(`127.0.0.1:${port}`), 200)
  for (const host of [`127.0.0.2:${port}`, '127.0.0.1:1', `localhost:${port}`, 'evil.example', `127.0.0.1.:${port}`])
    t.equal(await status(host), 403, host)
})

t.test('a header that comes twice, and a target with a host of its own, are refused', async (t) => {
  const twice = ['GET /v1/limits HTTP/1.1', 'Host: 127.0.0.1:PORT', bearer, 'Origin: http://127.0.0.1:PORT']
  t.equal((await raw(twice)).status, 200)
  t.equal((await raw([...twice, 'Origin: http://evil.example'])).status, 400)
  t.equal((await raw([...twice, bearer])).status, 401, 'two keys are none')
  const absolute = ['GET http://evil.example/v1/limits HTTP/1.1', 'Host: 127.0.0.1:PORT', bearer]
  t.not((await raw(absolute)).status, 200)
})

t.test('a target that is no URL is refused, and the gateway lives on', async (t) => {
  for (const target of ['//%zz', '//', '///', '//[', '/%', '/%zz?x', '/v1/limits/%ff', '/\\', '//x:99999/']) {
    const { status, body, header } = await raw([`GET ${target} HTTP/1.1`, 'Host: 127.0.0.1:PORT'])
    t.ok(status >= 400 && status < 500, `${target}: ${status}`)
    t.match(header('content-type'), /^application\/problem\+json/, target)
    t.match(JSON.parse(body), { instance: target.split('?')[0] }, target)
  }
  t.equal((await raw(['GET /v1/limits HTTP/1.1', 'Host: 127.0.0.1:PORT', bearer])).status, 200)
})

t.test('a page of another origin is refused with a good key too, and no answer has CORS headers', async (t) => {
  const { call, adminUrl } = await started
  const own = await call('GET', '/v1/limits', { headers: { Origin: adminUrl } })
  t.equal(own.status, 200)
  for (const origin of ['https://evil.example', 'null', 'http://localhost:1']) {
    const { status, headers } = await call('GET', '/v1/limits', { headers: { Origin: origin } })
    t.equal(status, 403, origin)
    t.same(
      Object.keys(headers).filter((name) => name.startsWith('access-control')),
      []
    )
  }
  const preflight = await call('OPTIONS', '/v1/limits', {
    key: null,
    headers: { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'GET' }
  })
  t.equal(preflight.status, 403)
  t.notOk(preflight.headers['access-control-allow-origin'])
})

t.test('a key counts in the Authorization header and nowhere else', async (t) => {
  const { call } = await started
  const { platform } = adminKeys
  const elsewhere = [
    ['/v1/limits', { Cookie: `key=${platform}; Authorization=Bearer ${platform}` }],
    [`/v1/limits?key=${platform}&access_token=${platform}`, {}],
    ['/v1/limits', { 'X-Api-Key': platform }],
    ['/v1/limits', { Authorization: `Basic ${Buffer.from(`ops:${platform}`).toString('base64')}` }],
    ['/v1/limits', { Authorization: platform }]
  ] as const
  for (const [path, headers] of elsewhere) {
    const answer = await call('GET', path, { key: null, headers })
    t.equal(answer.status, 401, JSON.stringify(headers))
    t.match(answer.headers['www-authenticate'], /^Bearer realm="admin"/)
  }
  t.equal((await call('GET', '/v1/limits')).status, 200)
})

t.test('an admin key opens no endpoint of MCP, and an API key does', async (t) => {
  const { url } = await started
  const ping = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' }
    }
  })
  const as = (key: string) =>
    send(url(), {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: ping
    })
  t.equal((await as(adminKeys.platform)).status, 401)
  t.equal((await as(apiKey)).status, 200)
})

t.test('wrong keys from one address are soon answered by 429, and the right key is still let in', async (t) => {
  const { call, log } = await started
  const from = '127.0.2.1'
  const guess = (at: number) => call('GET', '/v1/limits', { key: `gha_${String(at).padStart(43, 'x')}`, from })
  const answers: number[] = []
  for (let at = 0; at < 14; at++) answers.push((await guess(at)).status)
  t.same(
    answers.slice(0, 10),
    Array.from({ length: 10 }, () => 401)
  )
  // One more is let through every 6 s.
  t.ok(answers.slice(10).includes(429))
  t.equal((await call('GET', '/v1/limits', { from })).status, 200)
  t.equal((await call('GET', '/v1/limits', { key: `gha_${'y'.repeat(43)}`, from: '127.0.2.2' })).status, 401)
  const warnings = log.filter(
    ({ msg, address }) => msg === 'many wrong admin keys from one address' && address === from
  )
  t.equal(warnings.length, 1)
})

t.test('a key, or an address without one, that sends without end is slowed down, and nobody else', async (t) => {
  const { admin } = compileConfig(
    JSON.stringify(
      configOf({ upstreams: {}, tenants: { globex: { auth: 'none', upstreams: {} } }, top: { admin: adminSection } })
    ),
    { path: 'x', env: {} }
  )
  const clock = { now: () => now, timer: steadyClock.timer }
  let now = 0
  const warned: string[] = []
  const log = pino({ level: 'warn', base: null }, { write: (line: string) => warned.push(line) })
  const access = createAdminAccess({
    snapshot: () => ({ admin }),
    clock,
    wall: clock,
    fetchFor: () => createFetch(),
    log
  })
  const as = (name: keyof typeof adminKeys) =>
    access.authenticate(['Authorization', `Bearer ${adminKeys[name]}`], '10.0.0.1')
  for (let at = 0; at < 100; at++) await as('auditor')
  await t.rejects(as('auditor'), { code: 'rate_limited', headers: { 'Retry-After': '1' } })
  t.match(await as('viewer'), { name: 'viewer', role: 'viewer' })
  now = 1_000
  t.match(await as('auditor'), { name: 'auditor' })
  const refusal = async (address: string, headers: readonly string[] = []): Promise<string> => {
    try {
      return (await access.authenticate(headers, address)).name
    } catch (error) {
      return (error as { code: string }).code
    }
  }
  const many = await Promise.all(Array.from({ length: 400 }, () => refusal('10.0.0.1')))
  t.same(new Set(many), new Set(['unauthenticated']))
  t.equal(await refusal('10.0.0.1'), 'rate_limited')
  t.match(await as('viewer'), { name: 'viewer' }, 'whoever has the key is let in at the same address')
  t.equal(await refusal('10.0.0.2'), 'unauthenticated')
  const guess = ['Authorization', `Bearer gha_${'x'.repeat(43)}`]
  const guesses = async () => (await Promise.all(Array.from({ length: 100 }, () => refusal('10.0.0.3', guess)))).at(-1)
  t.same([await guesses(), await guesses(), warned.length], ['rate_limited', 'rate_limited', 1])
  now += 60_000
  t.same([await guesses(), warned.length], ['rate_limited', 2], 'a warning a minute')

  // Of IPv6 everybody has a /64 of addresses: they count together, for guesses and for requests without a key.
  const guessFrom = (network: string) => (at: number) => refusal(`${network}${(at + 1).toString(16)}`, guess)
  const spread = Array.from({ length: 12 }, (_, at) => at)
  const [codes, others] = await Promise.all(
    ['2001:db8:0:1::', '::ffff:10.9.0.'].map((network) => Promise.all(spread.map(guessFrom(network))))
  )
  t.same(codes?.slice(9), ['unauthenticated', 'rate_limited', 'rate_limited'], 'ten guesses of a network')
  t.same(new Set(others), new Set(['unauthenticated']), 'addresses of IPv4 are each their own')
  t.equal(await refusal('2001:db8:0:2::1', guess), 'unauthenticated', 'another network')
  t.match(await as('viewer'), { name: 'viewer' })
  const strangers = await Promise.all(
    Array.from({ length: 401 }, (_, at) => refusal(`2001:db8:0:3::${at.toString(16)}`))
  )
  t.same([strangers[399], strangers[400]], ['unauthenticated', 'rate_limited'])
  t.equal(await refusal('2001:db8:0:4::1'), 'unauthenticated')
})

t.test('an unknown member of a body is refused by its place, and nothing of it counts', async (t) => {
  const { call } = await started
  t.equal((await call('POST', explain, { body: { caller: { subject: 'ada' } } })).status, 200)
  const empty = await call('POST', explain, { body: '' })
  t.match(empty, { status: 400, json: { detail: 'The body is empty.', remedy: /JSON object/ } })
  const bodies = [
    ['{"role":"platform-admin"}', 'role'],
    ['{"tenantId":"globex"}', 'tenantId'],
    ['{"caller":{"isAdmin":true}}', 'caller.isAdmin'],
    ['{"__proto__":{"limit":1}}', '__proto__'],
    ['{"caller":{"__proto__":{"key":"test"}}}', 'caller.__proto__'],
    ['{"constructor":{"prototype":{}}}', 'constructor']
  ] as const
  for (const [body, path] of bodies) {
    const { status, json, headers } = await call('POST', explain, { body })
    t.equal(status, 400, body)
    t.match(headers['content-type'], /^application\/problem\+json/)
    t.match(json, { errors: [{ path, message: 'is not a known key' }], remedy: /.+/, instance: explain }, body)
  }
})

/** Members that nobody has, at each depth of what a change holds. */
const planted: ReadonlyArray<readonly [member: string, value: unknown]> = [
  ['isAdmin', true],
  ['tenantId', 'globex'],
  ['createdBy', 'somebody'],
  ['secretHash', 'f'.repeat(64)],
  ['__proto__', { isAdmin: true }],
  ['constructor', { prototype: { isAdmin: true } }]
]

/** Those of them that are tried within, too: requests of a key are limited. */
const deeper: ReadonlySet<string> = new Set(['isAdmin', 'secretHash', '__proto__'])

/** Every object within a value, by its path: places at which a member may be planted. */
function placesIn(value: unknown, path: readonly string[] = []): ReadonlyArray<readonly string[]> {
  if (typeof value !== 'object' || value === null) return []
  const within = Object.entries(value).flatMap(([name, each]) => placesIn(each, [...path, name]))
  return Array.isArray(value) ? within : [path, ...within]
}

/** As JSON: `__proto__` as a member of its own, which no object of a script would have. */
function withMember(value: unknown, path: readonly string[], member: string, planted: unknown): string {
  const [first, ...rest] = path
  if (Array.isArray(value))
    return `[${value.map((each: unknown, at) => (String(at) === first ? withMember(each, rest, member, planted) : JSON.stringify(each))).join()}]`
  const own = Object.entries(value as object).map(([name, each]) => {
    const text = name === first ? withMember(each, rest, member, planted) : JSON.stringify(each)
    return `${JSON.stringify(name)}:${text}`
  })
  return `{${[...own, ...(first === undefined ? [`${JSON.stringify(member)}:${JSON.stringify(planted)}`] : [])].join()}}`
}

t.test('K217: a member that nobody has is refused at every depth of a document, and changes nothing', async (t) => {
  const { call } = await adminGateway(t, { upstreams: {} })
  const team = {
    auth: {
      keys: [{ name: 'ci', key: 'gh_key_of_a_team_0123456789', scopes: ['mcp'] }],
      issuers: [{ issuer: 'https://idp.example.com', jwksUri: 'https://idp.example.com/jwks' }]
    },
    upstreams: {
      up: { url: 'https://up.example.com/mcp', auth: { type: 'clientCredentials', clientId: 'c', clientSecret: 's' } }
    },
    endpoints: { default: { upstreams: ['up'], tools: { 'up/echo': { annotations: { readOnlyHint: true } } } } },
    policy: {
      default: 'deny',
      rules: [{ name: 'all', effect: 'allow', who: { keys: ['ci'] }, what: { names: ['*'] } }],
      tests: [{ name: 'up/echo', caller: { key: 'ci' }, expect: 'allowed' }]
    },
    limits: { steady: { perSecond: 5, who: { keys: ['ci'] } } }
  }
  const path = '/v1/tenants/team'
  const made = await call('PUT', path, { body: team })
  t.equal(made.status, 201, `the control: ${made.text}`)
  const before = (await call('GET', path)).text
  // Names of things may be any: there a member is a thing, and wrong as such.
  const places = placesIn(team)
  t.ok(places.length > 15, `${places.length} objects`)
  for (const place of places)
    for (const [member, value] of place.length === 0 ? planted : planted.filter(([name]) => deeper.has(name))) {
      const body = withMember(team, place, member, value)
      const { status, json } = await call('PUT', path, { body, headers: { 'If-Match': '*' } })
      const at = `${[...place, member].join('.')}: ${JSON.stringify(json)}`
      t.ok(status === 400 || status === 422, at)
      t.notMatch(JSON.stringify(json), 'f'.repeat(64), at)
    }
  t.equal((await call('GET', path)).text, before, 'nothing was changed')
  t.equal((Object.prototype as { isAdmin?: unknown }).isAdmin, undefined)
})

t.test('a body that is no JSON object of a fair size is refused before anything is done with it', async (t) => {
  const { call } = await started
  const bodies = ['', '[]', 'null', '"x"', '{', `{"caller":${'['.repeat(200)}${']'.repeat(200)}}`, '{"kind":"\ud800"}x']
  for (const body of bodies) t.equal((await call('POST', explain, { body })).status, 400, body.slice(0, 20))
  // Only announced: who is refused by the length alone must not have to send it.
  const long = ['Content-Type: application/json', 'Content-Length: 262145']
  t.equal((await raw([`POST ${explain} HTTP/1.1`, 'Host: 127.0.0.1:PORT', bearer, ...long])).status, 413)
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/json; charset=utf-16'
  ]
  for (const type of types)
    t.equal((await call('POST', explain, { body: '{}', headers: { 'Content-Type': type } })).status, 415, type)
  t.equal((await call('POST', explain, { body: '{}', headers: { 'Content-Encoding': 'gzip' } })).status, 415)
  t.equal((await call('POST', explain, { body: '{}' })).status, 200)
})

t.test('a query is taken as it is meant, or refused', async (t) => {
  const { call } = await started
  const list = (query: string) => call('GET', `/v1/tenants?${query}`)
  t.equal((await list('limit=1')).status, 200)
  const bad = [
    'limit=1e9',
    'limit=-1',
    'limit=NaN',
    'limit=0',
    'limit=201',
    'limit=',
    'limit=1&limit=2',
    'sort=__proto__'
  ]
  for (const query of [...bad, '__proto__=1', 'cursor=%00', 'cursor=!', `cursor=${'a'.repeat(2000)}`, 'filter[$ne]=1'])
    t.equal((await list(query)).status, 400, query)
})

t.test('every answer forbids to be kept, framed and guessed at', async (t) => {
  const { call } = await started
  for (const [path, key] of [
    ['/v1/limits', adminKeys.platform],
    ['/v1/none', adminKeys.platform],
    ['/v1/limits', null]
  ] as const) {
    const { headers } = await call('GET', path, { key })
    t.match(headers, {
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': /default-src 'none'/
    })
    t.notOk(headers['server'])
  }
})

t.test('what is no whole request is answered by a problem, too', async (t) => {
  const { adminUrl } = await started
  const { host, port } = new URL(adminUrl)
  const head = `GET /v1/limits HTTP/1.1\r\nHost: ${host}\r\n${bearer}\r\nConnection: close\r\n`
  const ask = (bytes: string) => rawExchange(Number(port), bytes)
  for (const [bytes, status, code] of [
    [`${head}X-Long: ${'x'.repeat(17_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['HELLO\r\n\r\n', 400, 'invalid_request']
  ] as const) {
    const answer = await ask(bytes)
    t.equal(answer.status, status)
    t.equal(answer.header('content-type'), 'application/problem+json')
    t.match(JSON.parse(answer.body), { type: `urn:gatehouse:problem:${code}`, status })
  }
  t.equal((await ask(`${head}X-Long: ${'x'.repeat(12_000)}\r\n\r\n`)).status, 200)
})

t.test('a body that has a member twice is refused by its name, however that is written', async (t) => {
  const { call } = await started
  const path = '/v1/tenants/twice'
  const put = (body: string) => call('PUT', path, { body })
  for (const [body, name] of [
    ['{"auth":{},"upstreams":{},"auth":{}}', 'auth'],
    ['{"auth":{},"upstreams":{"a":{"url":"https://a.example"},"a":{"url":"https://b.example"}}}', 'a'],
    [
      '{"auth":{},"upstreams":{},"policy":{"default":"deny","rules":[{"name":"x"}],"d\\u0065fault":"allow"}}',
      'default'
    ],
    ['{"auth":{},"upstreams":{},"a\\"":1,"a\\"":2}', 'a\\"'],
    ['{"__proto__":1,"__proto__":2}', '__proto__']
  ] as const)
    t.match(await put(body), {
      status: 400,
      json: {
        type: 'urn:gatehouse:problem:invalid_request',
        detail: `The body has the member "${name}" twice in one object.`
      }
    })
  t.equal((await call('GET', path)).status, 404, 'nothing was made')
  const tools = '"tools":["a/auth","a/auth","a/auth\\\\"]'
  const endpoints = `{"a":{"upstreams":["a"],"instructions":"\\",\\"auth\\":{}"},"auth":{"upstreams":["a"],"allow":{${tools}}}}`
  const made = await put(`{"auth":{},"upstreams":{"a":{"url":"https://a.example"}},"endpoints":${endpoints}}`)
  t.equal(made.status, 201, `equal names of several objects, and texts that look like members: ${made.text}`)
  t.equal((await call('DELETE', path, { headers: { 'If-Match': '*' } })).status, 204)
})

t.test('refused strangers have some lines of the log, and whoever has a key has each', async (t) => {
  // On a slow machine they have as many lines as they ask for.
  stopSteadyClock(t)
  const { call, log } = await adminGateway(t, { upstreams: {} })
  const linesOf = (level: number, administrator?: string): number =>
    log
      .filter((each) => each['msg'] === 'an admin request is refused' && each['level'] === level)
      .filter((each) => each['administrator'] === administrator).length
  const [debug, info] = [20, 30]
  let asked = 0
  // So many at once, and half of them of one address.
  for (; linesOf(debug) === 0 && asked < 2_000; asked++)
    t.ok([401, 429].includes((await call('GET', '/v1/limits', { key: null })).status))
  t.ok(linesOf(info) >= 400, `${linesOf(info)} lines`)
  t.ok(asked < 2_000, 'then they are left out')
  t.equal((await call('DELETE', '/v1/tenants/acme', { key: adminKeys.viewer })).status, 403)
  t.equal(linesOf(info, 'viewer'), 1)
})
