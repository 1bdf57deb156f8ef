// Attack: a door that forgot a check. Every route of the gateway is read from its table, and each that is not public by
// nature has to refuse all that follows, and to let a good token in. A new route is a new door. The pages of people are
// in page-doors.test.ts.

import t from 'tap'
import { acmeGateway, initializeBody, type AcmeGateway } from '../kit/acme-gateway.ts'
import { type Attempt, attemptsAt, type Door, readDoors } from '../kit/doors.ts'
import { forgedKey } from '../kit/forging-issuer.ts'
import { send } from '../kit/client.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { patienceMs } from '../kit/until.ts'

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

const all = await readDoors()
const guarded = all.filter(({ method, url, isPage }) => !isPage && open[`${method} ${url}`] === undefined)

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

const attempts = attemptsAt({
  issuer: acme.issuer.issuer,
  elsewhere: acme.url('nowhere'),
  here: acme.url(),
  stranger
})

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
    signal: AbortSignal.timeout(patienceMs)
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

t.test('what is public answers under the name of the gateway, to pages of the tenant only', async (t) => {
  for (const name of Object.keys(open)) {
    const [method = '', url = ''] = name.split(' ')
    const path = pathOf({ method, url, isPage: false })
    const ask = async (headers: Record<string, string>): Promise<number> =>
      (await send(acme.publicUrl + path, { method, headers })).status
    const usual = await ask({})
    t.notOk([403, 421].includes(usual), `${name}: ${usual}`)
    if (url.startsWith('/health/')) continue
    t.equal(await ask({ host: 'evil.example' }), 403, `${name}, another Host`)
    t.equal(await ask({ host: '169.254.169.254' }), 403, `${name}, an address as Host`)
  }
})
