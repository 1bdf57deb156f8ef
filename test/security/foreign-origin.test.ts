// Attack: a web page of a foreign origin calls with a user's token, or tries requests that a browser sends without a
// preflight.

import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'

const good = 'https://good.example'
const auth = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }
const corsOf = (headers: Record<string, unknown>) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control'))

t.test('a page of a foreign origin is refused, valid token or not', async (t) => {
  const acme = await acmeGateway(t, {
    origins: [good],
    tenants: {
      beta: {
        auth: { keys: [{ name: 'x', key: 'gh_key_of_beta_0123456789' }] },
        origins: ['https://beta.example'],
        upstreams: { up: { command: 'true' } }
      }
    }
  })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const before = acme.upstream.seen.length
  for (const origin of [
    'https://evil.example',
    'null',
    '',
    'http://good.example',
    'https://good.example/',
    'https://good.example:443',
    'https://GOOD.example',
    'https://good.example.',
    'http://good.example.evil.example',
    'https://good.example.evil.example',
    'http://[::1].evil.example',
    'https://xgood.example',
    'https://good.example https://evil.example',
    'https://good.example, https://good.example',
    'https://beta.example',
    'file://',
    'chrome-extension://abc',
    'http://localhost',
    'http://127.0.0.1'
  ]) {
    for (const method of ['POST', 'GET', 'DELETE', 'OPTIONS']) {
      const answer = await send(acme.url(), {
        method,
        headers: { ...client.headers, origin },
        ...(method === 'POST' ? { body: initializeBody() } : {})
      })
      t.equal(answer.status, 403, `${method} from ${JSON.stringify(origin)}`)
      t.same(corsOf(answer.headers), [], 'and is told nothing that a page may read')
    }
  }
  t.equal(
    (
      await send(`${acme.publicUrl}/.well-known/oauth-protected-resource/t/acme/mcp`, {
        method: 'GET',
        headers: { origin: 'https://evil.example' }
      })
    ).status,
    403
  )
  const two = await acme.exchange(acme.post(initializeBody(), `Origin: ${good}\r\nOrigin: ${good}\r\n`))
  t.equal(two.status, 400, 'twice')
  t.notOk(two.header('access-control-allow-origin'))
  t.equal(acme.upstream.seen.length, before)
  t.equal((await client.request('ping')).status, 200, 'the session is not harmed')
})

t.test("a listed origin, the gateway's own and clients without an origin pass", async (t) => {
  const acme = await acmeGateway(t, { origins: [good] })
  for (const origin of [good, acme.publicUrl]) {
    const answer = await send(acme.url(), { headers: { ...auth, origin }, body: initializeBody() })
    t.equal(answer.status, 200)
    t.equal(answer.headers['access-control-allow-origin'], origin, 'exactly this one, never *')
    t.match(answer.headers['access-control-expose-headers'], /Mcp-Session-Id.*WWW-Authenticate/)
    t.equal(answer.headers.vary, 'Origin')
    t.notOk(answer.headers['access-control-allow-credentials'], 'there are no cookies here')

    const refused = await send(acme.url(), { headers: { ...jsonHeaders, origin }, body: initializeBody() })
    t.equal(refused.status, 401)
    t.equal(refused.headers['access-control-allow-origin'], origin, 'a page must be able to read its challenge')
  }
  const server = await send(acme.url(), { headers: auth, body: initializeBody() })
  t.equal(server.status, 200)
  t.same(corsOf(server.headers), [])
})

t.test('a preflight allows methods and headers to a listed origin', async (t) => {
  const acme = await acmeGateway(t, { origins: [good] })
  const answer = await send(acme.url(), {
    method: 'OPTIONS',
    headers: {
      origin: good,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization, x-anything'
    }
  })
  t.equal(answer.status, 204)
  t.equal(answer.headers['access-control-allow-origin'], good)
  t.equal(answer.headers['access-control-allow-methods'], 'GET, POST, DELETE')
  t.notMatch(answer.headers['access-control-allow-headers'], /x-anything|\*/i)
  t.match(answer.headers['access-control-allow-headers'], /Authorization.*Mcp-Session-Id.*MCP-Protocol-Version/)
  t.equal(answer.headers.vary, 'Origin, Access-Control-Request-Headers')
})

t.test('what a page may send without a preflight is never taken for JSON', async (t) => {
  const acme = await acmeGateway(t, { origins: [good] })
  for (const type of [
    'text/plain',
    'text/plain;charset=UTF-8',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    undefined
  ]) {
    const { 'content-type': _, ...headers } = auth
    const answer = await send(acme.url(), {
      headers: { ...headers, origin: good, ...(type === undefined ? {} : { 'content-type': type }) },
      body: initializeBody()
    })
    t.equal(answer.status, 415, String(type))
  }
  t.equal(acme.upstream.seen.length, 0)
})
