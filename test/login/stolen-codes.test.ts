// Codes and addresses that are not those of the one who brings them: redirect confusion, injected codes, clients that
// take the place of others, and providers that are mixed up (RFC 9700 section 4; arXiv 2605.22333).

import t from 'tap'
import { browser } from '../kit/browser.ts'
import { authorizationUrl, begin, logIn, loginGateway, pkce, redirectUri, register, tokens } from './kit.ts'

type Front = Awaited<ReturnType<typeof loginGateway>>

/** A person allowed the client; its code has not been used. */
async function codeOf(front: Front, clientId: string, person = browser()) {
  const { verifier, challenge } = pkce()
  const page = await person.go(begin(front, clientId, { code_challenge: challenge }), redirectUri)
  const { url } = await person.press(page, '/allow', redirectUri)
  return { verifier, code: url.searchParams.get('code') ?? '', iss: url.searchParams.get('iss') }
}

t.test('an answer goes to an address that the client registered, compared letter by letter', async (t) => {
  const front = await loginGateway(t)
  const registered = 'https://host.example/cb'
  const { clientId } = await register(front, { application_type: 'web', redirect_uris: [registered] })
  const ask = async (uri: string) => await browser().go(begin(front, clientId, { redirect_uri: uri }), uri)
  for (const uri of [
    'https://host.example/cb/',
    'https://host.example/cb?x=1',
    'https://host.example/cb/../evil',
    'https://host.example/%63b',
    'https://host.example:8443/cb',
    'https://host.example.evil.example/cb',
    'https://evil.example/https://host.example/cb',
    'https://host.example@evil.example/cb',
    'https://x.host.example/cb',
    'http://host.example/cb',
    'HTTPS://HOST.EXAMPLE/cb',
    '//host.example/cb',
    'javascript:alert(1)//https://host.example/cb'
  ]) {
    const { status, html, headers } = await ask(uri)
    t.equal(status, 400, uri)
    t.equal(headers.get('location'), null, 'nobody is sent anywhere')
    t.match(html, /has not registered/)
  }
  const twice = `${begin(front, clientId, { redirect_uri: registered })}&redirect_uri=https%3A%2F%2Fevil.example`
  const page = await browser().go(twice, 'https://')
  t.match(page, { status: 400, html: /href="https:\/\/host\.example\/cb\?error=invalid_request/ })
  t.notMatch(page.html, /evil/, 'two addresses are none')
  t.match((await ask(registered)).html, /Allow A Host\?/, 'the registered one is asked about')
})

t.test('on the machine of a person the port is free, and nothing else', async (t) => {
  const front = await loginGateway(t)
  const { clientId } = await register(front, { redirect_uris: ['http://127.0.0.1/callback'] })
  const ask = async (uri: string) => await browser().go(begin(front, clientId, { redirect_uri: uri }), 'x')
  for (const uri of ['http://127.0.0.1:5/other', 'http://127.0.0.1.evil.example:5/callback', 'http://[::1]:5/callback'])
    t.equal((await ask(uri)).status, 400, uri)
  t.match((await ask('http://127.0.0.1:50505/callback')).html, /Allow A Host\?/)
})

t.test('a code is worth nothing to another client, at another address, or without what began it', async (t) => {
  const front = await loginGateway(t)
  const { clientId } = await register(front)
  const thief = await register(front)
  const victim = await codeOf(front, clientId)
  const own = await codeOf(front, thief.clientId)
  t.equal(victim.iss, front.issuer, 'RFC 9207: a host knows whose answer it has')
  const grant = { grant_type: 'authorization_code', redirect_uri: redirectUri }
  const good = { ...grant, client_id: clientId, code: victim.code, code_verifier: victim.verifier }
  for (const [what, parameters] of Object.entries({
    'of another client': { ...good, client_id: thief.clientId },
    'into the session of somebody else': { ...good, code_verifier: own.verifier },
    'without a verifier': { ...grant, client_id: clientId, code: victim.code },
    'at another address': { ...good, redirect_uri: 'http://127.0.0.1:1/callback' }
  })) {
    const { status, body } = await tokens(front, parameters)
    t.match({ status, body }, { status: 400, body: { error: /^invalid_(?:grant|request)$/ } }, what)
  }
  const { code, verifier } = await codeOf(front, clientId)
  t.equal((await tokens(front, { ...good, code, code_verifier: verifier })).status, 200, 'a fresh one works')
})

t.test('a host that names no challenge, or a plain one, begins nothing', async (t) => {
  const front = await loginGateway(t)
  const { clientId } = await register(front)
  const start = async (more: Record<string, string>) => {
    const url = new URL(authorizationUrl(front, { client_id: clientId, state: 's', ...more }))
    if (more['code_challenge'] === undefined) url.searchParams.delete('code_challenge_method')
    return await browser().go(url.href, redirectUri)
  }
  t.equal((await start({})).url.searchParams.get('error'), 'invalid_request')
  const plain = { code_challenge: 'x'.repeat(43), code_challenge_method: 'plain' }
  t.equal((await start(plain)).url.searchParams.get('error'), 'invalid_request')
  t.match((await start({ code_challenge: pkce().challenge })).html, /Allow A Host\?/)
})

t.test("an answer in the name of another provider is not taken for the tenant's", async (t) => {
  const front = await loginGateway(t)
  const { clientId } = await register(front)
  const callback = `${front.issuer}/callback`
  for (const [what, change] of Object.entries({
    'of another issuer': (url: URL) => url.searchParams.set('iss', 'https://evil.example'),
    'of no issuer, where the provider names itself': (url: URL) => url.searchParams.delete('iss'),
    'with the code of another sign-in': (url: URL, other: URL) =>
      url.searchParams.set('code', other.searchParams.get('code') ?? '')
  })) {
    const [person, attacker] = [browser(), browser()]
    const [answer, other] = [
      await person.go(begin(front, clientId), callback),
      await attacker.go(begin(front, clientId), callback)
    ]
    const url = new URL(answer.url)
    change(url, other.url)
    const end = await person.go(url.href, redirectUri)
    t.notMatch(end.html, /Allow A Host/, what)
    t.notOk(end.url.searchParams.has('code'), what)
  }
  const person = browser()
  const { url } = await person.go(begin(front, clientId), callback)
  t.match((await person.go(url.href, redirectUri)).html, /Allow A Host\?/, 'its own is')
})

t.test('what a stranger registers is shown as text, may nothing by itself, and cannot be taken over', async (t) => {
  const front = await loginGateway(t)
  const name = '<script>alert(1)</script><img src=x onerror=alert(1)> Claude'
  const { clientId, body } = await register(front, {
    client_name: name,
    redirect_uris: ['https://evil.example/cb'],
    logo_uri: 'https://evil.example/pixel',
    client_uri: 'https://evil.example/'
  })
  const { html } = await browser().go(begin(front, clientId, { redirect_uri: 'https://evil.example/cb' }), 'x')
  t.notMatch(html, /<script|<img/)
  t.match(html, /evil\.example/, 'the person sees where the answer goes')
  const own = { authorization: `Bearer ${String(body['registration_access_token'])}` }
  const at = `${front.issuer}/reg/${clientId}`
  const change = async (method: string, headers: Record<string, string>): Promise<number> =>
    (await fetch(at, { method, headers })).status
  t.equal(await change('GET', {}), 401, 'nobody else reads a registration')
  t.equal(await change('GET', own), 200)
  for (const method of ['PUT', 'DELETE'])
    t.not((await change(method, own)) < 400, true, `nobody changes one: ${method}`)
  const other = await register(front)
  const foreign = await fetch(`${front.issuer}/reg/${other.clientId}`, { headers: own })
  t.equal(foreign.status, 401)
  for (const metadata of [
    { grant_types: ['client_credentials'] },
    { grant_types: ['password'] },
    { grant_types: ['implicit'], response_types: ['token'] },
    { response_types: ['code id_token'] },
    { redirect_uris: [] },
    { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'http://127.0.0.1:9/' },
    { id_token_signed_response_alg: 'none' },
    { id_token_signed_response_alg: 'HS256' }
  ])
    t.equal((await register(front, metadata)).status, 400, JSON.stringify(metadata))
  const withKeys = await register(front, { jwks_uri: 'http://169.254.169.254/' })
  t.match(withKeys, { status: 201, body: { jwks_uri: undefined } }, 'no address of keys is kept, nor asked')
  const secret = await tokens(front, { grant_type: 'client_credentials', client_id: clientId })
  t.match(secret, { status: 400 })
  t.equal((await register(front, { client_id: clientId })).clientId === clientId, false, 'ids are given, not chosen')
})

t.test('what one person allowed lets no other one in', async (t) => {
  const front = await loginGateway(t)
  const uri = 'https://host.example/cb'
  const { clientId } = await register(front, { application_type: 'web', redirect_uris: [uri] })
  const ask = (person: ReturnType<typeof browser>) => person.go(begin(front, clientId, { redirect_uri: uri }), uri)
  const ada = browser()
  await ada.press(await ask(ada), '/allow', uri)
  t.ok((await ask(ada)).url.searchParams.has('code'), 'she is not asked again')
  front.provider.person = 'bob'
  t.match((await ask(browser())).html, /Allow A Host\?/, 'he is')
  const silent = await browser().go(begin(front, clientId, { redirect_uri: uri, prompt: 'none' }), uri)
  t.match(silent.url.searchParams.get('error'), /_required$/, 'nor is he passed over in silence')
})

t.test('what a refresh token and its tokens are good for does not grow', async (t) => {
  const front = await loginGateway(t, { login: { scopes: ['mcp', 'admin'] } })
  const attempt = async (change: (front: Front) => Promise<Record<string, string>>) => {
    const { clientId, body } = await logIn(front, front.url())
    const grant = { grant_type: 'refresh_token', client_id: clientId, refresh_token: String(body['refresh_token']) }
    return await tokens(front, { ...grant, ...(await change(front)) })
  }
  const other = await attempt(async () => ({ resource: front.url('other') }))
  t.match(other, { status: 400, body: { error: 'invalid_target' } }, 'another endpoint was not allowed')
  const thief = await attempt(async () => ({ client_id: (await register(front)).clientId }))
  t.match(thief, { status: 400, body: { error: 'invalid_grant' } })
  t.match(await attempt(async () => ({ scope: 'mcp offline_access more' })), { status: 400 })
  t.equal((await attempt(async () => ({ resource: front.url(), scope: 'mcp' }))).status, 200)
})
