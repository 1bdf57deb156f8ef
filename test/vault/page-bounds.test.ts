// The pages of connections before strangers, and before people who are let in no more.

import { moveClock } from '../kit/moving-clock.ts'
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { browser } from '../kit/browser.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { configOf, gateway, type TestGateway, type TestGatewayOptions } from '../kit/gateway.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { listen } from '../kit/listen.ts'

const up = { type: 'http', url: 'http://127.0.0.1:1/mcp', auth: { type: 'userSecret', header: 'X-Api-Key' } }
const ada = { name: 'ada', key: keyOf.ada }
const bob = { name: 'bob', key: keyOf.bob }
const base: TestGatewayOptions = {
  upstreams: { up },
  auth: { keys: [ada, bob] },
  top: { vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } }
}
const pageOf = (made: TestGateway): string => `${made.publicUrl}/t/acme/connections`

function post(made: TestGateway, fields: Record<string, string>, path = pageOf(made)): Promise<Response> {
  const headers = { origin: made.publicUrl, 'content-type': 'application/x-www-form-urlencoded' }
  const body = String(new URLSearchParams(fields))
  return fetch(path, { method: 'POST', redirect: 'manual', headers, body })
}

t.test('a browser is signed in as long as its person is let in, and no longer', async (t) => {
  const made = await gateway(t, base)
  const [first, second] = [await signedIn(pageOf(made), keyOf.ada), await signedIn(pageOf(made), keyOf.bob)]
  t.match(first.page.html, /You are <strong>ada</)
  const only = (keys: unknown[]) => made.reload(configOf({ ...base, auth: { keys } }))
  only([bob])
  t.match((await first.tab.go(pageOf(made), 'none')).html, /Your API key/)
  t.match((await submit(first.tab, first.page, 'secret', { secret: 'of somebody who left' })).html, /Your API key/)
  t.match((await second.tab.go(pageOf(made), 'none')).html, /You are <strong>bob</, 'bob goes on')
  only([ada, bob])
  t.match((await first.tab.go(pageOf(made), 'none')).html, /up[\s\S]*not connected/, 'and ada has given nothing')
})

t.test('a copy of the cookie is good no more once its person has signed out', async (t) => {
  const made = await gateway(t, base)
  const show = (cookie: string, method = 'GET') => fetch(pageOf(made), { method, headers: { cookie } })
  const signIn = async (): Promise<string> =>
    (await post(made, { action: 'sign-in', key: keyOf.ada })).headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const [cookie, other] = [await signIn(), await signIn()]
  const html = await (await show(cookie)).text()
  t.match(html, /You are <strong>ada</)
  const csrf = /name="csrf" value="([^"]*)"/.exec(html)?.[1] ?? ''
  const headers = { origin: made.publicUrl, 'content-type': 'application/x-www-form-urlencoded' }
  const act = (action: string, from: string) =>
    fetch(pageOf(made), {
      method: 'POST',
      redirect: 'manual',
      headers: { ...headers, cookie: from },
      body: String(new URLSearchParams({ action, csrf, upstream: 'up', secret: 'of a thief' }))
    })
  t.match((await act('sign-out', cookie)).headers.get('set-cookie'), /=; Max-Age=0/)
  t.match(await (await show(cookie)).text(), /Your API key/)
  t.match(await (await act('secret', cookie)).text(), /Your API key/)
  // Base64url of the same bytes in other letters is the same cookie.
  const last = cookie.at(-1) ?? ''
  for (const twin of ['A', 'B', 'C', 'D', 'Q', 'g', 'w'].filter((each) => each !== last))
    t.match(await (await show(cookie.slice(0, -1) + twin)).text(), /Your API key/)
  t.match(
    await (await show(other)).text(),
    /You are <strong>ada<[^]*not connected/,
    'where she signed in besides she stays'
  )

  const head = await show(other, 'HEAD')
  t.equal(head.status, 200)
  t.match(head.headers.get('content-type'), /text\/html/)
  t.equal(await head.text(), '')
  t.equal((await fetch(`${made.publicUrl}/t/nobody/connections`, { method: 'HEAD' })).status, 404)
  const ofHost = { headers: { authorization: 'Bearer wrong' } }
  for (const method of ['GET', 'HEAD']) t.equal((await fetch(pageOf(made), { method, ...ofHost })).status, 401, method)
})

t.test('cookies of the pages are of this host alone, behind TLS, and are read by no script', async (t) => {
  const provider = await identityProvider(t, 'https://gateway.example/t/acme/connections/signed-in')
  const options: TestGatewayOptions = {
    ...base,
    auth: { keys: [ada], issuers: [{ issuer: provider.url }], signIn: { issuer: provider.url, ...providerClient } }
  }
  const secure = await gateway(t, { ...options, top: { ...base.top, publicUrl: 'https://gateway.example' } })
  const plain = await gateway(t, options)
  async function cookiesOf({ listening, publicUrl }: TestGateway, path: string, body?: string) {
    const type = { 'content-type': 'application/x-www-form-urlencoded', origin: publicUrl }
    const init = body === undefined ? {} : { method: 'POST', headers: type, body }
    const answer = await fetch(listening + path, { redirect: 'manual', ...init })
    t.equal(answer.status, 303)
    return answer.headers.getSetCookie()
  }
  const page = '/t/acme/connections'
  const signIn = (made: TestGateway) => cookiesOf(made, page, `action=sign-in&key=${keyOf.ada}`)
  const leave = (made: TestGateway) => cookiesOf(made, `${page}/sign-in`)
  const common = 'Path=/; HttpOnly; SameSite=Lax'
  const lines = [
    [await signIn(secure), `__Host-gatehouse-connections-acme=VALUE; Max-Age=28800; ${common}; Secure`],
    [await leave(secure), `__Host-gatehouse-sign-in-acme=VALUE; Max-Age=900; ${common}; Secure`],
    [await signIn(plain), `gatehouse-connections-acme=VALUE; Max-Age=28800; ${common}`],
    [await leave(plain), `gatehouse-sign-in-acme=VALUE; Max-Age=900; ${common}`]
  ] as const
  for (const [given, expected] of lines)
    t.same(
      given.map((line) => line.replace(/=[\w.-]+;/, '=VALUE;')),
      [expected]
    )

  const [line = ''] = await signIn(secure)
  const [cookie = ''] = line.split(';')
  const show = async (own: string) => await (await fetch(secure.listening + page, { headers: { cookie: own } })).text()
  const html = await show(cookie)
  t.match(html, /You are <strong>ada</)
  for (const name of ['gatehouse-', '__Secure-gatehouse-', '__host-gatehouse-', '__Host-other-'])
    t.match(
      await show(cookie.replace('__Host-gatehouse-', name)),
      /Your API key/,
      `${name}: a name that others could set counts for nothing`
    )
  const csrf = /name="csrf" value="([^"]*)"/.exec(html)?.[1] ?? ''
  const out = await fetch(secure.listening + page, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, origin: secure.publicUrl, 'content-type': 'application/x-www-form-urlencoded' },
    body: String(new URLSearchParams({ action: 'sign-out', csrf }))
  })
  t.same(out.headers.getSetCookie(), [`__Host-gatehouse-connections-acme=; Max-Age=0; ${common}; Secure`])
})

t.test('a browser of a tenant that was removed is not signed in to the next one of its name', async (t) => {
  const made = await gateway(t, {
    ...base,
    tenants: { other: { auth: { keys: [], issuers: [{ issuer: 'https://idp.example.com' }] }, upstreams: { up } } }
  })
  const { tab } = await signedIn(pageOf(made), keyOf.ada)
  made.reload(configOf(base))
  t.match((await tab.go(pageOf(made), 'none')).html, /You are <strong>ada</, 'any other reload changes nothing')
  const { tenants, ...rest } = configOf(base) as { tenants: Record<string, unknown> }
  made.reload({ ...rest, tenants: { other: tenants['acme'] } })
  made.reload(configOf(base))
  t.match((await tab.go(pageOf(made), 'none')).html, /Your API key/)
})

t.test('a session ends with the key that it was begun with', async (t) => {
  const expires = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z')
  const made = await gateway(t, { ...base, auth: { keys: [{ ...ada, expires }] } })
  const { tab } = await signedIn(pageOf(made), keyOf.ada)
  t.match((await tab.go(pageOf(made), 'none')).html, /You are <strong>ada</)
  t.teardown(() => moveClock(0))
  moveClock(3_700_000)
  t.match((await tab.go(pageOf(made), 'none')).html, /Your API key/)
})

t.test('strangers may send so much, and are told nothing', async (t) => {
  const made = await gateway(t, base)
  t.equal((await post(made, { action: 'sign-in', key: 'x'.repeat(40_000) })).status, 413)
  t.equal((await post(made, { action: 'sign-in', key: 'wrong' })).status, 403)
  t.equal((await post(made, { action: 'sign-in', key: 'a' }, `${made.publicUrl}/t/nobody/connections`)).status, 404)
  const odd = await browser().go(`${pageOf(made)}?upstream=a&upstream=b&for=c&for=d`, 'none')
  t.equal(odd.status, 200)
  t.match(odd.html, /Your API key/)
  t.equal((await browser().go(`${made.publicUrl}//evil.example/t/acme/connections`, 'none')).status, 404)
})

t.test('an opaque token is asked about once, and not for each endpoint', async (t) => {
  const asked: string[] = []
  const url = await listen(
    t,
    createServer((request, response) => {
      asked.push(request.url ?? '')
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"active":false}')
    })
  )
  const introspection = { url: `${url}/introspect`, clientId: 'gatehouse', clientSecret: 'of the gateway itself' }
  const made = await gateway(t, {
    ...base,
    auth: { issuers: [{ issuer: url, jwksUri: `${url}/jwks`, introspection }] },
    endpoints: Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, { upstreams: ['up'] }]))
  })
  t.equal((await post(made, { action: 'sign-in', key: 'opaque-token-of-nobody-0123456789' })).status, 403)
  t.equal(asked.length, 1)
})

t.test('a key for the last of the endpoints is good at the page', async (t) => {
  const made = await gateway(t, {
    ...base,
    auth: { keys: [{ ...ada, endpoints: ['c'] }] },
    endpoints: Object.fromEntries(['a', 'b', 'c'].map((name) => [name, { upstreams: ['up'] }]))
  })
  t.match((await signedIn(pageOf(made), keyOf.ada)).page.html, /You are <strong>ada</)
})
