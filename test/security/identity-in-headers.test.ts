// Attack: a header, a path or a body claims another identity, or that a check was already made. Who calls is in the
// token only.

import t from 'tap'
import { acmeGateway, credentials, initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'

const claims = {
  'x-user': 'bob',
  'x-forwarded-user': 'bob',
  'x-remote-user': 'bob',
  'x-auth-request-user': 'bob',
  'x-tenant': 'acme',
  'x-tenant-id': 'acme',
  'x-api-key': 'gh_key_of_bob_0123456789',
  'mcp-user': 'bob',
  'x-gatehouse-principal': '{"tenant":"acme","subject":"bob"}',
  'x-gatehouse-internal': '1',
  'x-internal': 'true',
  'x-original-url': '/health/live',
  'x-rewrite-url': '/health/live',
  'x-http-method-override': 'GET',
  cookie: 'token=gh_key_of_bob_0123456789; authorization=Bearer%20gh_key_of_bob_0123456789'
}

t.test('without a token no header lets a caller in', async (t) => {
  const acme = await acmeGateway(t)
  for (const method of ['POST', 'GET', 'DELETE']) {
    const answer = await send(`${acme.url()}?access_token=gh_key_of_bob_0123456789&user=bob`, {
      method,
      headers: { ...jsonHeaders, ...claims },
      ...(method === 'POST' ? { body: initializeBody() } : {})
    })
    t.equal(answer.status, 401, method)
    t.match(answer.headers['www-authenticate'], /^Bearer resource_metadata="/)
  }
  t.equal(acme.upstream.seen.length, 0, 'and nothing reached the upstream')
})

for (const kind of credentials) {
  t.test(`with a ${kind}, nothing makes ada bob`, async (t) => {
    const acme = await acmeGateway(t)
    const bob = await legacyClient(acme.url(), await acme.bearer(kind, 'bob'))
    const ada = await acme.bearer(kind, 'ada')
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'ping',
      params: { _meta: { user: 'bob', sub: 'bob', principal: { subject: 'bob' }, 'io.gatehouse/subject': 'bob' } }
    })
    const answer = await send(acme.url(), {
      headers: { ...bob.headers, ...claims, authorization: `Bearer ${ada}` },
      body
    })
    t.equal(answer.status, 404, 'the session of bob is unknown to her')
    t.equal(
      (await send(acme.url(), { headers: { ...bob.headers, ...claims }, body })).status,
      200,
      'and bob himself is not harmed by them'
    )
  })
}
