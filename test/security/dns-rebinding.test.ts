// Attack: DNS rebinding. A web page makes its own name resolve to the gateway, and its requests carry that name as
// Host.

import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'

t.test('every path but health refuses a foreign Host before anything else', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const before = acme.upstream.seen.length
  const own = `127.0.0.1:${acme.port}`
  const paths = [
    ['POST', '/t/acme/mcp'],
    ['GET', '/t/acme/mcp'],
    ['DELETE', '/t/acme/mcp'],
    ['OPTIONS', '/t/acme/mcp'],
    ['PUT', '/t/acme/mcp'],
    ['GET', '/.well-known/oauth-protected-resource/t/acme/mcp'],
    ['OPTIONS', '/.well-known/oauth-protected-resource/t/acme/mcp'],
    ['GET', '/nothing'],
    ['POST', '/t/nobody/mcp']
  ] as const
  const body = initializeBody()
  const knock = (method: string, path: string, host: string) =>
    acme.exchange(
      `${method} ${path} HTTP/1.1\r\n${host}Authorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${sessionId}\r\nOrigin: http://evil.example:${acme.port}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    )

  for (const [method, path] of paths) {
    const answer = await knock(method, path, `Host: evil.example:${acme.port}\r\n`)
    t.equal(answer.status, 403, `${method} ${path}`)
    t.match(answer.body, /forbidden_host/)
    t.notOk(answer.header('access-control-allow-origin'), 'and the page cannot even read that')
    t.notOk(answer.header('www-authenticate'))
  }
  for (const host of [
    'evil.example',
    `localhost.evil.example:${acme.port}`,
    `127.0.0.1.evil.example:${acme.port}`,
    `127.0.0.1:${acme.port + 1}`,
    `0.0.0.0:${acme.port}`,
    `2130706433:${acme.port}`,
    `[::ffff:7f00:1]:${acme.port}`,
    `x@${own}`,
    `${own}@evil.example`,
    `${own}.`,
    `${own},evil.example`
  ]) {
    t.equal((await knock('POST', '/t/acme/mcp', `Host: ${host}\r\n`)).status, 403, host)
  }
  t.equal((await knock('POST', '/t/acme/mcp', `Host: ${own}\r\nHost: evil.example\r\n`)).status, 400, 'two')
  t.equal((await knock('POST', '/t/acme/mcp', `Host: ${own}\r\nHost: ${own}\r\n`)).status, 400, 'two of the same')
  t.equal((await knock('POST', '/t/acme/mcp', '')).status, 400, 'none')
  t.equal((await knock('POST', '/t/acme/mcp', 'Host:\r\n')).status, 403, 'empty')
  t.equal((await knock('POST', '/t/acme/mcp', 'Host : evil.example\r\n')).status, 400, 'a space before the colon')
  t.equal(acme.upstream.seen.length, before, 'nothing reached the upstream')
})

t.test("the gateway's own names pass", async (t) => {
  const acme = await acmeGateway(t, { top: { hosts: ['gatehouse.internal'] } })
  for (const host of [
    `127.0.0.1:${acme.port}`,
    `localhost:${acme.port}`,
    `[::1]:${acme.port}`,
    `LOCALHOST:${acme.port}`,
    'gatehouse.internal',
    'Gatehouse.Internal:1'
  ]) {
    t.equal(
      (await acme.exchange(acme.post(initializeBody()).replace(/Host: .*\r\n/, `Host: ${host}\r\n`))).status,
      200,
      host
    )
  }
  t.equal(
    (await acme.exchange('GET /health/live HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n')).status,
    200,
    'health tells nothing and lets probes in'
  )
})
