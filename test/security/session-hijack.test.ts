// Attack: a stolen session id with another credential. It never authenticates, and is bound to who opened the session,
// not to the bytes of the token.

import t from 'tap'
import { acmeGateway, authOf, credentials, initializeBody } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'

async function tries(url: string, headers: Record<string, unknown>): Promise<unknown[]> {
  const results: unknown[] = []
  for (const [method, body] of [
    ['POST', ping],
    ['POST', cancel],
    ['POST', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ['POST', `[${ping}]`],
    ['GET'],
    ['DELETE']
  ] as const) {
    const answer = await send(url, {
      method,
      headers: headers as Record<string, string>,
      ...(body === undefined ? {} : { body })
    })
    results.push([answer.status, answer.json?.error?.data?.reason])
  }
  return results
}
const unknown = Array.from({ length: 6 }, () => [404, 'session_unknown'])

for (const kind of credentials) {
  t.test(`a session id is unknown to another user of the tenant, by ${kind}`, async (t) => {
    const acme = await acmeGateway(t)
    const ada = await legacyClient(acme.url(), await acme.bearer(kind, 'ada'))
    const authorization = `Bearer ${await acme.bearer(kind, 'bob')}`
    t.same(await tries(acme.url(), { ...ada.headers, authorization }), unknown)
    t.same(
      await tries(acme.url(), { ...ada.headers, authorization, 'mcp-session-id': 'x'.repeat(43) }),
      unknown,
      'exactly like one that never was'
    )
    const own = await send(acme.url(), { headers: { ...ada.headers, authorization }, body: initializeBody() })
    t.equal(own.status, 200, 'it does not even stop him from opening his own')
    t.equal((await ada.request('ping')).status, 200, 'and ada never notices')

    const { authorization: _, ...anonymous } = ada.headers
    for (const method of ['POST', 'GET', 'DELETE'])
      t.equal(
        (await send(acme.url(), { method, headers: anonymous, ...(method === 'POST' ? { body: ping } : {}) })).status,
        401,
        'with no token it is worth nothing'
      )
    t.equal((await ada.end()).status, 204)
  })
}

t.test('the same person with a key and with a token is two callers', async (t) => {
  const acme = await acmeGateway(t)
  const byKey = await legacyClient(acme.url(), await acme.bearer('API key'))
  t.same(await tries(acme.url(), { ...byKey.headers, authorization: `Bearer ${await acme.bearer('JWT')}` }), unknown)
  t.same(
    await tries(acme.url(), {
      ...byKey.headers,
      authorization: `Bearer ${await acme.bearer('JWT', 'ada', { client_id: 'ada' })}`
    }),
    unknown,
    'also where the names are equal'
  )
})

t.test('the same subject of another client or another issuer is another caller', async (t) => {
  const other = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const first = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const acme = await acmeGateway(t, {
    auth: { ...(authOf(first) as object), issuers: [first, other].map(({ issuer, jwksUri }) => ({ issuer, jwksUri })) }
  })
  const claims = { aud: acme.url(), sub: 'ada', client_id: 'app' }
  const ada = await legacyClient(acme.url(), await first.sign(claims))
  t.same(await tries(acme.url(), { ...ada.headers, authorization: `Bearer ${await other.sign(claims)}` }), unknown)
  t.same(
    await tries(acme.url(), {
      ...ada.headers,
      authorization: `Bearer ${await first.sign({ ...claims, client_id: 'another app' })}`
    }),
    unknown
  )
  const refreshed = await first.sign({ ...claims, jti: 'fresh', exp: Math.floor(Date.now() / 1000) + 500 })
  t.equal(
    (await send(acme.url(), { headers: { ...ada.headers, authorization: `Bearer ${refreshed}` }, body: ping })).status,
    200,
    'while a refreshed token keeps its session'
  )
})

t.test('a session id is unknown to a user of another tenant', async (t) => {
  const acme = await acmeGateway(t, {
    tenants: {
      beta: {
        auth: { keys: [{ name: 'ada', key: 'gh_key_of_beta_0123456789' }] },
        upstreams: { up: { command: 'true' } }
      }
    }
  })
  const ada = await legacyClient(acme.url(), await acme.bearer('API key'))
  const authorization = 'Bearer gh_key_of_beta_0123456789'
  t.same(await tries(acme.url('default', 'beta'), { ...ada.headers, authorization }), unknown)
  t.equal(
    (await send(acme.url(), { headers: { ...ada.headers, authorization }, body: ping })).status,
    401,
    'whose key is nothing here'
  )
  t.equal(
    (await send(acme.url('default', 'beta'), { headers: { ...ada.headers }, body: ping })).status,
    401,
    'and the other way round'
  )
  t.equal((await ada.request('ping')).status, 200)
})
