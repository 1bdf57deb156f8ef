// The compiled checks of Host and Origin, for addresses that a test cannot listen on.

import t from 'tap'
import { hostCheck, isAllowedOrigin, readTarget, refuseDuplicateHeaders } from '../../src/http/headers.ts'
import { GatewayError } from '../../src/protocol/messages.ts'

const outcome = (run: () => void): string => {
  try {
    run()
    return 'in'
  } catch (error) {
    return error instanceof GatewayError ? error.code : String(error)
  }
}

t.test('behind a public name, only that name and the listed ones are hosts', async (t) => {
  const check = hostCheck(
    { url: 'http://127.0.0.1:8080', publicUrl: 'https://mcp.example.com', loopbackPort: undefined },
    ['gatehouse.internal', '10.0.0.5:8080', 'Mixed.Example']
  )
  for (const host of [
    'mcp.example.com',
    'mcp.example.com:443',
    'MCP.EXAMPLE.COM',
    'gatehouse.internal',
    'gatehouse.internal:9000',
    '10.0.0.5:8080',
    'mixed.example'
  ]) {
    t.equal(
      outcome(() => check(host)),
      'in',
      host
    )
  }
  for (const host of [
    undefined,
    '',
    'evil.example',
    'mcp.example.com:80',
    'mcp.example.com:8443',
    'mcp.example.com.',
    'mcp.example.com.evil.example',
    'evil-mcp.example.com',
    'x@mcp.example.com',
    'mcp.example.com@evil.example',
    'mcp.example.com/',
    'mcp.example.com:443:443',
    'mcp.example.com:',
    ' mcp.example.com',
    'mcp.example.com, evil.example',
    'localhost',
    '127.0.0.1',
    '[::1]',
    '10.0.0.5',
    '10.0.0.5:80',
    'gatehouse.internal:',
    'gatehouse.internal:x',
    'gatehouse.internal:80:80',
    '*'
  ]) {
    t.equal(
      outcome(() => check(host)),
      'forbidden_host',
      String(host)
    )
  }
})

t.test('on loopback, the loopback names with the listening port are hosts', async (t) => {
  const check = hostCheck({ url: 'http://127.0.0.1:8080', publicUrl: 'http://127.0.0.1:8080', loopbackPort: 8080 }, [])
  for (const host of ['127.0.0.1:8080', 'localhost:8080', '[::1]:8080', 'LOCALHOST:8080'])
    t.equal(
      outcome(() => check(host)),
      'in',
      host
    )
  for (const host of [
    'localhost',
    'localhost:80',
    '127.0.0.1',
    '127.0.0.1:8081',
    '127.0.0.2:8080',
    '127.1:8080',
    '2130706433:8080',
    '0.0.0.0:8080',
    '[::]:8080',
    '::1:8080',
    '[::ffff:127.0.0.1]:8080',
    'localhost.:8080',
    'x.localhost:8080'
  ]) {
    t.equal(
      outcome(() => check(host)),
      'forbidden_host',
      host
    )
  }
})

t.test('an origin is one of the list, letter by letter', async (t) => {
  const publicUrl = 'https://mcp.example.com'
  const allowed = new Set(['https://claude.ai'])
  for (const origin of [undefined, 'https://claude.ai', publicUrl]) t.ok(isAllowedOrigin(origin, publicUrl, allowed))
  for (const origin of [
    '',
    'null',
    'http://claude.ai',
    'https://claude.ai/',
    'https://claude.ai:443',
    'https://CLAUDE.ai',
    'https://claude.ai.',
    'https://x.claude.ai',
    'https://claude.ai.evil.example',
    'https://claude.ai, https://claude.ai',
    '*',
    'http://mcp.example.com'
  ]) {
    t.notOk(isAllowedOrigin(origin, publicUrl, allowed), origin)
  }
  t.notOk(isAllowedOrigin('https://claude.ai', publicUrl, undefined), 'no tenant, no list')
})

t.test('a header that two parties could read differently comes once', async (t) => {
  t.equal(
    outcome(() => refuseDuplicateHeaders(['Host', 'a', 'Accept', 'x', 'accept', 'y', 'X-Any', '1', 'X-Any', '2'])),
    'in'
  )
  for (const name of [
    'Host',
    'Origin',
    'Authorization',
    'Content-Type',
    'Content-Length',
    'Content-Encoding',
    'Mcp-Session-Id',
    'MCP-Protocol-Version',
    'Last-Event-ID'
  ]) {
    t.equal(
      outcome(() => refuseDuplicateHeaders([name, 'same', name.toLowerCase(), 'same'])),
      'invalid_request',
      name
    )
  }
})

t.test('a request target is read as the router reads it', async (t) => {
  t.same(readTarget('/t/a/mcp?x=http://b/c'), { host: undefined, path: '/t/a/mcp' })
  t.same(readTarget('/t/a/mcp#x'), { host: undefined, path: '/t/a/mcp' })
  t.same(readTarget('http://h:1/t/a/mcp?x'), { host: 'h:1', path: '/t/a/mcp' })
  t.same(readTarget('HTTPS://u@h'), { host: 'u@h', path: '' })
  t.same(readTarget('http:///t'), { host: '', path: '/t' })
  t.same(readTarget('*'), { host: undefined, path: '*' })
  t.same(readTarget('ftp://h/t'), { host: undefined, path: 'ftp://h/t' })
})
