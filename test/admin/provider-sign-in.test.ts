// Signing in to the console at an identity provider: a real one, by code and PKCE; who gets in with which role, and what
// of a sign-in is worth nothing to others.

import t from 'tap'
import { adminCall, adminGateway, adminSection } from '../kit/admin.ts'
import { browser } from '../kit/browser.ts'
import { freePort } from '../kit/free-port.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

const port = await freePort()
const place = `http://127.0.0.1:${port}/console/`
const provider = await identityProvider(t, place)
const others = await forgingIssuer(t, { resource: 'https://admin.example', now: Date.now() })
const access = [
  { role: 'platform-admin', issuers: [provider.url], groups: ['platform'] },
  { role: 'viewer', issuers: [provider.url], subjects: ['vera'] }
]
const oidc = {
  audience: 'https://admin.example',
  issuers: [{ issuer: others.issuer }],
  login: { issuer: provider.url, ...providerClient },
  access
}
const rig = await adminGateway(t, { upstreams: {}, top: { admin: { ...adminSection, listen: { port }, oidc } } })
provider.groups.set('pia', ['staff', 'platform'])
const headers = { Origin: new URL(place).origin }

/** The browser is sent to the provider, and comes back. */
async function visit(person: string | undefined) {
  provider.person = person
  const begun = await adminCall(rig.adminUrl, 'POST', '/console/login', { key: null, headers, body: {} })
  t.equal(begun.status, 200, begun.text)
  const [line = ''] = begun.headers['set-cookie'] ?? []
  const { url } = begun.json as { url: string }
  const { url: back } = await browser().go(url, place)
  return { line, cookie: line.split(';')[0] ?? '', url: new URL(url), query: back.search.slice(1) }
}

const finish = (cookie: string, query: string) =>
  adminCall(rig.adminUrl, 'POST', '/console/session', {
    key: null,
    headers: { ...headers, ...(cookie && { Cookie: cookie }) },
    body: { query }
  })

t.test('whoever signs in there gets the role of their groups, for an hour', async (t) => {
  t.match((await adminCall(rig.adminUrl, 'GET', '/console/login', { key: null })).json, { issuer: provider.url })
  const { line, cookie, url, query } = await visit('pia')
  t.match(line, /^gatehouse-console-sign-in=[\w-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=900$/)
  t.match(Object.fromEntries(url.searchParams), {
    response_type: 'code',
    redirect_uri: place,
    code_challenge_method: 'S256',
    code_challenge: /^[\w-]{43}$/,
    state: /./,
    nonce: /./
  })
  const answer = await finish(cookie, query)
  t.equal(answer.status, 200, answer.text)
  const [session = '', ended = ''] = answer.headers['set-cookie'] ?? []
  t.match(session, /^gatehouse-console=[\w.-]+; .*Max-Age=3(?:600|5\d\d)$/)
  t.match(ended, /^gatehouse-console-sign-in=; .*Max-Age=0$/)
  const { token } = answer.json as { token: string }
  const own = { Cookie: session.split(';')[0] ?? '', 'Gatehouse-Console': token }
  const who = await adminCall(rig.adminUrl, 'GET', '/v1/administrator', { key: null, headers: own })
  t.match(who.json, { name: `pia (${provider.url})`, role: 'platform-admin', tenants: null })

  const again = await finish(cookie, query)
  t.equal(again.status, 503, 'a code is good once')
  t.notMatch(JSON.stringify(rig.log), new URLSearchParams(query).get('code') ?? '', 'no code is logged')
})

t.test('a sign-in is worth nothing in another browser, for another state, or changed', async (t) => {
  const { cookie, query } = await visit('pia')
  const other = await visit('pia')
  t.match((await finish('', query)).json, { status: 403, detail: /another browser/ })
  t.match((await finish(other.cookie, query)).json, { status: 403, detail: /another browser/ }, 'of another state')
  t.match((await finish(`${cookie}x`, query)).json, { status: 403 }, 'a cookie that was changed')
  const code = new URLSearchParams(query).get('code') ?? ''
  t.match((await finish(cookie, query.replace(code, `${code.slice(0, -2)}xx`))).json, { status: 503 }, 'another code')
  t.equal((await finish(other.cookie, other.query)).status, 200, 'the control')
  const foreign = { Origin: 'https://evil.example' }
  const begun = await adminCall(rig.adminUrl, 'POST', '/console/login', { key: null, headers: foreign, body: {} })
  t.equal(begun.status, 403, 'no page of others begins one')
})

t.test('what no provider sent here uses up nothing of the address', async (t) => {
  const { cookie, query } = await visit('pia')
  const forged = query.replace(/state=[^&]*/, 'state=guessed')
  for (let n = 0; n < 70; n++) t.equal((await finish(cookie, forged)).status, 403)
  t.equal((await finish(cookie, query.replace(/state=[^&]*/, ''))).status, 403, 'nor does an answer without a state')
  t.equal((await finish(cookie, query)).status, 200)
})

t.test('who has no role is told so, and so is whoever does not sign in', async (t) => {
  const stranger = await visit('sam')
  t.match((await finish(stranger.cookie, stranger.query)).json, { status: 403, remedy: /admin\.oidc\.access/ })
  const vera = await visit('vera')
  t.equal((await finish(vera.cookie, vera.query)).status, 200)
  const nobody = await visit(undefined)
  t.match((await finish(nobody.cookie, nobody.query)).json, { status: 403, detail: /let nobody in/ })
})
