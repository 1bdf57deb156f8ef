// Attack: a stolen token that is bound to a key (RFC 9449): sent without a proof, with a proof that was seen elsewhere,
// with one for another request, or with one of another key; on each door.

import { calculateJwkThumbprint } from 'jose'
import t from 'tap'
import { acmeGateway, initializeBody, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { keyHolder } from '../kit/dpop.ts'
import { issuer as realIssuer } from '../kit/issuer.ts'
import { modernMessage } from '../kit/modern-client.ts'

const client = await keyHolder()
const thief = await keyHolder()
const bound = (acme: AcmeGateway) =>
  acme.issuer.sign({ aud: acme.url(), sub: 'ada', client_id: 'app', cnf: { jkt: client.thumbprint } })

const present = (url: string, headers: Record<string, string>, body = initializeBody()) =>
  send(url, { headers: { ...jsonHeaders, ...headers }, body })

t.test('a bound token needs a proof for just this request, made now, used once', async (t) => {
  const acme = await acmeGateway(t)
  const url = acme.url()
  const token = await bound(acme)
  const authorization = `DPoP ${token}`
  const proof = (more: object = {}) => client.proof({ url, token, ...more })
  const good = await proof()
  const accepted = await present(url, { authorization, dpop: good })
  t.equal(accepted.status, 200, accepted.text)
  const seconds = Math.floor(Date.now() / 1000)
  const refused: Record<string, string | undefined> = {
    none: undefined,
    'used before': good,
    'for GET': await proof({ method: 'GET' }),
    'for another endpoint': await proof({ url: acme.url('files') }),
    'for another host': await proof({ url: url.replace('127.0.0.1', 'localhost') }),
    'for a query': await proof({ url: `${url}?a` }),
    'for another token': await proof({ token: `${token}x` }),
    'for no token': await proof({ token: undefined }),
    'of 5 minutes ago': await proof({ claims: { iat: seconds - 300 } }),
    'of in 5 minutes': await proof({ claims: { iat: seconds + 300 } }),
    'of no time': await proof({ claims: { iat: undefined } }),
    'without jti': await proof({ claims: { jti: undefined } }),
    'with an endless jti': await proof({ claims: { jti: 'x'.repeat(600) } }),
    'of another type': await proof({ header: { typ: 'JWT' } }),
    'with a private key': await proof({ header: { jwk: client.privateJwk } }),
    'without a key': await proof({ header: { jwk: undefined } }),
    'by another key': await thief.proof({ url, token }),
    'by another key under the name of the right one': await thief.proof({ url, token, header: { jwk: client.jwk } }),
    unsigned: `${Buffer.from('{"typ":"dpop+jwt","alg":"none"}').toString('base64url')}.e30.`,
    'no JWT': 'x',
    'too long': 'x'.repeat(9_000)
  }
  for (const [what, dpop] of Object.entries(refused)) {
    const { status, headers } = await present(url, { authorization, ...(dpop !== undefined && { dpop }) })
    t.equal(status, 401, what)
    t.match(headers['www-authenticate'], /^DPoP error="invalid_dpop_proof".*resource_metadata=.*algs="ES256 /, what)
  }
  t.equal((await present(url, { authorization, dpop: await proof() })).status, 200, 'and still with a new one')
  for (const header of [{ url: url.replace('http://', 'HTTP://') }, {}])
    t.equal((await present(url, { authorization, dpop: await proof(header) })).status, 200, 'RFC 3986 section 6.2')
})

t.test('it is no bearer token, and a bearer token is not bound', async (t) => {
  const acme = await acmeGateway(t)
  const url = acme.url()
  const token = await bound(acme)
  const downgraded = await present(url, { authorization: `Bearer ${token}` })
  t.equal(downgraded.status, 401)
  t.match(downgraded.headers['www-authenticate'], /^DPoP error="invalid_token"/)
  t.match(downgraded.json.error.message, /send it as "DPoP"/)
  const plain = await acme.bearer('JWT')
  const dpop = await client.proof({ url, token: plain })
  const upgraded = await present(url, { authorization: `DPoP ${plain}`, dpop })
  t.equal(upgraded.status, 401)
  t.match(upgraded.headers['www-authenticate'], /^Bearer error="invalid_token"/)
  t.equal((await present(url, { authorization: `DPoP ${keyOf.ada}`, dpop })).status, 401, 'nor is an API key')
  t.equal((await present(url, { authorization: `Bearer ${plain}` })).status, 200)
  const own = await client.proof({ url, token })
  t.equal((await present(url, { authorization: `DPoP ${token}`, dpop: own })).status, 200)
})

t.test('two proofs are none', async (t) => {
  const acme = await acmeGateway(t)
  const url = acme.url()
  const token = await bound(acme)
  const two = [await client.proof({ url, token }), await client.proof({ url, token })]
  const head = (proofs: string[]): string =>
    `POST /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: DPoP ${token}\r\n` +
    proofs.map((proof) => `DPoP: ${proof}\r\n`).join('') +
    `Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n` +
    `Content-Length: ${initializeBody().length}\r\n\r\n${initializeBody()}`
  t.equal((await acme.exchange(head(two))).status, 400)
  t.equal((await acme.exchange(head(two.slice(0, 1)))).status, 200)
})

t.test('on every door, each with its own URL, and not again for a stream that stays open', async (t) => {
  const acme = await acmeGateway(t, { overrides: { keepAliveMs: 50 } })
  const token = await bound(acme)
  const authorization = `DPoP ${token}`
  const url = acme.url()
  const modern = modernMessage('tools/list')
  const doors = [
    { method: 'POST', url, body: initializeBody(), headers: {} },
    { method: 'POST', url, body: modern.body, headers: modern.headers },
    { method: 'POST', url: url.replace(/mcp$/, 'messages'), body: initializeBody(), headers: {} },
    { method: 'DELETE', url, headers: { 'mcp-session-id': 'x'.repeat(43) } },
    { method: 'GET', url, headers: { 'mcp-session-id': 'x'.repeat(43), accept: 'text/event-stream' } }
  ]
  for (const door of doors) {
    const ask = async (proof: string) =>
      send(door.url, {
        method: door.method,
        headers: { ...jsonHeaders, ...door.headers, authorization, dpop: proof },
        ...(door.body !== undefined && { body: door.body })
      })
    const wrong = await ask(
      await client.proof({ method: door.method === 'GET' ? 'POST' : 'GET', url: door.url, token })
    )
    t.equal(wrong.status, 401, `${door.method} ${door.url}`)
    const right = await ask(await client.proof({ method: door.method, url: door.url, token }))
    t.not(right.status, 401, `${door.method} ${door.url}: ${right.text}`)
  }
  const sse = url.replace(/mcp$/, 'sse')
  const stream = await fetch(sse, {
    headers: { authorization, dpop: await client.proof({ method: 'GET', url: sse, token }) }
  })
  t.equal(stream.status, 200)
  const reader = (stream.body as ReadableStream<Uint8Array>).getReader()
  let text = ''
  // Comments that keep the connection come with each look at its caller.
  while ((text.match(/^:/gm) ?? []).length < 3) text += Buffer.from((await reader.read()).value ?? []).toString()
  await reader.cancel()
})

t.test('a tenant that wants bound tokens only takes no others, but keys, and says so', async (t) => {
  const acme = await acmeGateway(t)
  const url = acme.url()
  const issuers = [{ issuer: acme.issuer.issuer, jwksUri: acme.issuer.jwksUri }]
  const strict = await acmeGateway(t, { auth: { issuers, keys: [{ name: 'ada', key: keyOf.ada }], dpop: 'required' } })
  const at = strict.url()
  const nobody = await present(at, {})
  t.match(nobody.headers['www-authenticate'], /^DPoP resource_metadata=.*algs=/)
  const metadata = await send(at.replace('/t/', '/.well-known/oauth-protected-resource/t/'), { method: 'GET' })
  t.match(metadata.json, { dpop_bound_access_tokens_required: true })
  const plain = await acme.issuer.sign({ aud: at, sub: 'ada', client_id: 'app' })
  t.equal((await present(at, { authorization: `Bearer ${plain}` })).status, 401)
  t.equal((await present(at, { authorization: `Bearer ${keyOf.ada}` })).status, 200)
  const token = await acme.issuer.sign({ aud: at, sub: 'ada', client_id: 'app', cnf: { jkt: client.thumbprint } })
  t.equal(
    (await present(at, { authorization: `DPoP ${token}`, dpop: await client.proof({ url: at, token }) })).status,
    200
  )
  t.equal((await present(url, { authorization: `Bearer ${await acme.bearer('JWT')}` })).status, 200, 'others do')
})

t.test('a scope that is missing is asked for in the words of DPoP', async (t) => {
  const acme = await acmeGateway(t)
  const issuers = [{ issuer: acme.issuer.issuer, jwksUri: acme.issuer.jwksUri }]
  const strict = await acmeGateway(t, { auth: { issuers, requiredScopes: ['admin'] } })
  const url = strict.url()
  const token = await acme.issuer.sign({ aud: url, cnf: { jkt: client.thumbprint } })
  const poor = await present(url, { authorization: `DPoP ${token}`, dpop: await client.proof({ url, token }) })
  t.equal(poor.status, 403)
  t.match(poor.headers['www-authenticate'], /^DPoP error="insufficient_scope".*scope="admin"/)
})

t.test('a key of absurd size is no key, and costs nobody a signature check', async (t) => {
  const acme = await acmeGateway(t)
  const url = acme.url()
  const holder = await keyHolder('RS256')
  for (const [n, message] of [
    [holder.jwk.n, /cannot be verified/],
    ['x'.repeat(1_600), /no usable public key/]
  ] as const) {
    const jwk = { ...holder.jwk, n: n ?? '' }
    const jkt = await calculateJwkThumbprint(jwk)
    const token = await acme.issuer.sign({ aud: url, cnf: { jkt } })
    const proof = await holder.proof({ url, token, header: { jwk } })
    const dpop = `${proof.slice(0, -8)}AAAAAAAA`
    const refused = await present(url, { authorization: `DPoP ${token}`, dpop })
    t.equal(refused.status, 401)
    t.match(refused.json.error.message, message)
  }
  const token = await acme.issuer.sign({ aud: url, cnf: { jkt: holder.thumbprint } })
  const dpop = await holder.proof({ url, token })
  t.equal((await present(url, { authorization: `DPoP ${token}`, dpop })).status, 200)
})

t.test('a token of Keycloak that says by its type that it is bound works with its proof', async (t) => {
  const acme = await acmeGateway(t)
  const issuers = [{ issuer: acme.issuer.issuer, jwksUri: acme.issuer.jwksUri, requireTyp: false }]
  const lax = await acmeGateway(t, { auth: { issuers } })
  const url = lax.url()
  const claims = { aud: url, typ: 'DPoP', cnf: { jkt: client.thumbprint } }
  const token = await acme.issuer.sign(claims, { typ: 'JWT' })
  const dpop = await client.proof({ url, token })
  t.equal((await present(url, { authorization: `Bearer ${token}` })).status, 401)
  t.equal((await present(url, { authorization: `DPoP ${token}`, dpop })).status, 200)
})

t.test('a token that a real authorization server bound, opaque or not, works with its proof', async (t) => {
  const idp = await realIssuer(t)
  const acme = await acmeGateway(t, { auth: { issuers: [{ issuer: idp.url, introspection: idp.introspection }] } })
  const url = acme.url()
  for (const opaque of [false, true]) {
    const asking = await client.proof({ url: `${idp.url}/token` })
    const token = await idp.token({ resource: url, opaque, proof: asking })
    const dpop = await client.proof({ url, token })
    t.equal((await present(url, { authorization: `DPoP ${token}`, dpop })).status, 200, `opaque: ${opaque}`)
    t.equal((await present(url, { authorization: `DPoP ${token}`, dpop })).status, 401, 'once')
    t.equal((await present(url, { authorization: `Bearer ${token}` })).status, 401)
  }
})
