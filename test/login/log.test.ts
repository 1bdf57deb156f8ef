// The log of a login front: a line for each request, and nothing in it that lets anybody in.

import t from 'tap'
import { browser } from '../kit/browser.ts'
import { until } from '../kit/until.ts'
import { authorizationUrl, logIn, loginGateway, pkce, redirectUri, register } from './kit.ts'

t.test('each request has a line, and none has a code, a token, a cookie or an id of a page', async (t) => {
  const front = await loginGateway(t)
  const person = browser()
  const { end, body } = await logIn(front, front.url(), person)
  const code = end.url.searchParams.get('code') ?? ''
  t.ok(code.length > 20 && typeof body['access_token'] === 'string', 'they were let in')
  const { registration_access_token: registration, registration_client_uri: place } = (await register(front)).body
  t.equal((await fetch(String(place), { headers: { authorization: `Bearer ${String(registration)}` } })).status, 200)
  t.equal((await fetch(`${front.issuer}/interaction/Unknown-Page/nothing`)).status, 404)
  const bad = authorizationUrl(front, {
    client_id: 'nobody',
    redirect_uri: redirectUri,
    code_challenge: pkce().challenge
  })
  const refused = await fetch(bad, { redirect: 'manual' })
  t.equal(refused.status, 400)

  t.equal((await fetch(`${front.origin}/.well-known/oauth-authorization-server/login/acme`)).status, 200)

  const line = (fields: Record<string, unknown>) =>
    until(JSON.stringify(fields), () =>
      front.log.find((each) => Object.entries(fields).every(([key, value]) => each[key] === value))
    )
  const common = { level: 30, msg: 'request', tenant: 'acme', address: '127.0.0.1', ms: Number, requestId: String }
  for (const [method, path, status] of [
    ['POST', '/login/acme/reg', 201],
    ['GET', '/login/acme/reg/…', 200],
    ['GET', '/login/acme/auth', 303],
    ['GET', '/login/acme/interaction/…', 303],
    ['GET', '/login/acme/callback', 303],
    ['POST', '/login/acme/interaction/…/allow', 303],
    ['GET', '/login/acme/auth/…', 303],
    ['POST', '/login/acme/token', 200],
    ['GET', '/login/acme/auth', 400],
    ['GET', '/.well-known/oauth-authorization-server/login/acme', 200]
  ] as const)
    t.match(await line({ msg: 'request', method, path, status }), common, `${method} ${path} ${status}`)
  t.match(await line({ msg: 'refused', path: '/login/acme/interaction/…/nothing' }), { status: 404, tenant: 'acme' })

  const all = JSON.stringify(front.log)
  const secrets = [code, body['access_token'], body['refresh_token'], registration, 'Unknown-Page', 'code_verifier']
  for (const secret of secrets) t.notOk(all.includes(String(secret)), 'not in the log')
  t.notMatch(all, /gatehouse_(?:session|interaction|resume)/)
})
