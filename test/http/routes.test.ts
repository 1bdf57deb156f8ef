// Methods and paths: what is served, what is refused, and that one endpoint has one spelling.

import t from 'tap'
import { placeIn } from '../../src/http/refuse.ts'
import { acmeGateway, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'

const auth = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }

t.test('other methods are named as not allowed, with those that are', async (t) => {
  const acme = await acmeGateway(t)
  for (const method of ['PUT', 'PATCH', 'HEAD', 'TRACE']) {
    const answer = await send(acme.url(), { method, headers: { 'content-length': 0 } })
    t.equal(answer.status, 405, method)
    t.equal(answer.headers.allow, 'GET, POST, DELETE, OPTIONS')
    if (method !== 'HEAD') t.equal(answer.json.error.data.reason, 'method_not_allowed')
  }
  const body = await send(acme.url(), { method: 'PUT', headers: { 'content-type': 'text/plain' }, body: 'x' })
  t.equal(body.status, 405, 'whatever they bring')

  const options = await send(acme.url(), { method: 'OPTIONS' })
  t.equal(options.status, 204)
  t.equal(options.headers.allow, 'GET, POST, DELETE, OPTIONS')
  t.notOk(options.headers['access-control-allow-origin'])

  for (const line of ['PROPFIND /t/acme/mcp', 'QUERY /t/acme/mcp'])
    t.equal(
      (await acme.exchange(`${line} HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nConnection: close\r\n\r\n`)).status,
      404,
      line
    )
  for (const line of ['PRI * HTTP/2.0', 'NONSENSE / HTTP/1.1', 'get / HTTP/1.1', 'POST / HTTP/9.9'])
    t.equal((await acme.exchange(`${line}\r\nHost: 127.0.0.1:${acme.port}\r\n\r\n`)).status, 400, line)
  t.equal(
    (await acme.exchange(`CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\n\r\n`)).text,
    '',
    'no tunnel'
  )
})

t.test('a request to switch protocols is an ordinary request', async (t) => {
  const acme = await acmeGateway(t)
  for (const upgrade of ['websocket', 'h2c']) {
    const answer = await acme.exchange(
      acme
        .post(
          initializeBody(),
          `Upgrade: ${upgrade}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nHTTP2-Settings: AAMAAABk\r\n`
        )
        .replace('Connection: close', 'Connection: Upgrade, close')
    )
    t.equal(answer.status, 200, upgrade)
    t.notOk(answer.header('upgrade'))
  }
})

t.test('unknown tenants, endpoints and pages are not found, before anything is asked', async (t) => {
  const acme = await acmeGateway(t)
  for (const path of [
    '/t/nobody/mcp',
    '/t/acme/nothing/mcp',
    '/t/acme/default/mcp',
    '/t/__proto__/mcp',
    '/t/constructor/mcp',
    '/t/acme/__proto__/mcp',
    '/t//mcp',
    '/t/acme',
    '/t/acme/mcp/x',
    '/mcp',
    '/',
    '/admin',
    '/sse',
    '/messages'
  ]) {
    for (const headers of [auth, jsonHeaders]) {
      const answer = await send(acme.publicUrl + path, { headers, body: initializeBody() })
      t.equal(answer.status, 404, path)
      t.equal(answer.json.error.data.reason, 'not_found')
      t.notOk(answer.headers['www-authenticate'])
    }
  }
})

t.test('an endpoint answers under its own path and no other spelling of it', async (t) => {
  const acme = await acmeGateway(t)
  const at = async (path: string) => (await acme.exchange(acme.post(initializeBody(), '', path))).status
  for (const path of [
    '/t/acme/mcp',
    '/t/acme/files/mcp',
    '/t/acme/mcp?x=1',
    '/t/acme/mcp?',
    `http://127.0.0.1:${acme.port}/t/acme/mcp`,
    `http://localhost:${acme.port}/t/acme/files/mcp?x`
  ])
    t.equal(await at(path), 200, path)
  for (const path of [
    '//t/acme/mcp',
    '/t//acme/mcp',
    '/T/acme/mcp',
    '/t/ACME/mcp',
    '/t/acme/MCP',
    '/t/acme/Files/mcp',
    '/t/%61cme/mcp',
    '/t/acme/fi%6Ces/mcp',
    '/t/acme/fi%6ces/mcp',
    '/t/acme/%6dcp',
    '/t/acme%2Fmcp',
    '/t/acme%2ffiles/mcp',
    '/t/acme/files%2Fmcp',
    '/t/acme/./mcp',
    '/t/acme/../acme/mcp',
    '/t/x/../acme/mcp',
    '/t/acme/%2e%2e/mcp',
    '/t/acme/mcp%00',
    '/t/acme%00/mcp',
    '/t/acme/mcp%20',
    '/t/acme/mcp;x',
    '/t/acme/mcp;jsessionid=1',
    '/t/acme/mcp%3Fx',
    '/t\\acme\\mcp',
    '/t/acme/mcp%0d%0aX-A:b',
    '/%',
    '/%zz',
    '/t/%ff/mcp',
    `/t/${'a'.repeat(129)}/mcp`,
    `/t/${'a'.repeat(5000)}/mcp`
  ])
    t.equal(await at(path), 404, path.slice(0, 60))
  for (const path of ['/t/acme/mcp x', '/t/acme/mc\0p', '/t/acme/mcp\r\nX: y'])
    t.equal(await at(path), 400, JSON.stringify(path))
  t.equal(await at('/' + 'a'.repeat(70_000)), 431)
})

t.test('an absolute request target names a host too, and that one counts', async (t) => {
  const acme = await acmeGateway(t)
  for (const target of [
    'http://evil.example/t/acme/mcp',
    'https://evil.example/t/acme/mcp',
    'HTTP://EVIL.example:80/t/acme/mcp',
    `http://127.0.0.1:${acme.port}@evil.example/t/acme/mcp`,
    `http://evil.example@127.0.0.1:${acme.port}/t/acme/mcp`
  ]) {
    t.equal((await acme.exchange(acme.post(initializeBody(), '', target))).status, 403, target)
  }
})

t.test('metadata of each endpoint is public, under the well-known path in front of its own', async (t) => {
  const acme = await acmeGateway(t)
  const at = (path: string, method = 'GET') =>
    send(`${acme.publicUrl}/.well-known/oauth-protected-resource${path}`, { method })
  for (const path of ['/t/acme/mcp', '/t/acme/files/mcp']) {
    const { status, json } = await at(path)
    t.equal(status, 200)
    t.match(json, {
      resource: acme.publicUrl + path,
      authorization_servers: [acme.issuer.issuer],
      bearer_methods_supported: ['header']
    })
    t.equal((await at(path, 'POST')).status, 405)
    t.equal((await at(path, 'DELETE')).status, 405)
  }
  for (const path of ['', '/', '/t/nobody/mcp', '/t/acme/nothing/mcp', '/t/acme/default/mcp'])
    t.equal((await at(path)).status, 404, 'a root document would speak for other tenants')
})

t.test('health needs neither token nor host', async (t) => {
  const acme = await acmeGateway(t)
  for (const path of ['live', 'ready']) {
    const answer = await acme.exchange(`GET /health/${path} HTTP/1.1\r\nHost: 10.0.0.1\r\nConnection: close\r\n\r\n`)
    t.equal(answer.status, 200)
    t.same(JSON.parse(answer.body), { status: path })
  }
})

t.test('whose a request is that no route has seen stands in its path', (t) => {
  for (const [path, tenant, endpoint] of [
    ['/t/acme/mcp', 'acme', 'default'],
    ['/t/acme/sse?x=/t/other/a/mcp', 'acme', 'default'],
    ['/t/acme/support/mcp', 'acme', 'support'],
    ['/t/acme/mcp-tools/mcp?q', 'acme', 'mcp-tools'],
    ['/t/acme/sse-x/messages?sessionId=1', 'acme', 'sse-x'],
    ['/t/acme/connections/up', 'acme', 'default'],
    ['/health', undefined, 'default']
  ] as const)
    t.same(placeIn(path), { tenant, endpoint }, path)
  t.end()
})
