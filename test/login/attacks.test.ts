// The login front under those who want a token that is not theirs, or to fill what it keeps: strangers, clients that
// were allowed something else, pages of other origins, a tenant or provider that came in place of another. What OAuth
// servers of MCP fail at (arXiv 2605.22333).

import { moveClock } from '../kit/moving-clock.ts'
import { createServer } from 'node:http'
import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { unavailable } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { browser } from '../kit/browser.ts'
import { listen } from '../kit/listen.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { quiet } from '../store/kit.ts'
import { authorizationUrl, logIn, loginGateway, pkce, redirectUri, register, tokens, use } from './kit.ts'

type Front = Awaited<ReturnType<typeof loginGateway>>

const begin = (front: Front, clientId: string, more: Record<string, string> = {}): string =>
  authorizationUrl(front, { client_id: clientId, state: 's', code_challenge: pkce().challenge, ...more })

const refresh = ({ issuer }: Front, { clientId, body }: Awaited<ReturnType<typeof logIn>>) =>
  tokens({ issuer }, { grant_type: 'refresh_token', client_id: clientId, refresh_token: String(body['refresh_token']) })

t.test('no other spelling of a path gets around the limits of strangers', async (t) => {
  const front = await loginGateway(t, { login: { registrationsPerHour: 1, authorizationsPerMinute: 3 } })
  const registerAt = async (path: string): Promise<number> => {
    const body = JSON.stringify({ redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' })
    const headers = { 'content-type': 'application/json' }
    return (await fetch(front.issuer + path, { method: 'POST', headers, body })).status
  }
  t.equal(await registerAt('/reg'), 201)
  t.equal(await registerAt('/reg'), 429)
  for (const path of ['/REG', '/reg/', '/Reg', '/%72eg', '//reg', '/reg//']) t.equal(await registerAt(path), 404, path)
  const get = async (path: string): Promise<number> => (await fetch(front.issuer + path, { redirect: 'manual' })).status
  t.equal(await get('/auth?client_id=nobody'), 400)
  for (const path of ['/AUTH?client_id=nobody', '/auth/?client_id=nobody', '/Session/end'])
    t.equal(await get(path), 404)
  t.equal(await get('/session/end'), 200, 'it leaves a session in the store')
  t.equal(await get('/session/end'), 200)
  t.equal(await get('/session/end'), 429, 'and is counted with what is begun')
})

t.test('what a stranger says is kept only where it is short', async (t) => {
  const front = await loginGateway(t)
  t.equal((await register(front, { client_name: 'x'.repeat(4_000) })).status, 201)
  const long = await register(front, { client_name: 'x'.repeat(10_000) })
  t.match(long, { status: 400, body: { error_description: /more than 8192 characters/ } })
  const { clientId } = await register(front)
  const person = browser()
  t.match((await person.go(begin(front, clientId, { state: 'x'.repeat(4_000) }), redirectUri)).html, /Allow A Host\?/)
  const stopped = await browser().go(begin(front, clientId, { state: 'x'.repeat(9_000) }), redirectUri)
  t.equal(stopped.url.searchParams.get('error'), 'invalid_request')
})

t.test('requests for tokens make the gateway fetch no more metadata documents than sign-ins may begin', async (t) => {
  const front = await loginGateway(t, { login: { authorizationsPerMinute: 2 } })
  let connections = 0
  const server = createServer().on('connection', (socket) => {
    connections += 1
    socket.destroy()
  })
  const { port } = new URL(await listen(t, server))
  const ask = (n: number) => tokens(front, { client_id: `https://localhost:${port}/${n}`, grant_type: 'refresh_token' })
  for (let n = 1; n <= 2; n++) t.equal((await ask(n)).status, 400)
  t.equal(connections, 2, 'positive control')
  t.equal((await ask(3)).status, 400)
  t.equal(connections, 2)
})

t.test('bodies of strangers that do not end are counted, and given back', async (t) => {
  const said: unknown[] = []
  const { error } = console
  console.error = (...words) => said.push(words)
  t.teardown(() => (console.error = error))
  const memory = createMemoryAccount(32 * 1024 * 1024)
  const front = await loginGateway(t, { overrides: { memory } })
  const { status } = await register(front)
  t.equal(status, 201)
  await until('what it took is given back', () => memory.held === 0)
  const answers: string[] = []
  const sockets = Array.from({ length: 60 }, () => {
    const socket = dial(front.port)
    socket.on('data', (chunk: Buffer) => answers.push(chunk.toString('latin1')))
    socket.write(
      `POST /login/acme/token HTTP/1.1\r\nhost: 127.0.0.1:${front.port}\r\ncontent-length: 57000\r\n` +
        `content-type: application/x-www-form-urlencoded\r\n\r\n${'x'.repeat(40_000)}`
    )
    return socket
  })
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  await until('those beyond the share of strangers are refused', () => answers.length > 15)
  t.ok(answers.every((answer) => answer.startsWith('HTTP/1.1 429 ') && answer.includes('limits.memoryBytes')))
  t.ok(memory.held <= memory.budgetBytes / 4)
  for (const socket of sockets) socket.destroy()
  await until('all of it is given back', () => memory.held === 0)
  await until('they broke off', () => front.log.some(({ msg }) => /came to no end/.test(String(msg))))
  t.same(said, [], 'of which nobody is told')
  t.same(
    front.log.filter(({ level }) => Number(level) >= 50),
    []
  )
  t.equal((await register(front)).status, 201)
})

t.test('a client that was allowed one endpoint gets no token for another without asking', async (t) => {
  const front = await loginGateway(t)
  const uri = 'https://host.example/cb'
  const { clientId } = await register(front, { application_type: 'web', redirect_uris: [uri] })
  const person = browser()
  const ask = (resource: string, scope: string) =>
    person.go(begin(front, clientId, { redirect_uri: uri, resource, scope }), uri)
  await person.press(await ask(front.url(), 'openid mcp'), '/allow', uri)
  t.ok((await ask(front.url(), 'openid mcp')).url.searchParams.has('code'), 'what was allowed is not asked again')
  for (const scope of ['openid', 'openid offline_access', 'mcp']) {
    const page = await ask(front.url('other'), scope)
    t.ok(page.html.includes(`<dd>${front.url('other')}</dd>`), `${scope}: the person is asked about the other endpoint`)
  }
})

t.test('a client of the web whose answer goes to the machine of the person is asked about each time', async (t) => {
  const front = await loginGateway(t)
  const local = 'http://localhost:45678/cb'
  for (const [uri, again] of [
    [local, /Allow A Host\?/],
    ['https://host.example/cb', /^$/]
  ] as const) {
    const { clientId } = await register(front, { application_type: 'web', redirect_uris: [uri] })
    const person = browser()
    const ask = () => person.go(begin(front, clientId, { redirect_uri: uri, scope: 'mcp' }), uri)
    await person.press(await ask(), '/allow', uri)
    t.match((await ask()).html, again, uri)
  }
})

t.test('the page of another origin that the tenant lists cannot answer for the person', async (t) => {
  const front = await loginGateway(t, { origins: ['https://app.example.com'] })
  const { clientId } = await register(front)
  const person = browser()
  const page = await person.go(begin(front, clientId), redirectUri)
  const allow = (origin: string) =>
    person.go(`${page.url.href}/allow`, redirectUri, { method: 'POST', headers: { origin }, body: '' })
  t.equal((await allow('https://app.example.com')).status, 403)
  t.equal((await allow('null')).status, 403)
  t.ok((await allow(front.origin)).url.searchParams.has('code'), 'the page itself can')
})

t.test('signing out leads to no address that a client has registered', async (t) => {
  const front = await loginGateway(t)
  const evil = 'https://evil.example/'
  const { clientId } = await register(front, { post_logout_redirect_uris: [evil] })
  const person = browser()
  await logIn(front, front.url(), person)
  const url = `${front.issuer}/session/end?client_id=${clientId}&post_logout_redirect_uri=${evil}`
  const page = await person.go(url, evil)
  t.match(page.html, /Sign out\?/)
  const action = /action="([^"]+)"/.exec(page.html)?.[1] ?? ''
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(page.html)?.[1] ?? ''
  const out = await person.go(action, evil, { method: 'POST', body: new URLSearchParams({ xsrf, logout: 'yes' }) })
  t.match([out.url.origin, out.html], [front.origin, /You are signed out/])
})

t.test('who has begun once cannot have ways to the provider without end', async (t) => {
  const front = await loginGateway(t, { login: { authorizationsPerMinute: 3 } })
  const { clientId } = await register(front)
  const person = browser()
  const { url } = await person.go(begin(front, clientId), `${front.issuer}/interaction/`)
  const again = () => person.go(url.href, front.provider.url)
  for (let n = 0; n < 3; n++) t.equal((await again()).url.origin, front.provider.url)
  t.match(await again(), { status: 429, html: /Too many people sign in/ })
})

t.test('several apps can sign in at the same time in one browser', async (t) => {
  const front = await loginGateway(t)
  const { clientId } = await register(front)
  const person = browser()
  const first = await person.go(begin(front, clientId), `${front.issuer}/callback`)
  const second = await person.go(begin(front, clientId), `${front.issuer}/callback`)
  t.match((await browser().go(first.url.href, redirectUri)).html, /began in another browser/, 'and in no other one')
  const third = await person.go(begin(front, clientId), `${front.issuer}/callback`)
  for (const { url } of [third, second])
    t.match((await person.go(url.href, redirectUri)).html, /Allow A Host\?/, 'whichever comes back first')
})

t.test('a tenant of the same name, or another provider, inherits nothing', async (t) => {
  const front = await loginGateway(t, {
    tenants: { other: { auth: { keys: [{ name: 'ci', key: 'q7Xw2Zr9Lk4Vb8Nt' }] }, upstreams: {} } }
  })
  const before = await logIn(front, front.url())
  front.reload(front.config)
  const kept = await refresh(front, before)
  t.equal(kept.status, 200, 'a reload keeps what it can')
  t.equal(await use(front.url(), kept.body.access_token), 200)
  const { acme, ...others } = front.config.tenants
  front.reload({ ...front.config, tenants: others })
  front.reload(front.config)
  t.match(await refresh(front, { ...before, body: kept.body }), { status: 401, body: { error: 'invalid_client' } })
  t.equal(await use(front.url(), kept.body.access_token), 401, 'its keys are new, too')
  const after = await logIn(front, front.url())
  t.equal(await use(front.url(), after.body.access_token), 200)

  const { auth } = acme as { auth: { login: { provider: object } } }
  const provider = { ...auth.login.provider, issuer: 'https://other.example' }
  const login = { ...auth.login, provider }
  front.reload({ ...front.config, tenants: { ...others, acme: { ...(acme as object), auth: { ...auth, login } } } })
  t.match(await refresh(front, after), { status: 401, body: { error: 'invalid_client' } })
})

t.test('who cannot be asked about at the provider signs in again after a working day', async (t) => {
  const front = await loginGateway(t, { login: { sessionHours: 2 } })
  front.provider.hasRefreshTokens = false
  t.teardown(() => moveClock(0))
  const person = browser()
  t.equal((await logIn(front, front.url(), person)).status, 200)
  const asked = (): number => front.provider.tokenRequests
  moveClock(90 * 60_000)
  t.equal((await logIn(front, front.url(), person)).status, 200)
  t.equal(asked(), 1, 'not yet')
  moveClock(150 * 60_000)
  t.equal((await logIn(front, front.url(), person)).status, 200, 'the browser, whose session was used, is sent there')
  t.equal(asked(), 2)
})

t.test('groups that the ID token only points to are not taken as none', async (t) => {
  const front = await loginGateway(t)
  front.provider.claims = { _claim_names: { address: 'src1' } }
  t.equal((await logIn(front, front.url())).status, 200, 'of other claims nothing is needed')
  front.provider.claims = { _claim_names: { groups: 'src1' }, groups: undefined }
  const { clientId } = await register(front)
  t.equal((await browser().go(begin(front, clientId), redirectUri)).url.searchParams.get('error'), 'server_error')
  t.ok(front.log.some(({ reason }) => /_claim_names/.test(String(reason))))
})

t.test('the log says what the provider said', async (t) => {
  const front = await loginGateway(t)
  const reasons = (): unknown[] => front.log.flatMap(({ reason }) => reason ?? [])
  const { clientId } = await register(front)
  front.provider.person = undefined
  await browser().go(begin(front, clientId), redirectUri)
  t.same(reasons(), ['the provider answered access_denied (no)'])
  front.provider.person = 'ada'
  front.provider.isSecretWrong = true
  await browser().go(begin(front, clientId), redirectUri)
  t.match(reasons()[1], /^the provider answered invalid_client \(/)
})

t.test('while the store is away hosts are told to come back, and nothing is used up', async (t) => {
  let isAway = false
  const store = new Proxy(await createSqliteStore({ path: ':memory:', clock: Date, log: quiet }), {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown => {
        if (isAway && ['get', 'set', 'count', 'entries', 'append', 'touch', 'delete'].includes(String(name)))
          return Promise.reject(unavailable('The store cannot be reached.'))
        return (member as (...given: unknown[]) => unknown).apply(target, args)
      }
    }
  })
  const front = await loginGateway(t, { overrides: { store } })
  const before = await logIn(front, front.url())
  t.teardown(() => moveClock(0))
  for (const ms of [0, 120_000]) {
    moveClock(ms)
    isAway = true
    const refused = await refresh(front, before)
    t.match(refused.body, { error: 'temporarily_unavailable' }, 'with keys that are known and without')
    isAway = false
  }
  t.equal((await refresh(front, before)).status, 200)
  t.notOk(front.log.some(({ msg }) => msg === 'the login front failed'))
})
