// The login front under those who want a token that is not theirs: clients that were allowed something else, pages of
// other origins, other browsers, a tenant or provider that came in place of another. What OAuth servers of MCP fail at
// (arXiv 2605.22333).

import { moveClock } from '../kit/moving-clock.ts'
import t from 'tap'
import { browser } from '../kit/browser.ts'
import { begin, logIn, loginGateway, redirectUri, refresh, register, use } from './kit.ts'

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
  for (const signOut of [true, false]) {
    const front = await loginGateway(t, { of: { signOut } })
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
    if (signOut) t.equal(out.url.origin, front.provider.url, 'but to the provider')
    else t.match([out.url.origin, out.html], [front.origin, /You are signed out/])
    t.notMatch(out.url.href, /evil/)
  }
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
