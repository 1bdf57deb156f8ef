// Attack: a page of people that forgot a check. Every route of the login fronts and of the connections is read from the
// table of routes; a new one has to say here what it answers to somebody who is not signed in.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { send } from '../kit/client.ts'
import { attemptsAt, readDoors } from '../kit/doors.ts'
import { forgedKey, forgingIssuer } from '../kit/forging-issuer.ts'
import { startUpstream } from '../kit/upstream.ts'
import { loginGateway } from '../login/kit.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const own = { type: 'http', url: upstream.url, auth: { type: 'userSecret', header: 'X-Api-Key', prefix: '' } }
const idp = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
const front = await loginGateway(t, {
  upstreams: { own },
  endpoints: { default: { upstreams: ['own'] } },
  origins: ['https://page.example'],
  auth: { issuers: [{ issuer: idp.issuer, jwksUri: idp.jwksUri }] },
  top: { vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } }
})

/** What somebody without a session and without a credential gets. */
const pages: Readonly<Record<string, { readonly status: number; readonly path?: string }>> = {
  'GET /login/:tenant/*': { status: 303, path: '/login/acme/consents' },
  'POST /login/:tenant/*': { status: 401, path: '/login/acme/consents/x/revoke' },
  'GET /.well-known/oauth-authorization-server/login/:tenant': { status: 200 },
  'POST /.well-known/oauth-authorization-server/login/:tenant': { status: 404 },
  'GET /.well-known/openid-configuration/login/:tenant': { status: 200 },
  'POST /.well-known/openid-configuration/login/:tenant': { status: 404 },
  'GET /t/:tenant/connections': { status: 200 },
  'POST /t/:tenant/connections': { status: 400 },
  'GET /t/:tenant/connections/callback': { status: 400 },
  'GET /t/:tenant/connections/sign-in': { status: 303 },
  'GET /t/:tenant/connections/signed-in': { status: 400 },
  'GET /t/:tenant/connections/client.json': { status: 200 }
}

const form = { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' }

t.test('each of them is known', async (t) => {
  const found = (await readDoors()).filter(({ isPage }) => isPage).map(({ method, url }) => `${method} ${url}`)
  t.same(found.toSorted(), Object.keys(pages).toSorted())
})

for (const [name, { status, path }] of Object.entries(pages))
  t.test(name, async (t) => {
    const [method = '', url = ''] = name.split(' ')
    const place = path ?? url.replace(':tenant', 'acme')
    const ask = async (headers: Record<string, string>, at = place) =>
      await send(front.origin + at, { method, headers: method === 'POST' ? { ...form, ...headers } : headers })
    const usual = await ask({})
    t.equal(usual.status, status)
    t.notMatch(usual.text, 'ada@example.com')
    for (const host of ['evil.example', '169.254.169.254', 'x@127.0.0.1'])
      t.equal((await ask({ host })).status, 403, `Host ${host}`)
    for (const origin of ['https://evil.example', 'null', 'https://page.example.evil.example'])
      t.equal((await ask({ origin })).status, 403, `Origin ${origin}`)
    t.not((await ask({ origin: front.origin })).status, 403, 'its own Origin')
    t.equal((await ask({}, place.replace('acme', 'nobody'))).status, 404, 'another tenant')
  })

t.test('whoever shows a credential at their connections shows a good one', async (t) => {
  const stranger = await forgedKey('ES256')
  const url = `${front.origin}/t/acme/connections`
  const endpoint = front.url()
  const attempts = attemptsAt({ issuer: idp.issuer, elsewhere: front.url('nowhere'), here: endpoint, stranger })
  const list = async (headers: Record<string, string>, query = '') =>
    await send(url + query, { method: 'GET', headers })
  for (const [what, attempt] of Object.entries(attempts)) {
    if (attempt.posts) continue
    const {
      claims = {},
      header = {},
      headers = {},
      query = '',
      authorization = (good: string) => `Bearer ${good}`
    } = attempt
    const good = await idp.sign({ aud: endpoint, sub: 'ada', client_id: 'app', ...claims }, header)
    const shown = authorization(good)
    const filled = Object.fromEntries(Object.entries(headers).map(([key, text]) => [key, text.replace('TOKEN', good)]))
    const all = { ...filled, ...(shown !== undefined && { authorization: shown }) }
    const answer = await list(all, query.replace('TOKEN', good))
    // Without one there is the page where people sign in.
    if (shown === undefined) t.match([answer.status, answer.text], [200, /Sign in/], what)
    else t.ok([attempt.status].flat().includes(answer.status), `${what}: ${answer.status}`)
    t.notMatch(answer.text, '"connections"', what)
  }
  const token = await idp.sign({ aud: endpoint, sub: 'ada', client_id: 'app' })
  const good = await list({ authorization: `Bearer ${token}` })
  t.match([good.status, good.json], [200, { connections: [{ upstream: 'own' }] }])
})
