// A POST or DELETE in its usual form goes past Node's server and Fastify (http/direct/). Nothing on the wire and nothing in the log
// may tell which way a request went: each is sent in both forms, which differ in a parameter of Content-Type, or in a length of 0.

import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient } from '../../kit/client.ts'
import { dial, untilClosed } from '../../kit/raw-http.ts'
import { until } from '../../kit/until.ts'

const call = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}'
const long = call.replace('hello', 'x'.repeat(300_000))
const ended = /HTTP\/1\.1 200 [^]*\r\nconnection: close\r\n/i

t.test('every answer and refusal of a POST is the same, byte for byte, in its usual form and in another', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  const session = `Mcp-Session-Id: ${headers['mcp-session-id']}\r\n`
  const usual = acme.post(call, session)
  const host = /Host: [^\r]+/
  for (const [status, what, bytes] of [
    [200, 'a call', usual],
    [200, 'a call of a named endpoint', acme.post(initializeBody(), '', '/t/acme/files/mcp')],
    [200, 'initialize', acme.post(initializeBody())],
    [200, 'a long call', acme.post(long, session)],
    [202, 'a notification', acme.post('{"jsonrpc":"2.0","method":"notifications/initialized"}', session)],
    [404, 'a session that there is not', acme.post(call, 'Mcp-Session-Id: nobody\r\n')],
    [400, 'no session', acme.post(call)],
    [400, 'a header that comes twice', acme.post(call, session + session)],
    [400, 'no JSON', acme.post('{"jsonrpc":', session)],
    [400, 'an empty body', acme.post('', session)],
    [400, 'HTTP/1.0 in place of HTTP/1.1', usual.replace('HTTP/1.1', 'HTTP/1.0')],
    [401, 'a wrong key', usual.replace(keyOf.ada, 'nope')],
    [401, 'no key', usual.replace(/Authorization: [^\r]+\r\n/, '')],
    [403, 'a foreign host', usual.replace(host, 'Host: evil.example')],
    [403, 'a foreign origin', acme.post(call, `${session}Origin: https://evil.example\r\n`)],
    [404, 'an endpoint that there is not', acme.post(call, session, '/t/acme/nowhere/mcp')],
    [404, 'the default endpoint by its name', acme.post(call, session, '/t/acme/default/mcp')],
    [406, 'a format that there is not', usual.replace(/Accept: [^\r]+/, 'Accept: text/html')],
    [415, 'a compressed body', acme.post(call, `${session}Content-Encoding: gzip\r\n`)]
  ] as const) {
    const seen = []
    for (const type of ['application/json', 'application/json; charset=utf-8']) {
      const from = acme.log.length
      const { text, ...answer } = await acme.exchange(bytes.replace('application/json\r\n', `${type}\r\n`))
      if (what !== 'HTTP/1.0 in place of HTTP/1.1') t.equal(answer.status, status, `${what}: ${text}`)
      seen.push({
        text: masked(text),
        log: acme.log
          .slice(from)
          .filter(isOfRequest)
          .map((line) => masked(JSON.stringify(line)))
      })
    }
    t.same(seen[0], seen[1], what)
  }
})

t.test('so is every answer and refusal of a DELETE', async (t) => {
  const acme = await acmeGateway(t)
  const remove = (session: string, key: string = keyOf.ada, more = ''): string =>
    `DELETE /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: Bearer ${key}\r\n${more}` +
    `${session}Connection: close\r\n\r\n`
  for (const [status, what, requestOf] of [
    [204, 'a session', (session: string) => remove(session)],
    [
      204,
      'with the headers of a POST',
      (session: string) => remove(session, keyOf.ada, 'Content-Type: application/json\r\n')
    ],
    [400, 'no session', () => remove('')],
    [
      400,
      'a revision that there is not',
      (session: string) => remove(`${session}MCP-Protocol-Version: 1999-01-01\r\n`)
    ],
    [401, 'a wrong key', (session: string) => remove(session, 'nope')],
    [403, 'a foreign host', (session: string) => remove(session).replace(/Host: [^\r]+/, 'Host: evil.example')],
    [404, 'a session of somebody else', (session: string) => remove(session, keyOf.bob)],
    [405, 'the era that has no sessions', () => remove('MCP-Protocol-Version: 2026-07-28\r\n')]
  ] as const) {
    const seen = []
    for (const length of ['', 'Content-Length: 0\r\n']) {
      const { headers } = await legacyClient(acme.url(), keyOf.ada)
      const from = acme.log.length
      const bytes = requestOf(`Mcp-Session-Id: ${headers['mcp-session-id']}\r\n`)
      const { text, ...answer } = await acme.exchange(bytes.replace('Connection:', `${length}Connection:`))
      t.equal(answer.status, status, `${what}: ${text}`)
      const log = acme.log.slice(from).filter(isOfRequest)
      seen.push({ text: masked(text), log: log.map((line) => masked(JSON.stringify(line))) })
      const left = await acme.exchange(acme.post(call, `Mcp-Session-Id: ${headers['mcp-session-id']}\r\n`))
      t.equal(left.status, status === 204 ? 404 : 200, 'the session is gone where it was ended, and nowhere else')
    }
    t.same(seen[0], seen[1], what)
  }
})

t.test('a connection goes on after a DELETE in either form', async (t) => {
  const acme = await acmeGateway(t)
  for (const length of ['', 'Content-Length: 0\r\n']) {
    const { headers } = await legacyClient(acme.url(), keyOf.ada)
    const session = `Mcp-Session-Id: ${headers['mcp-session-id']}\r\n`
    const kept = acme.post(call, session).replace('Connection: close\r\n', '')
    const head = `DELETE /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\n`
    const socket = dial(acme.port)
    const whole = untilClosed(socket)
    socket.write(kept)
    await until('it was called', () => acme.log.some(({ tool }) => tool === 'echo'))
    socket.write(`${head}${session}${length}\r\n`)
    socket.write(acme.post(call, session))
    t.same(
      [...(await whole).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
      ['200', '204', '404']
    )
  }
})

t.test('bodies of a connection are read one after the other, whole or in pieces, in either form', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  const session = `Mcp-Session-Id: ${headers['mcp-session-id']}\r\n`
  const kept = acme.post(call, session).replace('Connection: close\r\n', '')
  const other = kept.replace('application/json\r\n', 'application/json; charset=utf-8\r\n').replace('"id":7', '"id":8')
  const last = acme.post(call.replace('7', '9'), session)
  const socket = dial(acme.port)
  const whole = untilClosed(socket)
  const half = last.length - 40
  socket.write(kept + other + last.slice(0, half))
  await until('the first two were called', () => acme.log.filter(({ tool }) => tool === 'echo').length >= 2)
  socket.write(last.slice(half))
  const text = await whole
  t.same(
    [...text.matchAll(/"id":(\d)/g)].map(([, id]) => id),
    ['7', '8', '9'],
    text
  )
  t.match(text, ended)
})

/** Written before its answer; others may come at any time. */
const isOfRequest = ({ msg }: { readonly msg?: unknown }): boolean => msg === 'call' || msg === 'refused'

/** Without what differs from one request to the next. */
const masked = (text: string): string =>
  text
    .replace(/^(date|mcp-session-id|x-request-id): [^\r]+/gim, '$1: *')
    .replace(/"(requestId|session|time|ms|waitMs|upstreamMs|pid)":("[^"]*"|[\d.]+)/g, '"$1":*')
