// Attack: bytes that a proxy in front and the gateway could cut into requests differently. Each is refused and its
// connection closed, so that what follows is never read as a request.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'

t.test('ambiguous framing is refused, and what hides behind it is not run', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const head = `POST /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${sessionId}\r\nContent-Type: application/json\r\n`
  const call = (name: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}"}}`
  const hidden = `${head}Connection: close\r\nContent-Length: ${call('fail').length}\r\n\r\n${call('fail')}`
  const body = call('echo')
  const hex = body.length.toString(16)
  const chunked = (size: string, end = '0\r\n\r\n') =>
    `${head}Transfer-Encoding: chunked\r\n\r\n${size}\r\n${body}\r\n${end}`

  for (const [what, bytes] of [
    ['length and chunks', `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['chunks and length', `${head}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`],
    ['two lengths', `${head}Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n`],
    ['two equal lengths', `${head}Content-Length: ${body.length}\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['a list of lengths', `${head}Content-Length: 0, ${hidden.length}\r\n\r\n`],
    ['a signed length', `${head}Content-Length: +${body.length}\r\n\r\n${body}`],
    ['a negative length', `${head}Content-Length: -1\r\n\r\n`],
    ['a hexadecimal length', `${head}Content-Length: 0x10\r\n\r\n${body}`],
    ['a length with a space', `${head}Content-Length: 1 0\r\n\r\n${body}`],
    ['a length beyond 64 bits', `${head}Content-Length: 99999999999999999999\r\n\r\n`],
    ['a space before the colon', `${head}Content-Length : ${body.length}\r\n\r\n${body}`],
    ['a folded length', `${head}Content-Length:\r\n ${body.length}\r\n\r\n${body}`],
    ['a folded coding', `${head}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n`],
    ['an unknown coding', `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
    ['chunked that is not last', `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`],
    ['a coding in a tab', `${head}Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n`],
    ['bare line feeds', `${head}Content-Length: ${body.length}\r\n\r\n${body}`.replaceAll('\r\n', '\n')],
    ['one bare line feed', `${head}X-A: b\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['one bare carriage return', `${head}X-A: b\rContent-Length: 0\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['a header without a name', `${head}: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['a header without a colon', `${head}nothing\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['a NUL in a header', `${head}X-A: a\0b\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['a NUL in a name', `${head}X-A\0: b\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    ['a chunk size that overflows', chunked('ffffffffffffffff1')],
    ['a chunk size with a sign', chunked(`-${hex}`)],
    ['a chunk size with a prefix', chunked(`0x${hex}`)],
    ['a chunk size with a space', chunked(`${hex} `)],
    ['a chunk size ended by a line feed', `${head}Transfer-Encoding: chunked\r\n\r\n${hex}\n${body}\r\n0\r\n\r\n`],
    ['a chunk longer than it says', chunked('1')],
    ['a chunk extension with a line feed', chunked(`${hex};a\nb`)],
    ['HTTP/0.9', head.replace(' HTTP/1.1', '') + `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`],
    [
      'HTTP/1.2',
      head.replace('HTTP/1.1', 'HTTP/1.2') + `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    ],
    ['a space before the method', ` ${head}Content-Length: ${body.length}\r\n\r\n${body}`]
  ] as const) {
    const calls = acme.upstream.server.calls('echo')
    const answer = await acme.exchange(bytes + hidden)
    t.ok(answer.status >= 400, `${what}: ${answer.status}`)
    t.equal(acme.upstream.server.calls('fail'), 0, 'what hides is not run')
    t.equal(acme.upstream.server.calls('echo'), calls, 'nor what it hides in')
  }
})

t.test('unambiguous framing passes', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  const head = `POST /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${sessionId}\r\nContent-Type: application/json\r\nConnection: close\r\n`
  const pieces = [body.slice(0, 7), body.slice(7)]
    .map((piece) => `${piece.length.toString(16).toUpperCase()};name=value\r\n${piece}\r\n`)
    .join('')
  t.equal(
    (await acme.exchange(`${head}Transfer-Encoding: Chunked\r\n\r\n${pieces}0\r\nX-Trailer: Authorization\r\n\r\n`))
      .status,
    200
  )
  t.equal((await acme.exchange(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)).status, 200)
  t.equal(
    (await acme.exchange(`\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`)).status,
    200,
    'an empty line before a request is ignored (RFC 9112 section 2.2)'
  )
})

t.test('a body that belongs to a refused request is not the next request', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const hidden = acme.post(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail"}}',
    `Mcp-Session-Id: ${sessionId}\r\n`
  )
  const last = acme.post('{"jsonrpc":"2.0","id":2,"method":"ping"}', `Mcp-Session-Id: ${sessionId}\r\n`)
  const refused = [
    ['no token', 'POST /t/acme/mcp', ''],
    ['a path that is none', 'POST /none', ''],
    ['a method that is not allowed', 'PUT /t/acme/mcp', ''],
    ['a preflight with a body', 'OPTIONS /t/acme/mcp', '']
  ] as const
  const letIn = [
    ['a DELETE', 'DELETE /t/acme/mcp', `Authorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${'x'.repeat(43)}\r\n`],
    ['a GET', 'GET /t/acme/mcp', `Authorization: Bearer ${keyOf.ada}\r\n`],
    ['a wrong type', 'POST /t/acme/mcp', `Authorization: Bearer ${keyOf.ada}\r\nContent-Type: text/plain\r\n`]
  ] as const
  for (const [what, line, headers] of [...refused, ...letIn]) {
    const answer = await acme.exchange(
      `${line} HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\n${headers}Content-Length: ${hidden.length}\r\n\r\n${hidden}${last}`
    )
    t.equal(acme.upstream.server.calls('fail'), 0, what)
    if (refused.some(([each]) => each === what)) {
      t.equal(answer.header('connection'), 'close')
      t.notMatch(answer.text, '"id":2', 'nor is anything behind it')
    } else t.match(answer.text, /"id":2,"result":\{\}/, 'while the request behind it is')
  }
})
