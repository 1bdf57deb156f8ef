// What a person has allowed is theirs to see and to take back; and who signs out does so at the provider, too.

import t from 'tap'
import { browser } from '../kit/browser.ts'
import { begin, logIn, loginGateway, redirectUri, refresh, register } from './kit.ts'

const nowhere = 'no redirect is left out'

t.test('a page lists what was allowed, and takes it back', async (t) => {
  const front = await loginGateway(t)
  const person = browser()
  const page = `${front.issuer}/consents`
  t.match((await person.go(page, nowhere)).html, /You are ada@example\.com.*None\./s, 'who is not signed in, signs in')
  const first = await logIn(front, front.url(), person)
  const second = await logIn(front, front.url('other'), person)
  const { html } = await person.go(page, nowhere)
  for (const part of ['A Host', first.clientId, second.clientId, `${front.url()}: mcp`, `${front.url('other')}: mcp`])
    t.ok(html.includes(part), part)
  const ids = [...html.matchAll(/consents\/([^/"]+)\/revoke/g)].map(([, id = '']) => id)
  t.equal(ids.length, 2)
  const [newest = '', oldest = ''] = ids
  const stranger = browser()
  front.provider.person = 'bob'
  await stranger.go(page, nowhere)
  const revoke = (who: typeof person, id: string, origin = front.origin, accept = 'text/html') =>
    who.go(`${page}/${id}/revoke`, nowhere, { method: 'POST', headers: { origin, accept } })
  t.equal((await revoke(stranger, newest)).status, 404, 'of somebody else there is nothing')
  t.equal((await revoke(person, newest, 'https://evil.example')).status, 403, 'nor does another page take back')
  const asJson = await person.go(`${front.issuer}/consents/${newest}/revoke`, nowhere, {
    method: 'POST',
    headers: { accept: 'application/json' }
  })
  t.equal(asJson.status, 403)
  t.match(JSON.parse(asJson.html), { error_description: `Send the header "Origin: ${front.origin}".` })
  t.equal((await revoke(browser(), newest)).status, 401)
  const kept = await refresh(front, second)
  t.equal(kept.status, 200, 'nothing was taken back')
  const after = await person.press(await person.go(page, nowhere), `/${newest}/revoke`, nowhere)
  t.match(after, { status: 200, html: /What you allowed/ })
  t.notOk(after.html.includes(second.clientId))
  t.match(await refresh(front, { ...second, body: kept.body }), { status: 400, body: { error: 'invalid_grant' } })
  t.equal((await refresh(front, first)).status, 200, 'the other one stays')
  const again = await person.go(begin(front, second.clientId, { resource: front.url('other') }), redirectUri)
  t.match(again.html, /Allow A Host\?/, 'and whoever comes again asks')
  t.equal((await revoke(person, oldest, front.origin, 'application/json')).status, 204)
  t.equal((await revoke(person, oldest, front.origin, 'application/json')).status, 404)
})

t.test('the same as JSON', async (t) => {
  const front = await loginGateway(t)
  const person = browser()
  const page = `${front.issuer}/consents`
  const json = async (who: typeof person) => {
    const { status, html } = await who.go(page, nowhere, { headers: { accept: 'application/json' } })
    return { status, body: JSON.parse(html) as Record<string, unknown> }
  }
  t.match(await json(person), { status: 401, body: { error: 'login_required' } })
  const { clientId } = await logIn(front, front.url(), person)
  t.match(await json(person), {
    status: 200,
    body: {
      account: 'ada@example.com',
      consents: [{ client: clientId, name: 'A Host', resources: { [front.url()]: 'mcp' }, since: /^20/ }]
    }
  })
})

const signOut = (person: ReturnType<typeof browser>, html: string, issuer: string) =>
  person.go(`${issuer}/session/end/confirm`, nowhere, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: new URL(issuer).origin },
    body: new URLSearchParams({ xsrf: /name="xsrf" value="([^"]+)"/.exec(html)?.[1] ?? '', logout: 'yes' }).toString()
  })

for (const signsOut of [true, false])
  t.test(`signing out ${signsOut ? 'goes on' : 'does not go on'} at the provider`, async (t) => {
    const front = await loginGateway(t, { of: { signOut: signsOut } })
    const person = browser()
    const app = await logIn(front, front.url(), person)
    const page = await person.go(`${front.issuer}/session/end`, nowhere)
    t.equal(
      page.headers.get('content-security-policy')?.includes(front.provider.url),
      signsOut,
      'the form may lead there'
    )
    const end = await signOut(person, page.html, front.issuer)
    t.equal(end.status, 200)
    if (signsOut) {
      t.equal(end.url.origin + end.url.pathname, `${front.provider.url}/session/end`)
      t.match(Object.fromEntries(end.url.searchParams), {
        client_id: 'gatehouse',
        post_logout_redirect_uri: `${front.issuer}/session/end/success`,
        id_token_hint: /^[\w-]+\.[\w-]+\.[\w-]+$/
      })
    } else t.match(end.html, /Signed out/)
    const json = await person.go(`${front.issuer}/consents`, nowhere, { headers: { accept: 'application/json' } })
    t.equal(json.status, 401, 'here the person is out in both cases')
    t.equal((await refresh(front, app)).status, 200, 'apps keep what they were allowed to use')
  })

t.test('pages show the picture of the tenant, and nothing else from elsewhere', async (t) => {
  for (const [logo, allowed] of [
    ['https://acme.example/logo.svg', 'img-src https://acme.example/logo.svg;'],
    ['data:image/png;base64,iVBORw0KGgo=', 'img-src data:;']
  ]) {
    const front = await loginGateway(t, { login: { logo } })
    const { clientId } = await register(front)
    const { html, headers } = await browser().go(begin(front, clientId), redirectUri)
    t.ok(html.includes(`<img class="logo" src="${logo}" alt=""`))
    t.ok(headers.get('content-security-policy')?.includes(String(allowed)))
  }
  const plain = await loginGateway(t)
  const { clientId } = await register(plain)
  const { html, headers } = await browser().go(begin(plain, clientId), redirectUri)
  t.notMatch(html, /<img/)
  t.notMatch(headers.get('content-security-policy'), /img-src/)
  for (const logo of ['http://acme.example/logo.svg', 'https://acme.example/a;script-src', 'javascript:alert(1)'])
    await t.rejects(loginGateway(t, { login: { logo } }), /logo/, logo)
})

t.test('a host gives back what it has (RFC 7009): all that came of it is over', async (t) => {
  const front = await loginGateway(t)
  const metadata = (await (await fetch(`${front.issuer}/.well-known/openid-configuration`)).json()) as object
  const { revocation_endpoint: endpoint } = metadata as { readonly revocation_endpoint: string }
  const [app, other] = [await logIn(front, front.url()), await logIn(front, front.url())]
  const giveBack = async (clientId: string, token: unknown) =>
    await fetch(endpoint, { method: 'POST', body: new URLSearchParams({ client_id: clientId, token: String(token) }) })
  const said: unknown[] = []
  const { info } = console
  console.info = (...words) => said.push(words)
  t.teardown(() => (console.info = info))
  const foreign = await giveBack(other.clientId, app.body['refresh_token'])
  t.ok([200, 400].includes(foreign.status))
  const next = await refresh(front, app)
  t.equal(next.status, 200, 'what another client gives back stays good')
  t.equal((await giveBack(app.clientId, next.body['refresh_token'])).status, 200)
  t.match(await refresh(front, { ...app, body: next.body }), { status: 400, body: { error: 'invalid_grant' } })
  t.equal((await refresh(front, other)).status, 200)
  t.same(said, [], 'and nothing but JSON is in the log')
})
