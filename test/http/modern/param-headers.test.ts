// Arguments that headers repeat, held against the schema that the endpoint publishes (2026-07-28 "Server Behavior for
// Custom Headers").

import t from 'tap'
import { gateway, key } from '../../kit/gateway.ts'
import { modernMessage, modernRequest } from '../../kit/modern-client.ts'
import type { Json } from '../../kit/mcp-server.ts'
import { startModern } from '../../kit/modern-server.ts'
import { rawExchange } from '../../kit/raw-http.ts'

const upstream = await startModern()
t.teardown(() => upstream.close())
const acme = await gateway(t, {
  upstreams: { up: { type: 'http', url: upstream.url } },
  endpoints: { default: { upstreams: ['up'], prefix: '' } }
})

const call = (args: Json, headers: Record<string, string> = {}, name = 'routed') =>
  modernRequest(acme.url(), 'tools/call', { name, arguments: args }, { token: key, headers })
const reached = (): number => upstream.server.requests('tools/call').length

t.test('headers that repeat their arguments pass, and so do arguments without annotation', async (t) => {
  const before = reached()
  t.equal(
    (
      await call(
        { region: 'eu', count: 42, dry: true, deep: { zone: 'ü' }, plain: 'x' },
        {
          'mcp-param-region': 'eu',
          'mcp-param-count': '42.0',
          'mcp-param-dry': 'true',
          'mcp-param-zone': '=?base64?w7w=?='
        }
      )
    ).status,
    200
  )
  t.equal((await call({ region: '' }, { 'mcp-param-region': '' })).status, 200, 'an empty text is an empty header')
  t.equal((await call({ region: null })).status, 200)
  t.equal((await call({})).status, 200)
  t.equal(
    (await call({ plain: 'x' }, { 'mcp-param-plain': 'y', 'mcp-param-unknown': 'z' })).status,
    200,
    'unknown ones are ignored'
  )
  t.equal(
    (await call({ region: 'eu' }, { 'mcp-param-region': 'us' }, 'echo')).status,
    200,
    'and so are all of them where the tool has none'
  )
  t.equal(reached(), before + 6)
  t.same(upstream.seen.at(-1)?.headers['mcp-param-region'], undefined, 'nor are they sent on')
})

t.test('what is missing, different, superfluous or damaged is refused before any upstream is reached', async (t) => {
  const before = reached()
  for (const [args, headers] of [
    [{ region: 'eu' }, {}],
    [{ region: 'eu' }, { 'mcp-param-region': 'us' }],
    [{ region: 'eu' }, { 'mcp-param-region': 'EU' }],
    [{ region: '' }, {}],
    [{}, { 'mcp-param-region': 'eu' }],
    [{ region: null }, { 'mcp-param-region': 'null' }],
    [{ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVsbG8?=' }],
    [{ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVs!!!bG8=?=' }],
    [{ count: 42 }, { 'mcp-param-count': '43' }],
    [{ dry: true }, { 'mcp-param-dry': '1' }],
    [{ deep: { zone: 'a' } }, {}]
  ] as const) {
    const answer = await call(args, headers)
    t.match(
      answer,
      {
        status: 400,
        json: { id: 1, error: { code: -32020, message: /Mcp-Param-/, data: { reason: 'header_mismatch' } } }
      },
      JSON.stringify([args, headers])
    )
  }
  t.equal(reached(), before)
})

t.test('a header that came twice is not the two of them joined', async (t) => {
  const port = Number(new URL(acme.publicUrl).port)
  const { headers, body } = modernMessage(
    'tools/call',
    { name: 'routed', arguments: { region: 'eu, us' } },
    { token: key }
  )
  const as = (...lines: string[]) =>
    rawExchange(
      port,
      [
        'POST /t/acme/mcp HTTP/1.1',
        `Host: 127.0.0.1:${port}`,
        'Connection: close',
        `Content-Length: ${Buffer.byteLength(body)}`,
        ...Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`),
        ...lines,
        '',
        body
      ].join('\r\n')
    )
  t.equal((await as('Mcp-Param-Region: eu, us')).status, 200)
  t.equal((await as('Mcp-Param-Region: eu', 'Mcp-Param-Region: us')).status, 400)
})
