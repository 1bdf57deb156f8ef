// Cases 39 and 41: who calls is in the token and nowhere else. No header, path or body makes anybody somebody, and no header skips a check.

import t from 'tap'
import { acme, credentials, initializeBody } from '../kit/acme.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'

const claims = {
  'x-user': 'bob', 'x-forwarded-user': 'bob', 'x-remote-user': 'bob', 'x-auth-request-user': 'bob', 'x-tenant': 'acme', 'x-tenant-id': 'acme', 'x-api-key': 'gh_key_of_bob_0123456789',
  'mcp-user': 'bob', 'x-gatehouse-principal': '{"tenant":"acme","subject":"bob"}', 'x-gatehouse-internal': '1', 'x-internal': 'true', 'x-original-url': '/health/live', 'x-rewrite-url': '/health/live', 'x-http-method-override': 'GET',
  cookie: 'token=gh_key_of_bob_0123456789; authorization=Bearer%20gh_key_of_bob_0123456789'
}

t.test('without a token, no header lets anybody in', async (t) => {
  const house = await acme(t)
  for (const method of ['POST', 'GET', 'DELETE']) {
    const answer = await send(`${house.url()}?access_token=gh_key_of_bob_0123456789&user=bob`, { method, headers: { ...jsonHeaders, ...claims }, ...(method === 'POST' ? { body: initializeBody() } : {}) })
    t.equal(answer.status, 401, method)
    t.match(answer.headers['www-authenticate'], /^Bearer resource_metadata="/)
  }
  t.equal(house.upstream.seen.length, 0, 'and nothing reached the upstream')
})

for (const kind of credentials) {
  t.test(`with a ${kind}, nothing makes ada bob`, async (t) => {
    const house = await acme(t)
    const bob = await legacyClient(house.url(), await house.bearer(kind, 'bob'))
    const ada = await house.bearer(kind, 'ada')
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: { user: 'bob', sub: 'bob', principal: { subject: 'bob' }, 'io.gatehouse/subject': 'bob' } } })
    const answer = await send(house.url(), { headers: { ...bob.headers, ...claims, authorization: `Bearer ${ada}` }, body })
    t.equal(answer.status, 404, 'the session of bob is unknown to her')
    t.equal((await send(house.url(), { headers: { ...bob.headers, ...claims }, body })).status, 200, 'and bob himself is not harmed by them')
  })
}
