// The login front: a host gets in with the URL alone, whatever the company uses to sign people in.

import { moveClock } from '../kit/moving-clock.ts'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { browser } from '../kit/browser.ts'
import {
  authorizationUrl,
  begin,
  documentedClient,
  logIn,
  loginGateway,
  ownNetwork,
  pkce,
  redirectUri,
  register,
  tokens,
  use
} from './kit.ts'

const json = async (url: string): Promise<Record<string, unknown>> =>
  (await (await fetch(url)).json()) as Record<string, unknown>

t.test('from a 401 to a token, by metadata, registration, sign-in and consent', async (t) => {
  const front = await loginGateway(t)
  const refused = await fetch(front.url(), { method: 'POST', body: '{}' })
  t.equal(refused.status, 401)
  t.match(await refused.json(), { error: { message: /Follow resource_metadata to get one\.$/ } }, 'it has no keys')
  const metadataUrl = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '')?.[1] ?? ''
  t.match(await json(metadataUrl), { resource: front.url(), authorization_servers: [front.issuer] })
  const path = new URL(front.issuer).pathname
  for (const url of [
    `${front.origin}/.well-known/oauth-authorization-server${path}`,
    `${front.origin}/.well-known/openid-configuration${path}`,
    `${front.issuer}/.well-known/openid-configuration`
  ])
    t.match(await json(url), {
      issuer: front.issuer,
      authorization_endpoint: `${front.issuer}/auth`,
      token_endpoint: `${front.issuer}/token`,
      registration_endpoint: `${front.issuer}/reg`,
      revocation_endpoint: `${front.issuer}/token/revocation`,
      code_challenge_methods_supported: ['S256'],
      response_types_supported: ['code'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
      pushed_authorization_request_endpoint: undefined
    })

  const { page, end, status, body } = await logIn(front, front.url())
  t.match(page.html, /Allow A Host\?/)
  for (const part of ['Acme Corporation', 'ada@example.com', front.url(), '127.0.0.1:45678', 'mcp'])
    t.ok(page.html.includes(part), `the page says ${part}`)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/)
  t.equal(end.url.searchParams.get('state'), 's')
  t.equal(end.url.searchParams.get('iss'), front.issuer, 'RFC 9207')
  t.equal(status, 200)
  t.match(decodeProtectedHeader(body.access_token), { alg: 'ES256', typ: 'at+jwt' })
  t.match(decodeJwt(body.access_token), {
    iss: front.issuer,
    aud: front.url(),
    sub: 'ada',
    scope: 'mcp',
    groups: ['staff']
  })
  t.equal(await use(front.url(), body.access_token), 200)
  t.equal(await use(front.url('other'), body.access_token), 401, 'a token is for one endpoint')
  const [head = '', claims = '', signature = ''] = body.access_token.split('.')
  t.equal(await use(front.url(), `${head}.${claims}.${signature.replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))}`), 401)
})

t.test('who has signed in does not do so again; a new client is asked about all the same', async (t) => {
  const front = await loginGateway(t)
  const person = browser()
  await logIn(front, front.url(), person)
  front.provider.person = undefined
  const { page, status } = await logIn(front, front.url('other'), person)
  t.match(page.html, /Allow A Host\?/, 'the provider was not asked')
  t.equal(status, 200)
})

t.test('refusals come back to the client, and end at the client', async (t) => {
  const front = await loginGateway(t)
  const { clientId } = await register(front)
  const begin = (more: Record<string, string> = {}): string =>
    authorizationUrl(front, { client_id: clientId, state: 's', code_challenge: pkce().challenge, ...more })
  const person = browser()
  const page = await person.go(begin({ resource: front.url() }), redirectUri)
  const denied = await person.press(page, '/deny', redirectUri)
  t.match(Object.fromEntries(denied.url.searchParams), { error: 'access_denied', state: 's', iss: front.issuer })
  front.provider.person = undefined
  const other = await browser().go(begin({ resource: front.url() }), redirectUri)
  t.equal(other.url.searchParams.get('error'), 'access_denied', 'the provider does not let the person in')
  front.provider.person = 'ada'
  const implicit = await browser().go(begin({ response_type: 'token' }), redirectUri)
  t.match(implicit.url.href, /error=unsupported_response_type/)
  for (const [more, error] of [
    [{ resource: `${front.origin}/t/acme/nothing/mcp` }, 'invalid_target'],
    [{ resource: 'https://elsewhere.example/mcp' }, 'invalid_target'],
    [{ code_challenge_method: 'plain' }, 'invalid_request']
  ] as const)
    t.match((await browser().go(begin(more), redirectUri)).url.searchParams.get('error'), error)
  for (const more of [{ redirect_uri: 'https://evil.example/callback' }, { client_id: 'nobody' }] as const) {
    const stopped = await browser().go(begin(more), redirectUri)
    t.equal(stopped.url.origin, front.origin, 'an open redirect would be the attack')
    t.equal(stopped.status, 400)
    t.match(stopped.html, /This sign-in cannot go on.*(not known here|has not registered)/s)
  }
  const byDefault = await browser().go(begin(), redirectUri)
  t.ok(byDefault.html.includes(`<dd>${front.url()}</dd>`), 'without resource: the default endpoint')
})

t.test('a page that began in another browser goes nowhere', async (t) => {
  const front = await loginGateway(t)
  const { clientId } = await register(front)
  const url = authorizationUrl(front, { client_id: clientId, state: 's', code_challenge: pkce().challenge })
  const person = browser()
  const page = await person.go(url, redirectUri)
  t.match((await browser().go(page.url.href, redirectUri)).status, 400)
  await t.rejects(browser().press({ ...page, html: '' }, '/allow', redirectUri))
  const stolen = await browser().press(page, '/allow', redirectUri)
  t.equal(stolen.status, 400, 'nobody allows for somebody else')
  const cross = await fetch(`${page.url.href}/allow`, { method: 'POST', headers: { origin: 'https://evil.example' } })
  t.equal(cross.status, 403, 'nor does another page')
  const back = await fetch(`${front.issuer}/callback?code=x&state=y&iss=${encodeURIComponent(front.provider.url)}`)
  t.equal(back.status, 400)
  t.equal((await person.press(page, '/allow', redirectUri)).url.searchParams.has('code'), true)
})

t.test('codes and refresh tokens are good once', async (t) => {
  const front = await loginGateway(t)
  const first = await logIn(front, front.url())
  const grant = { client_id: first.clientId, resource: front.url() }
  const refreshed = await tokens(front, {
    ...grant,
    grant_type: 'refresh_token',
    refresh_token: String(first.body['refresh_token'])
  })
  t.equal(refreshed.status, 200)
  t.not(refreshed.body['refresh_token'], first.body['refresh_token'])
  const again = await tokens(front, {
    ...grant,
    grant_type: 'refresh_token',
    refresh_token: String(first.body['refresh_token'])
  })
  t.match(again, { status: 400, body: { error: 'invalid_grant' } })
  const after = await tokens(front, {
    ...grant,
    grant_type: 'refresh_token',
    refresh_token: String(refreshed.body['refresh_token'])
  })
  t.match(after, { status: 400, body: { error: 'invalid_grant' } }, 'a second use ends all of the grant')
  const code = { grant_type: 'authorization_code', redirect_uri: redirectUri, code_verifier: first.verifier }
  t.match(await tokens(front, { ...grant, ...code, code: first.code }), {
    status: 400,
    body: { error: 'invalid_grant' }
  })
})

t.test('who is disabled at the provider is out at the next refresh; whose groups change has them', async (t) => {
  const front = await loginGateway(t)
  const person = browser()
  const { clientId, body } = await logIn(front, front.url(), person)
  let token = String(body['refresh_token'])
  const refresh = async () => {
    const answer = await tokens(front, { grant_type: 'refresh_token', client_id: clientId, refresh_token: token })
    token = String(answer.body['refresh_token'] ?? token)
    return answer
  }
  t.teardown(() => moveClock(0))
  front.provider.groups.set('ada', ['admins'])
  t.match(decodeJwt((await refresh()).body.access_token), { groups: ['staff'] }, 'said a moment ago')
  moveClock(40_000)
  front.provider.tokenRequests = 0
  const both = await Promise.all([refresh(), logIn(front, front.url())])
  t.match(decodeJwt(both[0].body.access_token), { groups: ['admins'] })
  t.ok(front.provider.tokenRequests <= 2, 'a refresh token of the provider is used once')
  moveClock(80_000)
  front.provider.down = true
  t.match(await refresh(), { body: { error: 'temporarily_unavailable' } })
  front.provider.down = false
  t.equal((await refresh()).status, 200, 'nothing was used up')
  moveClock(120_000)
  front.provider.disabled.add('ada')
  t.equal((await logIn(front, front.url('other'), person)).status, 400, 'a browser that is signed in is not enough')
  t.match(await refresh(), { status: 400, body: { error: 'invalid_grant' } })
  front.provider.disabled.delete('ada')
  t.equal((await logIn(front, front.url('other'), person)).status, 200, 'and who comes back signs in again')
})

t.test('groups that no token could hold are refused at the sign-in where rules are about them, not cut', async (t) => {
  const rules = [{ name: 'no-x', effect: 'deny', who: { groups: ['x'] }, what: { kinds: ['tool'] } }]
  const front = await loginGateway(t, { policy: { default: 'allow', rules } })
  const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `group ${String(n).padStart(30)}`)
  front.provider.groups.set('ada', names(90))
  const { body } = await logIn(front, front.url())
  t.equal((decodeJwt(body.access_token)['groups'] as string[]).length, 90)
  t.equal(await use(front.url(), body.access_token), 200)
  front.provider.groups.set('ada', names(150))
  const { clientId } = await register(front)
  const url = authorizationUrl(front, { client_id: clientId, state: 's', code_challenge: pkce().challenge })
  t.equal((await browser().go(url, redirectUri)).url.searchParams.get('error'), 'server_error')
  t.match(
    front.log.find(({ reason }) => /150 groups/.test(String(reason)))?.['reason'],
    /only those that policies name/
  )
})

t.test('a login front that names no scopes has one', async (t) => {
  const front = await loginGateway(t, { login: { scopes: undefined } })
  const { body } = await logIn(front, front.url())
  t.equal(decodeJwt(body.access_token)['scope'], 'mcp')
})

t.test('whatever scopes a host registers, the person is asked for those of the endpoint', async (t) => {
  const front = await loginGateway(t)
  for (const scope of ['', 'openid profile email', 'of-another-server']) {
    const { status, body, clientId } = await register(front, { scope })
    t.equal(status, 201, `scope ${JSON.stringify(scope)}`)
    t.equal(body['scope'], undefined)
    const page = await browser().go(begin(front, clientId), redirectUri)
    t.match(page.html, /<dd>mcp<\/dd>/, 'as of a host that registers none')
  }
})

t.test('redirect URIs: https, loopback and apps; nothing that runs or can be listened to', async (t) => {
  const front = await loginGateway(t)
  const apps = 'cursor vscode vscode-insiders windsurf claude zed goose raycast com.example.app jetbrains cherrystudio'
  const good = [
    'https://claude.ai/api/mcp/auth_callback',
    'http://localhost/cb',
    'http://127.0.0.1:3000/cb',
    'cursor://anysphere.cursor-retrieval/oauth/user-mcp/callback',
    'com.example.app:/oauth',
    ...apps.split(' ').map((scheme) => `${scheme}://oauth/callback`)
  ]
  for (const uri of good) t.equal((await register(front, { redirect_uris: [uri] })).status, 201, uri)
  const away =
    'smb ftp ssh ws wss ldap ms-msdt search-ms ms-excel view-source mailto tel chrome chrome-extension jar filesystem'
  const bad = [
    'http://evil.example/cb',
    'http://127.0.0.1.evil.example/cb',
    'javascript:alert(1)',
    'data:text/html,x',
    'https://a.example/#f',
    ...away.split(' ').map((scheme) => `${scheme}://evil.example/share`),
    'SMB://evil.example/share',
    'ms-msdt:/id'
  ]
  for (const uri of bad) t.equal((await register(front, { redirect_uris: [uri] })).status, 400, uri)
  const web = { application_type: 'web' }
  t.equal((await register(front, { ...web, redirect_uris: ['https://a.example/cb'] })).status, 201)
  t.equal((await register(front, { ...web, redirect_uris: ['http://localhost/cb'] })).status, 201)
  for (const uri of ['http://app.localhost:9/cb', 'http://127.0.0.2/cb'])
    for (const type of [web, {}]) t.equal((await register(front, { ...type, redirect_uris: [uri] })).status, 201, uri)
  for (const uri of ['http://evil.example/cb', 'http://10.0.0.1/cb', 'http://localhost.evil.example/cb'])
    t.match(await register(front, { ...web, redirect_uris: [uri] }), { status: 400 }, uri)
  const app = 'cursor://evil.example/oauth/callback'
  const { clientId } = await register(front, { redirect_uris: [app] })
  const { html } = await browser().go(begin(front, clientId, { redirect_uri: app }), app)
  t.match(html, /an app on this device \(cursor:\/\/evil\.example\/oauth\/callback\)/, 'the page shows all of it')
})

t.test('one address that may not be used keeps a client from none of the others', async (t) => {
  const front = await loginGateway(t, { top: ownNetwork })
  const odd = ['http://evil.example/cb', 'javascript:alert(1)', 'smb://evil.example/x', 'https://a.example/#f', 'x']
  const redirect_uris = [redirectUri, ...odd]
  const registered = await register(front, { redirect_uris })
  t.equal(registered.status, 201)
  t.same(registered.body['redirect_uris'], [redirectUri])
  const { clientId } = await documentedClient(t, { redirect_uris })
  for (const id of [registered.clientId, clientId]) {
    for (const uri of odd) {
      const { status, url, html } = await browser().go(begin(front, id, { redirect_uri: uri }), uri)
      t.match([status, url.href, html], [400, new RegExp(`^${front.issuer}/auth`), /has not registered/], uri)
    }
    t.equal((await browser().go(begin(front, id), redirectUri)).status, 200, 'it is led to the page of consent')
  }
})

t.test('a metadata document names no address that could not be registered', async (t) => {
  const front = await loginGateway(t, { top: ownNetwork })
  for (const [uri, status] of [
    ['https://a.example/cb', 200],
    ['http://evil.example/cb', 400],
    ['smb://evil.example/share', 400]
  ] as const) {
    const { clientId } = await documentedClient(t, { redirect_uris: [uri], application_type: 'web' })
    t.equal((await browser().go(begin(front, clientId, { redirect_uri: uri }), uri)).status, status, uri)
  }
})

t.test('registrations and sign-ins that are begun are limited', async (t) => {
  const front = await loginGateway(t, { login: { registrationsPerHour: 2, authorizationsPerMinute: 2 } })
  t.equal((await register(front)).status, 201)
  const { status, clientId } = await register(front)
  t.equal(status, 201)
  const third = await register(front)
  t.match(third, { status: 429, body: { error: 'temporarily_unavailable' } })
  t.ok(Number(third.headers.get('retry-after')) > 0)
  const statuses = []
  for (let n = 0; n < 3; n++)
    statuses.push((await browser().go(begin(front, clientId), `${front.issuer}/interaction/`)).status)
  t.same(statuses, [303, 303, 429])
  t.equal((await register(front)).status, 429)
  const said = front.log.filter(({ msg }) => msg === 'the login front is asked too often')
  t.same(
    said.map(({ limit }) => limit),
    ['registrationsPerHour', 'authorizationsPerMinute'],
    'each once'
  )
})

t.test('a tenant without a login front has none, and keys are published without their private half', async (t) => {
  const front = await loginGateway(t, {
    tenants: { other: { auth: { keys: [{ name: 'ci', key: 'q7Xw2Zr9Lk4Vb8Nt' }] }, upstreams: {} } }
  })
  for (const path of ['/login/other/auth', '/login/nobody/jwks', '/.well-known/openid-configuration/login/other'])
    t.equal((await fetch(front.origin + path)).status, 404, path)
  t.equal((await fetch(`${front.issuer}/jwks`)).status, 200)
  t.notMatch(await json(`${front.issuer}/jwks`), { keys: [{ d: String }] }, 'the private half stays')
})

t.test('a restart on the same store loses nothing, and nothing of it can be read there', async (t) => {
  const file = join(t.testdir(), 'gatehouse.db')
  const first = await loginGateway(t, { top: { store: `file:${file}` } })
  const { clientId, body } = await logIn(first, first.url())
  await first.close()
  const { port, provider } = first
  const second = await loginGateway(t, { top: { store: `file:${file}` }, port, provider })
  const parameters = { grant_type: 'refresh_token', client_id: clientId, refresh_token: String(body['refresh_token']) }
  const refreshed = await tokens(second, parameters)
  t.equal(refreshed.status, 200, 'a restart loses nothing')
  t.equal(await use(second.url(), body.access_token), 200, 'the keys are those of before')
  const text = (await readFile(file)).toString('latin1')
  for (const secret of [clientId, String(body['refresh_token']), 'ada@example.com'])
    t.notOk(text.includes(secret), 'nothing of it can be read in the store')
})

t.test('a private address is not asked for the metadata document of a client', async (t) => {
  const front = await loginGateway(t)
  const { clientId, asked } = await documentedClient(t)
  t.equal((await fetch(clientId)).status, 200, 'it would be had')
  const ask = (at: typeof front) => browser().go(begin(at, clientId), redirectUri)
  const page = await ask(front)
  t.equal(page.status, 400)
  t.match(page.html, /metadata cannot be fetched/)
  t.equal(asked(), 1, 'nor is it connected to')
  const open = await loginGateway(t, { top: ownNetwork })
  t.match((await ask(open)).html, /Allow https:\/\/localhost/, 'where the operator allows it, it is')
})

t.test('a metadata document that is long, elsewhere, of another client or never there is none', async (t) => {
  const front = await loginGateway(t, { top: ownNetwork })
  const good = (response: ServerResponse, text: string): void =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(text)
  const bad: Record<string, Parameters<typeof documentedClient>[2]> = {
    'one megabyte': (response, text) => good(response, text + ' '.repeat(1_000_000)),
    'more than five kilobytes': (response, text) => good(response, text + ' '.repeat(5 * 1024)),
    'a megabyte of which it says nothing before': (response, text) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write(text)
      response.end(' '.repeat(1_000_000))
    },
    'a redirect': (response) => response.writeHead(302, { location: '/elsewhere' }).end(),
    'a lasting redirect': (response) => response.writeHead(308, { location: '/elsewhere' }).end(),
    'of another URL': (response, text) => good(response, text.replace('client.json"', 'other.json"')),
    'of a URL that is spelt otherwise': (response, text) => good(response, text.replace('//localhost', '//LOCALHOST')),
    'no document': (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    'never there': () => {}
  }
  await Promise.all(
    Object.entries(bad).map(async ([what, answer]) => {
      const { clientId, paths } = await documentedClient(t, {}, answer)
      const { status, html, url } = await browser().go(begin(front, clientId), redirectUri)
      t.match([status, url.href], [400, new RegExp(`^${front.issuer}/auth`)], what)
      t.match(html, /metadata/, what)
      t.notMatch(html, /Allow https:/, what)
      t.same([...new Set(paths)], ['/client.json'], `${what}: it is asked for, and nothing else is`)
    })
  )
  const { clientId } = await documentedClient(t, {}, (response, text) =>
    good(response, text + ' '.repeat(5 * 1024 - text.length))
  )
  t.match((await browser().go(begin(front, clientId), redirectUri)).html, /Allow https:\/\/localhost/)
})
