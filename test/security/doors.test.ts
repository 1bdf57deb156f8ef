// Attack: a door that forgot a check. Every route of the gateway is read from its table, and each that is not public by
// nature has to refuse all that follows, and to let a good token in. A new route is a new door.

import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { addRoutes, type RoutesOptions } from '../../src/http/routes.ts'
import { acmeGateway, initializeBody, type AcmeGateway } from '../kit/acme-gateway.ts'
import { assemble, forgedKey } from '../kit/forging-issuer.ts'
import { send } from '../kit/client.ts'
import { modernMessage } from '../kit/modern-client.ts'

/** Who may ask without a credential, and why. */
const open: Readonly<Record<string, string>> = {
  'GET /': 'a page for people, the same for everybody',
  'GET /health/live': 'probes',
  'GET /health/ready': 'probes',
  'GET /t/:tenant/jwks.json': 'public keys of assertions (RFC 7517)',
  'GET /.well-known/oauth-protected-resource/t/:tenant/mcp': 'RFC 9728',
  'GET /.well-known/oauth-protected-resource/t/:tenant/sse': 'RFC 9728',
  'GET /.well-known/oauth-protected-resource/t/:tenant/:endpoint/mcp': 'RFC 9728',
  'GET /.well-known/oauth-protected-resource/t/:tenant/:endpoint/sse': 'RFC 9728',
  'POST /register': 'there is no authorization server',
  'GET /authorize': 'there is no authorization server',
  'POST /token': 'there is no authorization server'
}

interface Door {
  readonly method: string
  readonly url: string
}

/**
 * As the server is told of them: without those that only say which methods there are, and without the pages for people
 * (the login front, their connections), which have sign-ins and tests of their own.
 */
function doors(): Door[] {
  const found: Door[] = []
  const add = (method: string, url: string): void => void found.push({ method, url })
  const table = {
    route: ({ method, url }: { method: string | string[]; url: string }) => {
      if (typeof method === 'string' && method !== 'OPTIONS') add(method, url)
    },
    get: (url: string) => add('GET', url),
    register: () => {},
    addContentTypeParser: () => {},
    removeAllContentTypeParsers: () => {}
  }
  const handlers = { legacy: {}, modern: {}, httpSse: {}, login: {} }
  addRoutes(table as unknown as FastifyInstance, { handlers, vault: {} } as unknown as RoutesOptions, () => {})
  return found.filter(({ url }) => !/login|\/connections|\/\*/.test(url))
}

const all = doors()
const guarded = all.filter(({ method, url }) => open[`${method} ${url}`] === undefined)

t.test('the table of routes is read, and what is public is still there', async (t) => {
  t.ok(guarded.length >= 10, guarded.map(({ method, url }) => `${method} ${url}`).join('\n'))
  const known = new Set(all.map(({ method, url }) => `${method} ${url}`))
  for (const name of Object.keys(open)) t.ok(known.has(name), name)
})

const acme = await acmeGateway(t, { origins: ['https://page.example'] })
const strict = await acmeGateway(t, {
  auth: { issuers: [{ issuer: acme.issuer.issuer, jwksUri: acme.issuer.jwksUri }], requiredScopes: ['admin'] }
})
const stranger = await forgedKey('ES256')

interface Attempt {
  readonly status: number | readonly number[]
  readonly headers?: Record<string, string>
  readonly query?: string
  /** Of the token, put over good ones. */
  readonly claims?: Record<string, unknown>
  readonly header?: Record<string, unknown>
  readonly authorization?: (good: string) => string | undefined
  /** Of POSTs only. */
  readonly posts?: true
}

const seconds = Math.floor(Date.now() / 1000)
const attempts: Readonly<Record<string, Attempt>> = {
  'no token': { status: 401, authorization: () => undefined },
  'an unknown key': { status: 401, authorization: () => 'Bearer gh_nobodys_key_0123456789' },
  'another scheme': { status: 401, authorization: () => `Basic ${btoa('ada:secret')}` },
  'two tokens': { status: 401, authorization: (good) => `Bearer ${good}, Bearer ${good}` },
  'a token and something behind it': { status: 401, authorization: (good) => `Bearer ${good} x` },
  'an endless token': { status: 401, authorization: () => `Bearer ${'a'.repeat(9_000)}` },
  'alg none': {
    status: 401,
    authorization: () => `Bearer ${assemble({ alg: 'none', typ: 'at+jwt' }, { iss: acme.issuer.issuer, sub: 'ada' })}`
  },
  'HMAC with what is public': {
    status: 401,
    authorization: () =>
      `Bearer ${assemble({ alg: 'HS256', typ: 'at+jwt', kid: stranger.kid }, { iss: acme.issuer.issuer, sub: 'ada' })}`
  },
  'a key that nobody published': { status: 401, header: { kid: stranger.kid } },
  'another issuer': { status: 401, claims: { iss: 'https://other.example' } },
  'another endpoint': { status: 401, claims: { aud: acme.url('nowhere') } },
  'several audiences': { status: 401, claims: { aud: [acme.url(), 'https://other.example'] } },
  'an ID token': { status: 401, header: { typ: 'JWT' }, claims: { nonce: 'n' } },
  'a token that has expired': { status: 401, claims: { iat: seconds - 7200, exp: seconds - 3600 } },
  'a token of tomorrow': { status: 401, claims: { nbf: seconds + 3600 } },
  'a token that lives too long': { status: 401, claims: { exp: seconds + 10 * 86_400 } },
  'a token without an end': { status: 401, claims: { exp: undefined } },
  'a token that is bound to a key': { status: 401, claims: { cnf: { jkt: 'x' } } },
  'a token within a token': { status: 401, header: { cty: 'JWT' } },
  'a key of its own': { status: 401, header: { kid: stranger.kid, jwk: stranger.jwk } },
  'keys at an address of its own': { status: 401, header: { kid: stranger.kid, jku: 'http://127.0.0.1:9/' } },
  'a kid that is a path': { status: 401, header: { kid: '../../etc/passwd' } },
  'a refresh token': { status: 401, header: { typ: 'rt+jwt' } },
  'a token that is made tomorrow': { status: 401, claims: { iat: seconds + 3600, exp: seconds + 7200 } },
  'no subject': { status: 401, claims: { sub: undefined } },
  'a token in the query': { status: [401, 404], query: '?access_token=TOKEN', authorization: () => undefined },
  'a token in a cookie': { status: 401, headers: { cookie: 'access_token=TOKEN' }, authorization: () => undefined },
  'a user in a header': {
    status: 401,
    headers: { 'x-user': 'ada', 'x-forwarded-user': 'ada', 'mcp-user': 'ada' },
    authorization: () => undefined
  },
  'another Host': { status: 403, headers: { host: 'evil.example' } },
  'an address as Host': { status: 403, headers: { host: '169.254.169.254' } },
  'a user before the Host': { status: 403, headers: { host: 'x@127.0.0.1' } },
  'another Host behind a forwarded one': {
    status: 403,
    headers: { host: 'evil.example', 'x-forwarded-host': '127.0.0.1', forwarded: 'host=127.0.0.1' }
  },
  'another Origin': { status: 403, headers: { origin: 'https://evil.example' } },
  'the Origin null': { status: 403, headers: { origin: 'null' } },
  'an Origin that begins alike': { status: 403, headers: { origin: 'https://page.example.evil.example' } },
  'what a page may send unasked': { status: 415, headers: { 'content-type': 'text/plain' }, posts: true },
  'a form': { status: 415, headers: { 'content-type': 'application/x-www-form-urlencoded' }, posts: true },
  'something compressed': { status: 415, headers: { 'content-encoding': 'gzip' }, posts: true },
  'an Origin with a dot at its end': { status: 403, headers: { origin: 'https://page.example.' } },
  'an Origin with another port': { status: 403, headers: { origin: 'https://page.example:8443' } }
}

const pathOf = ({ url }: Door): string => url.replace(':tenant', 'acme').replace(':endpoint', 'files')
const eras: Readonly<Record<string, { headers: Record<string, unknown>; body: string }>> = {
  'up to 2025-11-25': {
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: initializeBody()
  },
  '2026-07-28': modernMessage('tools/list')
}

async function knock(
  at: AcmeGateway,
  door: Door,
  era: keyof typeof eras,
  { headers = {}, query = '', claims = {}, header = {}, authorization = (good) => `Bearer ${good}` }: Partial<Attempt>
) {
  const name = door.url.includes(':endpoint') ? 'files' : 'default'
  const good = await acme.issuer.sign({ aud: at.url(name), sub: 'ada', client_id: 'app', ...claims }, header)
  const credential = authorization(good)
  const { headers: own, body } = eras[era] ?? { headers: {}, body: '' }
  const filled = Object.fromEntries(Object.entries(headers).map(([key, value]) => [key, value.replace('TOKEN', good)]))
  return await send(at.publicUrl + pathOf(door) + query.replace('TOKEN', good), {
    method: door.method,
    headers: {
      ...(door.method === 'POST' ? own : { accept: 'text/event-stream', 'mcp-session-id': 'x'.repeat(43) }),
      ...(credential !== undefined && { authorization: credential }),
      ...filled
    },
    ...(door.method === 'POST' && { body }),
    signal: AbortSignal.timeout(20_000)
  })
}

/** A stream does not end by itself. */
async function openStream(door: Door): Promise<{ status: number }> {
  const name = door.url.includes(':endpoint') ? 'files' : 'default'
  const token = await acme.issuer.sign({ aud: acme.url(name), sub: 'ada', client_id: 'app' })
  const answer = await fetch(acme.publicUrl + pathOf(door), { headers: { authorization: `Bearer ${token}` } })
  await answer.body?.cancel()
  return answer
}

for (const door of guarded)
  for (const era of door.method === 'POST' ? Object.keys(eras) : ['up to 2025-11-25'])
    t.test(`${door.method} ${door.url}, ${era}`, async (t) => {
      const before = acme.upstream.server.received.length
      for (const [what, attempt] of Object.entries(attempts)) {
        if (attempt.posts && door.method !== 'POST') continue
        const { status, headers } = await knock(acme, door, era, attempt)
        t.ok([attempt.status].flat().includes(status), `${what}: ${status}`)
        if (status === 401) t.match(headers['www-authenticate'], /^(?:Bearer|DPoP) .*resource_metadata=/, what)
      }
      const poor = await knock(strict, door, era, {})
      t.equal(poor.status, 403, 'a scope that is missing')
      t.match(poor.headers['www-authenticate'], /error="insufficient_scope".* scope="admin"/)
      t.equal(acme.upstream.server.received.length, before, 'no upstream was reached')
      const { status } = door.url.endsWith('/sse') ? await openStream(door) : await knock(acme, door, era, {})
      t.notOk([401, 403, 415].includes(status), `a good token: ${status}`)
    })
