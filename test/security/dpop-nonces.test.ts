// Attack: proofs of DPoP that were made beforehand, by somebody who had the key of a client for a moment (RFC 9449
// section 11.2). Where a tenant wants nonces, a proof without one that the gateway gave just now is refused; on each
// door.

import { moveClock, stopClock } from '../kit/moving-clock.ts'
import type { OutgoingHttpHeaders } from 'node:http'
import t from 'tap'
import { acmeGateway, authOf, initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { keyHolder } from '../kit/dpop.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { modernMessage } from '../kit/modern-client.ts'

// A nonce is that of its minute: no minute begins by itself.
stopClock()

const idp = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
const auth = { ...(authOf(idp) as object), dpopNonces: true }
const acme = await acmeGateway(t, {
  auth,
  origins: ['https://page.example'],
  tenants: { globex: { auth, upstreams: {} } }
})
const client = await keyHolder()
const tokenFor = (aud: string) => idp.sign({ aud, sub: 'ada', client_id: 'app', cnf: { jkt: client.thumbprint } })
const url = acme.url()
const token = await tokenFor(url)

interface Door {
  readonly method: string
  readonly url: string
  readonly headers: OutgoingHttpHeaders
  readonly body?: string
}
const modern = modernMessage('tools/list')
const first: Door = { method: 'POST', url, body: initializeBody(), headers: jsonHeaders }
const doors: readonly Door[] = [
  first,
  { ...first, body: modern.body, headers: { ...jsonHeaders, ...modern.headers } },
  { ...first, url: url.replace(/mcp$/, 'messages') },
  { method: 'DELETE', url, headers: { 'mcp-session-id': 'x'.repeat(43) } },
  { method: 'GET', url, headers: { 'mcp-session-id': 'x'.repeat(43), accept: 'text/event-stream' } }
]

async function ask(door: Door, nonce: unknown, bearer = token) {
  const { method, headers, body } = door
  const proof = await client.proof({ method, url: door.url, token: bearer, claims: { nonce } })
  return await send(door.url, {
    method,
    headers: { ...headers, authorization: `DPoP ${bearer}`, dpop: proof },
    ...(body !== undefined && { body })
  })
}
const nonceOf = ({ headers }: { readonly headers: Record<string, unknown> }): string => String(headers['dpop-nonce'])

t.teardown(() => moveClock(0))

t.test('each door asks for a nonce, and takes the one that it gave', async (t) => {
  for (const door of doors) {
    const what = `${door.method} ${door.url}`
    const asked = await ask(door, undefined)
    t.equal(asked.status, 401, what)
    t.match(asked.headers['www-authenticate'], /^DPoP error="use_dpop_nonce".*resource_metadata=.*algs=/, what)
    t.match(nonceOf(asked), /^[\w-]{16}$/, what)
    const answer = await ask(door, nonceOf(asked))
    t.not(answer.status, 401, `${what}: ${answer.text}`)
    t.equal(answer.headers['dpop-nonce'], undefined, 'it is still the newest')
  }
  t.equal((await ask(first, nonceOf(await ask(first, undefined)))).status, 200)
})

t.test('a nonce that nobody gave, that of another tenant, and an old one are refused', async (t) => {
  const other = acme.url('default', 'globex')
  const elsewhere = await ask({ ...first, url: other }, undefined, await tokenFor(other))
  const given = nonceOf(await ask(first, undefined))
  for (const [what, nonce] of Object.entries({
    invented: 'x'.repeat(16),
    empty: '',
    'no text': 7,
    several: [given],
    longer: `${given}A`,
    'of another tenant': nonceOf(elsewhere)
  })) {
    const { status, headers } = await ask(first, nonce)
    t.equal(status, 401, what)
    t.match(headers['www-authenticate'], /error="use_dpop_nonce"/, what)
  }
  t.equal((await ask(first, given)).status, 200)
  moveClock(150_000)
  t.match((await ask(first, given)).headers['www-authenticate'], /error="use_dpop_nonce"/, 'an old one')
  moveClock(0)
})

t.test('one that was replaced a moment ago is good, and the answer tells the new one', async (t) => {
  const given = nonceOf(await ask(first, undefined))
  moveClock(60_000)
  const answer = await ask(first, given)
  t.equal(answer.status, 200)
  const next = nonceOf(answer)
  t.not(next, given)
  const settled = await ask(first, next)
  t.match([settled.status, settled.headers['dpop-nonce']], [200, undefined])
})

t.test('a page may read it', async (t) => {
  const { headers } = await ask({ ...first, headers: { ...first.headers, origin: 'https://page.example' } }, undefined)
  t.match(headers['access-control-expose-headers'], /DPoP-Nonce/)
})
