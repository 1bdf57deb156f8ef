// Opaque tokens: the issuer is asked what they mean (RFC 7662).

import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { createFetch } from '../../src/egress/fetch.ts'
import type { IssuerConfig } from '../../src/config/auth/auth-config.ts'
import { outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { issuer } from '../kit/issuer.ts'
import { listen } from '../kit/listen.ts'

type Introspection = NonNullable<IssuerConfig['introspection']>

const asked = (url: string, introspection: Omit<Introspection, 'cacheSeconds'>, cacheSeconds = 30) =>
  tenantWith({ issuers: [trust(url, { introspection: { ...introspection, cacheSeconds } })] })

t.test('a real issuer is asked once for a token, and again after a while', async (t) => {
  const idp = await issuer(t)
  const setup = testAuthenticator(t, asked(idp.url, idp.introspection))
  const token = await idp.token({ resource, opaque: true })
  t.notMatch(token, '.', 'it is no JWT')
  const answers = await Promise.all(Array.from({ length: 50 }, () => setup.present(token)))
  t.ok(answers.every((answer) => outcome(answer) === 'robot'))
  t.match(answers[0], { kind: 'token', issuer: idp.url, clientId: 'robot', scopes: new Set(['mcp']) })
  t.equal(idp.introspectionRequests(), 1, 'one request for all that come at once')
  t.equal(outcome(await setup.present(token)), 'robot')
  t.equal(idp.introspectionRequests(), 1)
  await idp.revoke(token)
  t.equal(outcome(await setup.present(token)), 'robot', 'what it said is good for so long')
  setup.clock.advance(30_000)
  t.equal(outcome(await setup.present(token)), 401)
  t.equal(outcome(await setup.present(token)), 401)
  t.equal(idp.introspectionRequests(), 2, 'that it is not active is remembered for a while, too')
  setup.clock.advance(10_000)
  t.equal(outcome(await setup.present(token)), 401)
  t.equal(idp.introspectionRequests(), 3)
  t.same(setup.reasons(), ['inactive', 'inactive', 'inactive'])
})

t.test('its URL is discovered, and its JWTs are verified as before', async (t) => {
  const idp = await issuer(t)
  const { clientId, clientSecret } = idp.introspection
  const setup = testAuthenticator(t, asked(idp.url, { clientId, clientSecret }))
  t.equal(outcome(await setup.present(await idp.token({ resource, opaque: true }))), 'robot')
  t.equal(outcome(await setup.present(await idp.token({ resource }))), 'robot')
  t.equal(idp.introspectionRequests(), 1)
})

t.test('an opaque token for another resource is refused', async (t) => {
  const idp = await issuer(t)
  const setup = testAuthenticator(t, asked(idp.url, idp.introspection))
  const other = await idp.token({ resource: 'https://mcp.example.com/t/other/mcp', opaque: true })
  t.equal(outcome(await setup.present(other)), 401)
  t.equal(outcome(await setup.present(await idp.token({ resource, opaque: true }))), 'robot')
  t.same(setup.reasons(), ['audience'])
})

/** An issuer that says what the test wants of every token, and who asked. Undefined: it says nothing. */
async function answering(
  t: Test,
  answer: () => { status?: number; body: string; headers?: Record<string, string> } | undefined
) {
  const seen: string[] = []
  const url = await listen(
    t,
    createServer((request, response) => {
      seen.push(request.headers.authorization ?? '')
      const said = answer()
      if (said === undefined) return
      const { status = 200, body, headers = {} } = said
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
    })
  )
  return { url, seen }
}

t.test('what it says is judged as claims are, and what is no answer is no refusal', async (t) => {
  const seconds = Math.floor(Date.now() / 1000)
  const good = { active: true, sub: 'ada', client_id: 'app', aud: resource, token_type: 'Bearer', scope: 'mcp' }
  let body: unknown = good
  let more: { status?: number; headers?: Record<string, string> } = {}
  const idp = await answering(t, () => ({ body: typeof body === 'string' ? body : JSON.stringify(body), ...more }))
  const setup = testAuthenticator(t, asked(idp.url, { url: idp.url, clientId: 'a:b', clientSecret: 'c d' }, 0))
  let number = 0
  const present = async (next: unknown, around: typeof more = {}) => {
    ;[body, more] = [next, around]
    setup.clock.advance(2_000)
    return outcome(await setup.present(`opaque-${number++}`))
  }
  t.equal(await present(good), 'ada')
  t.equal(idp.seen[0], `Basic ${btoa('a%3Ab:c+d')}`, 'RFC 6749 section 2.3.1')
  for (const [what, answer] of Object.entries({
    'not active': { ...good, active: false },
    'something like true': { ...good, active: 'true' },
    one: { ...good, active: 1 },
    'no word of it': { ...good, active: undefined },
    'another audience': { ...good, aud: 'https://other.example' },
    'several audiences': { ...good, aud: [resource, 'https://other.example'] },
    'no audience': { ...good, aud: undefined },
    'another issuer': { ...good, iss: 'https://other.example' },
    past: { ...good, exp: seconds - 3600 },
    'an end that is no time': { ...good, exp: 'tomorrow' },
    'the future': { ...good, nbf: seconds + 3600 },
    'no subject': { ...good, sub: '', client_id: 'app' },
    'a refresh token': { ...good, token_type: undefined, typ: 'Refresh' },
    'nothing of what it is for': { ...good, token_type: undefined },
    'an ID token': { ...good, token_use: 'id' },
    'a token that is bound, and not to which key': { ...good, token_type: 'DPoP' }
  }))
    t.equal(await present(answer), 401, what)
  for (const [what, answer, around] of [
    ['HTML', '<html>', {}],
    ['a list', '[]', {}],
    ['half an object', '{"active":', {}],
    ['10 MB', `{"active":true,"x":"${'x'.repeat(10_000_000)}"}`, {}],
    ['its own error', good, { status: 500 }],
    ['that it does not know the gateway', good, { status: 401 }],
    ['that it cannot read the token', good, { status: 400 }],
    ['a redirect', good, { status: 302, headers: { location: 'http://169.254.169.254/' } }],
    ['something compressed', good, { headers: { 'content-encoding': 'gzip' } }]
  ] as const)
    t.equal(await present(answer, around), 503, what)
  t.equal(await present({ ...good, iss: idp.url, exp: seconds + 3600, token_type: 'bearer' }), 'ada')
  t.equal(await present({ ...good, sub: undefined }), 'app', 'a client for itself')
})

t.test('an issuer that hangs is no refusal, and is waited for no longer than a request may take', async (t) => {
  const body = JSON.stringify({ active: true, sub: 'ada', client_id: 'app', aud: resource, token_type: 'Bearer' })
  let hangs = false
  const idp = await answering(t, () => (hangs ? undefined : { body }))
  const tenant = asked(idp.url, { url: idp.url, clientId: 'a', clientSecret: 'b' })
  t.equal(outcome(await testAuthenticator(t, tenant).present('opaque')), 'ada')
  hangs = true
  const hasty = testAuthenticator(t, tenant, { fetch: createFetch({ timeoutMs: 500 }) })
  t.match(await hasty.present('opaque'), { code: 'unavailable', headers: { 'Retry-After': '2' } })
  const said = hasty.lines.find(({ msg }) => msg === 'an issuer cannot be asked about a token')
  t.match(said?.['reason'], /did not answer within 0\.5 s/)
})

t.test('no answer outlives the end of its token', async (t) => {
  const now = Date.now()
  const exp = Math.floor(now / 1000) + 20
  const body = JSON.stringify({ active: true, sub: 'ada', client_id: 'app', aud: resource, token_type: 'Bearer', exp })
  const idp = await answering(t, () => ({ body }))
  const setup = testAuthenticator(t, asked(idp.url, { url: idp.url, clientId: 'a', clientSecret: 'b' }, 60))
  t.equal(outcome(await setup.present('opaque')), 'ada')
  setup.clock.advance(9_000)
  t.equal(outcome(await setup.present('opaque')), 'ada')
  t.equal(idp.seen.length, 1)
  setup.clock.advance(30_000)
  await setup.present('opaque')
  t.equal(idp.seen.length, 2, 'it would be remembered for longer')
  setup.clock.advance(60_000)
  t.equal(outcome(await setup.present('opaque')), 401)
})

t.test('strangers with tokens that nobody issued keep nobody out, and do not flood the issuer', async (t) => {
  const idp = await issuer(t)
  const setup = testAuthenticator(t, asked(idp.url, idp.introspection, 0))
  const token = await idp.token({ resource, opaque: true })
  t.equal(outcome(await setup.present(token)), 'robot')
  const before = idp.introspectionRequests()
  const outcomes = await Promise.all(
    Array.from({ length: 1_000 }, (_, at) => setup.present(`made-up-${at}`).then(outcome))
  )
  t.ok(outcomes.every((each) => each === 401 || each === 503))
  t.ok(idp.introspectionRequests() - before <= 100, String(idp.introspectionRequests() - before))
  t.equal(outcome(await setup.present(token)), 'robot', 'who came before comes again')
})

t.test('one address with such tokens keeps nobody out who comes with a good one for the first time', async (t) => {
  const idp = await issuer(t)
  const setup = testAuthenticator(t, asked(idp.url, idp.introspection))
  const flood = await Promise.all(
    Array.from({ length: 300 }, (_, at) => setup.present(`made-up-${at}`, undefined, undefined, '198.51.100.7'))
  )
  t.ok(
    flood.some((answer) => outcome(answer) === 503),
    'it is held back itself'
  )
  for (let at = 0; at < 100; at++) await setup.present(`more-${at}`, undefined, undefined, '198.51.100.7')
  const good = await idp.token({ resource, opaque: true })
  t.equal(outcome(await setup.present(good, undefined, undefined, '198.51.100.7')), 503)
  t.equal(outcome(await setup.present(good, undefined, undefined, '203.0.113.9')), 'robot')
})

t.test(
  'a network of IPv6 with all its addresses is one of those, and addresses of IPv4 within IPv6 are many',
  async (t) => {
    const idp = await issuer(t)
    for (const [stranger, other] of [
      ['2001:db8:0:7::', '2001:db8:0:8::1'],
      ['2001:DB8::7:0:0:1:', '2001:db8:0:8::1'],
      ['2001:db8:0:7::', '203.0.113.9'],
      ['::ffff:198.51.100.7', '::ffff:203.0.113.9']
    ] as const) {
      const setup = testAuthenticator(t, asked(idp.url, idp.introspection))
      const from = (n: number): string => (stranger.endsWith(':') ? `${stranger}${n.toString(16)}` : stranger)
      let refused = 0
      for (let n = 1; n <= 150; n++)
        if (outcome(await setup.present(`made-up-${n}`, undefined, undefined, from(n))) === 503) refused++
      t.equal(refused, 100, `${stranger} gets its half`)
      const good = await idp.token({ resource, opaque: true })
      t.equal(outcome(await setup.present(good, undefined, undefined, from(500))), 503)
      t.equal(outcome(await setup.present(good, undefined, undefined, other)), 'robot', other)
    }
  }
)

t.test('a token of the issuer that is for something else is not asked about at every request', async (t) => {
  const idp = await issuer(t)
  const setup = testAuthenticator(t, asked(idp.url, idp.introspection, 0))
  const other = await idp.token({ resource: 'https://mcp.example.com/t/other/mcp', opaque: true })
  for (let n = 0; n < 20; n++) t.match(await setup.present(other), { message: /not for this resource/ })
  t.equal(idp.introspectionRequests(), 1)
  setup.clock.advance(10_000)
  t.equal(outcome(await setup.present(other)), 401)
  t.equal(idp.introspectionRequests(), 2)
  const good = await idp.token({ resource, opaque: true })
  for (let n = 0; n < 2; n++) t.equal(outcome(await setup.present(good)), 'robot')
  t.equal(idp.introspectionRequests(), 4, 'cacheSeconds: 0 stays what it is for those that are good')
})

t.test('a token that the issuer chokes on stops no question about another', async (t) => {
  const body = JSON.stringify({ active: true, sub: 'ada', client_id: 'app', aud: resource, token_type: 'Bearer' })
  let status = 200
  const idp = await answering(t, () => ({ body, status }))
  const setup = testAuthenticator(t, asked(idp.url, { url: idp.url, clientId: 'a', clientSecret: 'b' }))
  for (const [bad, next] of [
    [400, 'ada'],
    [413, 'ada'],
    [500, 503],
    [429, 503]
  ] as const) {
    status = bad
    t.equal(outcome(await setup.present(`bad-${bad}`)), 503)
    status = 200
    t.equal(outcome(await setup.present(`good-${bad}`)), next, String(bad))
    setup.clock.advance(2_000)
  }
})

t.test('while the issuer is away it is not asked by everybody', async (t) => {
  let questions = 0
  const setup = testAuthenticator(
    t,
    asked('https://idp.example', { url: 'https://idp.example/i', clientId: 'a', clientSecret: 'b' }),
    {
      fetch: async () => {
        questions += 1
        throw new Error('no network')
      }
    }
  )
  const first = await setup.present('opaque')
  t.match(first, { code: 'unavailable', headers: { 'Retry-After': '2' } })
  for (let n = 0; n < 10; n++) t.equal(outcome(await setup.present('opaque')), 503)
  t.equal(questions, 1)
  setup.clock.advance(2_000)
  await setup.present('opaque')
  t.equal(questions, 2)
})

t.test('without introspection an opaque token is none of the tenant', async (t) => {
  const idp = await issuer(t)
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.url)] }), { fetch: createFetch() })
  t.equal(outcome(await setup.present(await idp.token({ resource, opaque: true }))), 401)
  t.equal(idp.introspectionRequests(), 0)
})
