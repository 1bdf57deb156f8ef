// Both eras on one URL: the request alone says which one it belongs to, and the same caller may use both at once.

import t from 'tap'
import { acmeGateway, credentials } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { envelope, modernMessage, modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { startUpstream } from '../kit/upstream.ts'

const modern = await startModern({ legacy: true })
t.teardown(() => modern.close())
const legacy = await startUpstream()
t.teardown(() => legacy.close())
const page = 'https://page.example'
const acme = await gateway(t, {
  upstreams: { both: { type: 'http', url: modern.url }, old: { type: 'http', url: legacy.url } },
  endpoints: {
    default: { upstreams: ['both'], prefix: '' },
    old: { upstreams: ['old'], prefix: '' },
    all: { upstreams: ['both', 'old'] }
  },
  origins: [page]
})
const token = key

t.test('one URL serves a session and requests that stand alone, in turns', async (t) => {
  const client = await legacyClient(acme.url(), token)
  for (let turn = 0; turn < 3; turn++) {
    t.match(await client.request('tools/call', { name: 'echo', arguments: { turn } }), {
      status: 200,
      json: { result: {} }
    })
    const answer = await modernRequest(acme.url(), 'tools/call', { name: 'echo', arguments: { turn } }, { token })
    t.match(answer, { status: 200, json: { result: { resultType: 'complete' } } })
    t.equal(answer.headers['mcp-session-id'], undefined)
  }
  const listed = await client.request('tools/list')
  t.notOk('resultType' in listed.json.result, 'what is of the one era is not in the other')
  t.equal((await client.end()).status, 204)
  t.equal(
    (await modernRequest(acme.url(), 'tools/list', {}, { token, headers: { 'mcp-session-id': client.sessionId } }))
      .status,
    200,
    'the end of a session is nothing to it'
  )
})

t.test('an upstream that knows only sessions serves a request without one', async (t) => {
  const answer = await modernRequest(
    acme.url('old'),
    'tools/call',
    { name: 'echo', arguments: { text: 'hi' } },
    { token }
  )
  t.match(answer, { status: 200, json: { result: { resultType: 'complete' } } })
})

t.test('GET and DELETE of 2026-07-28 are not allowed; those of sessions are what they were', async (t) => {
  const authorized = { authorization: `Bearer ${token}`, accept: 'text/event-stream' }
  for (const method of ['GET', 'DELETE']) {
    const answer = await send(acme.url(), { method, headers: { ...authorized, 'mcp-protocol-version': '2026-07-28' } })
    t.match(answer, { status: 405, headers: { allow: 'POST' }, json: { error: { message: /POST/ } } }, method)
    t.match(
      await send(acme.url(), { method, headers: authorized }),
      { status: 400, json: { error: { data: { reason: 'session_required' } } } },
      method
    )
  }
  const client = await legacyClient(acme.url(), token)
  const stream = await client.listen()
  stream.close()
  t.equal((await client.end()).status, 204)
})

t.test('batches are of one old revision: those that hold a newer message are refused whole', async (t) => {
  const client = await legacyClient(acme.url(), token, '2025-03-26')
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const post = (body: unknown) => send(acme.url(), { headers: client.headers, body: JSON.stringify(body) })
  t.match(await post([ping, { ...ping, id: 2 }]), { status: 200 })
  t.match(await post([ping, { jsonrpc: '2.0', id: 2, method: 'tools/list', params: { _meta: envelope() } }]), {
    status: 400,
    json: { error: { code: -32600 } }
  })
  t.match(await post([]), { status: 400, json: { error: { code: -32600 } } })
  t.match(
    await send(acme.url(), {
      headers: { ...client.headers, 'mcp-protocol-version': '2026-07-28' },
      body: JSON.stringify([ping])
    }),
    { status: 400, json: { error: { code: -32600 } } }
  )
})

t.test('the same token, audience and origin are asked for in both eras', async (t) => {
  const before = modern.server.received.length
  const { body } = modernMessage('tools/call', { name: 'echo', arguments: {} })
  for (const [why, headers, status] of [
    ['no token', { authorization: undefined }, 401],
    ['another token', { authorization: 'Bearer gh_nobodys_key_0123456789' }, 401],
    ['an unknown origin', { origin: 'https://evil.example' }, 403],
    ['another host', { host: 'evil.example' }, 403]
  ] as const) {
    const all = { ...modernMessage('tools/call', { name: 'echo' }, { token }).headers, ...headers }
    const answer = await send(acme.url(), {
      headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
      body
    })
    t.equal(answer.status, status, why)
    if (status === 401) t.match(answer.headers['www-authenticate'], /^Bearer .*realm="API key"/, why)
  }
  t.equal(modern.server.received.length, before, 'and no upstream hears of it')
  t.equal(
    (
      await modernRequest(
        acme.url(),
        'tools/call',
        { name: 'echo', arguments: {} },
        { token, headers: { origin: page } }
      )
    ).status,
    200
  )
  for (const kind of credentials) {
    const own = await acmeGateway(t)
    t.equal(
      (
        await modernRequest(
          own.url(),
          'tools/call',
          { name: 'echo', arguments: { text: 'hi' } },
          { token: await own.bearer(kind) }
        )
      ).status,
      200,
      kind
    )
    const wrong =
      kind === 'JWT'
        ? [await own.bearer(kind, 'ada', { aud: own.url('files') }), await own.bearer(kind, 'ada', { exp: 1 })]
        : []
    for (const bearer of wrong)
      t.equal((await modernRequest(own.url(), 'tools/list', {}, { token: bearer })).status, 401)
  }
  t.equal((await modernRequest(acme.url('default', 'nobody'), 'tools/list', {}, { token })).status, 404)
})

t.test('a page may send every header that a request needs, and no other', async (t) => {
  const ask = (wanted: string, origin = page) =>
    send(acme.url(), {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': wanted }
    })
  const answer = await ask(
    'authorization,content-type,mcp-method,mcp-name,mcp-protocol-version,mcp-param-region, Mcp-Param-Zone,x-other,mcp-param-,mcp-param-a b'
  )
  t.equal(answer.status, 204)
  const allowed = String(answer.headers['access-control-allow-headers']).toLowerCase().split(', ')
  for (const name of [
    'authorization',
    'content-type',
    'accept',
    'mcp-protocol-version',
    'mcp-method',
    'mcp-name',
    'mcp-session-id',
    'mcp-param-region',
    'mcp-param-zone'
  ])
    t.ok(allowed.includes(name), name)
  for (const name of ['x-other', '*', 'mcp-param-', 'mcp-param-a b']) t.notOk(allowed.includes(name), name)
  t.match(answer.headers.vary, /Access-Control-Request-Headers/)
  t.equal(
    (await ask(Array.from({ length: 500 }, (_, n) => `mcp-param-${n}`).join(','))).headers[
      'access-control-allow-headers'
    ]?.split(', ').length,
    9 + 64
  )
  t.equal((await ask('mcp-param-region', 'https://evil.example')).status, 403)
})

t.test('a notification is taken and not answered, whatever it says', async (t) => {
  for (const body of [
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    { jsonrpc: '2.0', method: 'no/such', params: { _meta: envelope() } }
  ]) {
    const answer = await send(acme.url(), {
      headers: { ...jsonHeaders, authorization: `Bearer ${token}`, 'mcp-protocol-version': '2026-07-28' },
      body: JSON.stringify(body)
    })
    t.match(answer, { status: 202, text: '' })
  }
})
