// Signing in to the console: what a browser keeps, what each request needs, and what other pages cannot do with it.

import t from 'tap'
import { adminKeys, adminCall } from '../kit/admin.ts'
import { freePort } from '../kit/free-port.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { consoleRig, violationsInBothThemes } from './rig.ts'

const port = await freePort()
const provider = await identityProvider(t, `http://127.0.0.1:${port}/console/`)
const rig = await consoleRig(t, {
  admin: {
    listen: { port },
    oidc: {
      audience: 'https://admin.example',
      issuers: [{ issuer: provider.url }],
      login: { issuer: provider.url, ...providerClient },
      access: [{ role: 'viewer', groups: ['staff'] }]
    }
  }
})
const { adminUrl } = rig
const origin = { Origin: adminUrl }

/** Signed in without a browser: the cookie, and the token of the page. */
async function session(key: string = adminKeys.platform) {
  const { status, headers, json } = await adminCall(adminUrl, 'POST', '/console/session', {
    key: null,
    headers: origin,
    body: { key }
  })
  const [line = ''] = headers['set-cookie'] ?? []
  return { status, line, json, cookie: line.split(';')[0] ?? '', token: (json as { token: string }).token }
}

t.test(
  'whoever signs in gets a cookie that no script reads, and a token without which it is worth nothing',
  async (t) => {
    const { status, line, cookie, token } = await session()
    t.equal(status, 200)
    t.match(line, /^gatehouse-console=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/)
    const call = (headers: Record<string, string>, method = 'GET', path = '/v1/administrator') =>
      adminCall(adminUrl, method, path, { key: null, headers, ...(method === 'GET' ? {} : { body: { tenants: {} } }) })
    const whole = { Cookie: cookie, 'Gatehouse-Console': token }
    t.match((await call(whole)).json, { name: 'platform', role: 'platform-admin', tenants: null })
    t.equal((await call({ ...whole, ...origin }, 'POST', '/v1/plan')).status, 200)
    t.equal((await call({ Cookie: cookie })).status, 401, 'the cookie alone')
    t.equal((await call({ 'Gatehouse-Console': token })).status, 401, 'the token alone')
    t.equal((await call({ Cookie: cookie, 'Gatehouse-Console': 'x'.repeat(43) })).status, 401, 'another token')
    for (const [what, headers] of Object.entries({
      'a change that names no page': whole,
      'a change by another page': { ...whole, Origin: 'https://evil.example' },
      'a change by a page of another port': { ...whole, Origin: 'http://127.0.0.1:1' },
      'a change that a browser calls foreign': { ...whole, ...origin, 'Sec-Fetch-Site': 'cross-site' },
      'a change from another port of the machine': { ...whole, ...origin, 'Sec-Fetch-Site': 'same-site' }
    }))
      t.match((await call(headers, 'POST', '/v1/plan')).json, { status: 403, type: /forbidden_origin/ }, what)
  }
)

t.test('behind TLS the cookie is held to its host, and sent over TLS only', async (t) => {
  const { host } = new URL(adminUrl)
  const { headers } = await adminCall(adminUrl, 'POST', '/console/session', {
    key: null,
    headers: { Origin: `https://${host}` },
    body: { key: adminKeys.viewer }
  })
  t.match(headers['set-cookie'], [/^__Host-gatehouse-console=[\w.-]+; Secure; Path=\/; HttpOnly; SameSite=Strict/])
})

t.test('signing out ends the session, and so does the end of its key; one person has eight at most', async (t) => {
  const { cookie, token } = await session(adminKeys.viewer)
  const whole = { Cookie: cookie, 'Gatehouse-Console': token, ...origin }
  const who = async (headers: Record<string, string>) =>
    (await adminCall(adminUrl, 'GET', '/v1/administrator', { key: null, headers })).status
  t.equal(await who(whole), 200)
  const out = await adminCall(adminUrl, 'DELETE', '/console/session', { key: null, headers: whole })
  t.equal(out.status, 204)
  t.match(out.headers['set-cookie'], [/^gatehouse-console=; .*Max-Age=0$/])
  t.equal(await who(whole), 401)

  const first = await session(adminKeys.auditor)
  const others = []
  for (let count = 0; count < 8; count++) others.push(await session(adminKeys.auditor))
  const statuses = await Promise.all(
    [first, ...others].map(({ cookie, token }) => who({ Cookie: cookie, 'Gatehouse-Console': token }))
  )
  t.same(statuses, [401, ...others.map(() => 200)], 'the ninth ends the oldest')
})

t.test('a key that is none, an API key and a key for metrics open no session', async (t) => {
  const attempt = async (body: unknown, headers: Record<string, string> = origin) =>
    await adminCall(adminUrl, 'POST', '/console/session', { key: null, headers, body })
  t.match((await attempt({ key: 'gha_wrong' })).json, { status: 401, remedy: /admin-key new/ })
  t.match((await attempt({ key: adminKeys.metrics })).json, { status: 403 })
  t.match((await attempt({})).json, { status: 400 })
  t.match((await attempt({ key: adminKeys.viewer }, {})).json, { status: 403 }, 'without a page')
  t.match((await attempt({ key: adminKeys.viewer }, { Origin: 'https://evil.example' })).json, { status: 403 })
  t.equal((await attempt({ key: adminKeys.viewer })).status, 200)
})

t.test('files are sent compressed, once, under a policy without anything inline or foreign', async (t) => {
  const file = (path: string, headers: Record<string, string> = {}) =>
    adminCall(adminUrl, 'GET', path, { key: null, headers })
  t.match((await file('/console')).headers, { location: '/console/' })
  const { headers, text } = await file('/console/')
  const policy = String(headers['content-security-policy'])
  t.match(policy, /^default-src 'none'; script-src 'self' 'sha256-[\w+/=]+'; style-src 'self';/)
  t.match(policy, /frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'$/)
  t.match(headers, {
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
    'cache-control': 'no-cache'
  })
  t.notMatch(text, /style=|onclick|<script>/)
  const compressed = await file('/console/main.js', { 'Accept-Encoding': 'gzip, br' })
  t.equal(compressed.headers['content-encoding'], 'br')
  const { etag = '' } = compressed.headers
  t.equal((await file('/console/main.js', { 'If-None-Match': String(etag) })).status, 304)
  t.equal((await file('/console/modules/preact.js')).status, 200)
  for (const path of ['tsconfig.json', '../main.ts', '..%2fmain.ts', 'modules/../../package.json', 'nothing.js'])
    t.not((await file(`/console/${path}`)).status, 200, path)
})

t.test('a person signs in, finds their place again, chooses colours, and signs out, by the keyboard', async (t) => {
  const { page, complaints } = await rig.browser.open(`${adminUrl}/console/#/overview`)
  await page.getByLabel('Admin key').waitFor()
  t.same(await violationsInBothThemes(page), [])
  await page.getByLabel('Admin key').and(page.locator(':focus')).waitFor()
  await page.keyboard.type('gha_wrong')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('This is not an admin key').waitFor()
  await page.keyboard.type(adminKeys.viewer)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.locator('h1:focus').waitFor()
  t.pass('the focus is on the heading')
  t.same(
    complaints.filter((each) => !each.includes('401')),
    [],
    'the one refusal was that of the wrong key'
  )
  t.notMatch(await page.evaluate('JSON.stringify(localStorage) + document.cookie'), adminKeys.viewer)
  t.notMatch(await page.evaluate('document.cookie'), 'gatehouse')

  await page.reload()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const dark = page.getByRole('button', { name: 'Dark colours' })
  await dark.focus()
  await page.keyboard.press('Enter')
  t.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark')
  t.same(await violationsInBothThemes(page), [])
  await page.getByRole('button', { name: 'Sign out' }).focus()
  await page.keyboard.press('Enter')
  await page.getByLabel('Admin key').waitFor()
})

t.test('a person signs in at the identity provider, by the keyboard, and is back where they were', async (t) => {
  provider.person = undefined
  const { page, complaints } = await rig.browser.open(`${adminUrl}/console/#/upstreams?tenant=acme`)
  const button = page.getByRole('button', { name: `Sign in at ${new URL(provider.url).host}` })
  await button.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('The identity provider let nobody in').waitFor()
  t.same(await violationsInBothThemes(page), [])
  provider.person = 'ada'
  await button.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Upstreams' }).waitFor()
  await page.getByText(`ada (${provider.url}), viewer`).waitFor()
  t.equal(page.url(), `${adminUrl}/console/#/upstreams?tenant=acme`, 'the address keeps nothing of it')
  await page.getByRole('link', { name: 'tickets' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Upstreams' }).waitFor()
  t.same(
    complaints.filter((each) => !each.includes('403')),
    [],
    'the one refusal was that of the provider'
  )
})

t.test('a page of somebody else shows the console in no frame', async (t) => {
  const { page } = await rig.browser.open('about:blank')
  await page.route('http://evil.example/', (route) =>
    route.fulfill({ contentType: 'text/html', body: `<iframe src="${adminUrl}/console/"></iframe>` })
  )
  await page.goto('http://evil.example/')
  const frame = page.frames().find((each) => each !== page.mainFrame())
  t.notOk(await frame?.locator('#app').count(), 'nothing of the console is in the frame')
  await page.goto(`${adminUrl}/console/`)
  t.equal(await page.locator('#app').count(), 1, 'by itself it is shown')
})
