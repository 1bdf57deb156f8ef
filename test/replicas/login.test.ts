// The login front of several processes: a sign-in goes on at whichever of them the next request comes to, and what is
// ended at one is over at all.

import { decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { browser } from '../kit/browser.ts'
import { legacyClient } from '../kit/client.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { replicas } from '../kit/replicas.ts'
import { startUpstream } from '../kit/upstream.ts'
import { authorizationUrl, pkce, redirectUri, refresh, register, tokens } from '../login/kit.ts'

const nowhere = 'no redirect is left out'

async function house(t: Test) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  let provider = ''
  const made = await replicas(t, async (origin) => {
    const { url: issuer } = await identityProvider(t, `${origin}/login/acme/callback`)
    provider = issuer
    return {
      upstreams: { up: { type: 'http', url: upstream.url } },
      endpoints: { default: { upstreams: ['up'], prefix: '' } },
      auth: { login: { scopes: ['mcp'], provider: { issuer, ...providerClient } } }
    }
  })
  return {
    ...made,
    provider,
    issuer: `${made.origin}/login/acme`,
    url: `${made.origin}/t/acme/mcp`,
    /** From now on every request comes to this one. */
    to: (node: number): void => void made.targets.splice(0, made.targets.length, made.nodes[node]?.url ?? '')
  }
}

t.test('a sign-in goes from one process to the next, and so does its end', async (t) => {
  const front = await house(t)
  const [person, other] = [browser(), browser()]
  const json = { headers: { accept: 'application/json' } }

  front.to(0)
  const { clientId } = await register(front)
  front.to(1)
  const { verifier, challenge } = pkce()
  const parameters = { client_id: clientId, resource: front.url, state: 's', code_challenge: challenge }
  const away = await person.go(authorizationUrl(front, parameters), front.provider)
  t.equal(away.url.origin, front.provider, 'begun at the second')
  const back = await person.go(away.url.href, front.origin)
  front.to(2)
  const page = await person.go(back.url.href, redirectUri)
  t.match(page.html, /Allow A Host\?/, 'finished at the third')
  const stranger = await other.go(back.url.href, redirectUri)
  t.equal(stranger.status, 400, 'for this browser only')
  front.to(0)
  const { url } = await person.press(page, '/allow', redirectUri)
  const code = url.searchParams.get('code') ?? ''
  front.to(1)
  const grant = {
    grant_type: 'authorization_code',
    client_id: clientId,
    redirect_uri: redirectUri,
    resource: front.url
  }
  const first = await tokens(front, { ...grant, code, code_verifier: verifier })
  t.equal(first.status, 200, 'allowed at the first, redeemed at the second')

  const kids = new Set()
  let last = { clientId, body: first.body, status: first.status }
  for (const node of [2, 0, 1]) {
    front.to(node)
    const { access_token: token } = last.body
    kids.add(decodeProtectedHeader(token).kid)
    const client = await legacyClient(`${front.nodes[node]?.url}/t/acme/mcp`, token)
    t.match(await client.request('tools/call', { name: 'echo', arguments: { text: 'x' } }), { json: { result: {} } })
    last = { clientId, ...(await refresh(front, last)) }
    t.equal(last.status, 200, `refreshed at ${node}`)
  }
  t.equal(kids.size, 1, 'one key of all signs')

  front.to(0)
  const { html } = await person.go(`${front.issuer}/session/end`, nowhere)
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(html)?.[1] ?? ''
  for (const node of [0, 1, 2]) {
    front.to(node)
    t.equal((await person.go(`${front.issuer}/consents`, nowhere, json)).status, 200, `signed in at ${node}`)
  }
  const form = { 'content-type': 'application/x-www-form-urlencoded', origin: front.origin }
  const body = new URLSearchParams({ xsrf, logout: 'yes' }).toString()
  await person.go(`${front.issuer}/session/end/confirm`, nowhere, { method: 'POST', headers: form, body })
  for (const node of [0, 1, 2]) {
    front.to(node)
    t.equal((await person.go(`${front.issuer}/consents`, nowhere, json)).status, 401, `signed out at ${node}`)
  }
  last = { clientId, ...(await refresh(front, last)) }
  t.equal(last.status, 200, 'the app goes on')

  front.to(0)
  const list = await person.go(`${front.issuer}/consents`, nowhere)
  t.match(list.html, /A Host/, 'signed in again, with what was allowed before')
  front.to(1)
  await person.press(list, '/revoke', nowhere)
  front.to(2)
  t.match(await refresh(front, last), { status: 400, body: { error: 'invalid_grant' } }, 'taken back at the second')
})
