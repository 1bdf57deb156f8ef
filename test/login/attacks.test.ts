// The login front under those who want a token that is not theirs: clients that were allowed something else, pages of
// other origins, other browsers, a tenant or provider that came in place of another. What OAuth servers of MCP fail at
// (arXiv 2605.22333).

import { moveClock } from '../kit/moving-clock.ts'
import t from 'tap'
import { browser } from '../kit/browser.ts'
import { begin, logIn, loginGateway, pkce, redirectUri, refresh, register, tokens, use } from './kit.ts'

t.test('a client that was allowed one endpoint gets no token for another without asking', async (t) => {
  const front = await loginGateway(t)
  const uri = 'https://host.example/cb'
  const { clientId } = await register(front, { application_type: 'web', redirect_uris: [uri] })
  const person = browser()
  const ask = (resource: string, scope: string) =>
    person.go(begin(front, clientId, { redirect_uri: uri, resource, scope }), uri)
  await person.press(await ask(front.url(), 'openid mcp'), '/allow', uri)
  t.ok((await ask(front.url(), 'openid mcp')).url.searchParams.has('code'), 'what was allowed is not asked again')
  const overSse = (url: string): string => url.replace(/mcp$/, 'sse')
  t.ok((await ask(overSse(front.url()), 'mcp')).url.searchParams.has('code'), 'it is the same endpoint over HTTP+SSE')
  const other = await ask(overSse(front.url('other')), 'mcp')
  t.ok(other.html.includes(`<dd>${front.url('other')}</dd>`), 'and another one is another one')
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
  const rules = [{ name: 'no-x', effect: 'deny', who: { groups: ['x'] }, what: { kinds: ['tool'] } }]
  const front = await loginGateway(t, { policy: { default: 'allow', rules } })
  front.provider.claims = { _claim_names: { address: 'src1' } }
  t.equal((await logIn(front, front.url())).status, 200, 'of other claims nothing is needed')
  front.provider.claims = { _claim_names: { groups: 'src1' }, groups: undefined }
  const { clientId } = await register(front)
  t.equal((await browser().go(begin(front, clientId), redirectUri)).url.searchParams.get('error'), 'server_error')
  t.ok(front.log.some(({ reason }) => /_claim_names/.test(String(reason))))
})

t.test('the log says what the provider said', async (t) => {
  const front = await loginGateway(t)
  const reasons = (): unknown[] =>
    front.log.flatMap(({ msg, reason }) => (String(msg).endsWith('identity provider failed') ? reason : []))
  const { clientId } = await register(front)
  front.provider.person = undefined
  await browser().go(begin(front, clientId), redirectUri)
  t.same(reasons(), ['the provider answered access_denied (no)'])
  front.provider.person = 'ada'
  front.provider.isSecretWrong = true
  await browser().go(begin(front, clientId), redirectUri)
  t.match(reasons()[1], /^the provider answered invalid_client \(/)
})

t.test('nobody is sent to an address that no person has allowed here', async (t) => {
  const front = await loginGateway(t)
  const evil = 'https://evil.example/cb'
  const app = 'cursor://anysphere/cb'
  const { clientId } = await register(front, { application_type: 'web', redirect_uris: [evil] })
  const native = await register(front, { redirect_uris: [app, redirectUri] })
  const url = (more: Record<string, string>) => begin(front, clientId, { redirect_uri: evil, ...more })
  const withoutPkce = url({}).replace(/code_challenge=[^&]*&?/, '')
  front.provider.person = undefined
  for (const [each, target] of [
    [url({ prompt: 'none' }), 'evil.example'],
    [url({ resource: 'https://nope.example/' }), 'evil.example'],
    [withoutPkce, 'evil.example'],
    [url({}), 'evil.example'],
    [begin(front, native.clientId, { redirect_uri: app, prompt: 'none' }), app]
  ] as const) {
    const page = await browser().go(each, new URL(each).searchParams.get('redirect_uri') ?? '')
    t.equal(page.status, 400, each)
    t.equal(page.url.origin, front.origin)
    t.ok(page.html.includes(`Tell the app at <bdi>${target}</bdi>`), 'but may go there')
    t.match(page.html, /href="[^"]*error=/)
  }
  const local = await browser().go(begin(front, native.clientId, { prompt: 'none' }), redirectUri)
  t.equal(local.url.searchParams.get('error'), 'login_required', 'the own machine is nowhere else')

  front.provider.person = 'ada'
  const person = browser()
  const denied = await person.press(await person.go(url({ scope: 'mcp' }), evil), '/deny', evil)
  t.equal(denied.url.searchParams.get('error'), 'access_denied', 'who has seen the page is sent on')
  t.equal((await browser().go(url({ prompt: 'none' }), evil)).status, 400, 'which vouches for nobody else')
  await person.press(await person.go(url({ scope: 'mcp' }), evil), '/allow', evil)
  t.ok((await person.go(url({ scope: 'mcp', prompt: 'none' }), evil)).url.searchParams.has('code'))
  const stranger = await browser().go(url({ prompt: 'none' }), evil)
  t.equal(stranger.url.searchParams.get('error'), 'login_required', 'what a person has allowed hears of errors')
})

t.test('answers come in the query alone, and no page has a script', async (t) => {
  const front = await loginGateway(t)
  const metadata = (await (await fetch(`${front.issuer}/.well-known/openid-configuration`)).json()) as object
  t.match(metadata, { response_modes_supported: ['query'] })
  const { clientId } = await register(front)
  for (const mode of ['form_post', 'fragment', 'jwt', 'web_message']) {
    const { url } = await browser().go(begin(front, clientId, { response_mode: mode }), redirectUri)
    t.equal(url.searchParams.get('error'), 'unsupported_response_mode', mode)
    t.equal(url.hash, '')
  }
  const query = { response_mode: 'query', scope: 'mcp' }
  const person = browser()
  const asked = await person.go(begin(front, clientId, query), redirectUri)
  await person.press(asked, '/allow', redirectUri)
  const submit = ({ html, url }: typeof asked) => {
    const action = /<form method="post" action="([^"]+)"/.exec(html)?.[1] ?? ''
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(html)?.[1] ?? ''
    const init = { method: 'POST', body: new URLSearchParams({ xsrf, logout: 'yes' }) }
    return person.go(new URL(action, url).href, redirectUri, init)
  }
  // Another person takes over the browser; the provider asks about its own session first.
  front.provider.person = 'bob'
  const ofProvider = await person.go(begin(front, clientId, { ...query, prompt: 'login' }), redirectUri)
  t.equal(ofProvider.url.origin, front.provider.url)
  const changed = await submit(ofProvider)
  const out = await browser().go(`${front.issuer}/session/end`, redirectUri)
  for (const page of [changed, out]) {
    t.equal(page.url.origin, front.origin)
    t.equal(page.status, 200)
    t.match(page.headers.get('content-security-policy'), /default-src 'none'/)
    t.notMatch(page.html, /<script/)
    t.match(page.html, /<button class="primary">Go on/)
  }
  t.match((await submit(changed)).html, /bob@example\.com/, 'it goes on as the other person')
})

t.test('a name that turns text around, or cannot be seen, is shown as far as it can be', async (t) => {
  const front = await loginGateway(t)
  for (const [name, shown] of [
    ['Claude\u202etpo', 'Claudetpo'],
    ['Line1\nLine2\u2028x', 'Line1 Line2 x'],
    ['\u200b\u3164\u2800 ', undefined],
    [' ', undefined],
    ['日本 🎉', '日本 🎉']
  ] as const) {
    const { clientId } = await register(front, { client_name: name })
    const { html } = await browser().go(begin(front, clientId), redirectUri)
    t.ok(html.includes(`<h1>Allow <bdi>${shown ?? clientId}</bdi>?</h1>`), encodeURIComponent(name))
  }
})

t.test('the page says what the token will have, and what of it is new', async (t) => {
  const front = await loginGateway(t, { login: { scopes: ['mcp', 'files.write'] } })
  const { clientId } = await register(front)
  const person = browser()
  const ask = async (scope: string) => {
    const { verifier, challenge } = pkce()
    const more = { scope, code_challenge: challenge }
    const page = await person.go(begin(front, clientId, more), redirectUri)
    const { url } = await person.press(page, '/allow', redirectUri)
    const code = { code: url.searchParams.get('code') ?? '', code_verifier: verifier, redirect_uri: redirectUri }
    const { body } = await tokens(front, { grant_type: 'authorization_code', client_id: clientId, ...code })
    return [/It may<\/dt><dd>([^<]*)/.exec(page.html)?.[1], body['scope']]
  }
  t.same(await ask('mcp'), ['mcp', 'mcp'])
  t.same(await ask('mcp'), ['mcp', 'mcp'], 'asked again, for the same')
  t.same(await ask('mcp files.write'), ['mcp, files.write (new)', 'mcp files.write'])
  t.same(await ask('files.write'), ['files.write', 'files.write'])
})
