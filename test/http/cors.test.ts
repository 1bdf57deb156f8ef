// CORS on the wire: what a page of an allowed origin may read and send, on every URL, and nothing for any other
// request.

import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, send, type Answer } from '../kit/client.ts'

const page = 'https://page.example'
const readable = {
  'access-control-allow-origin': page,
  'access-control-expose-headers':
    'Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id',
  vary: 'Origin'
}
const preflight = {
  ...readable,
  'access-control-allow-methods': 'GET, POST, DELETE',
  'access-control-allow-headers':
    'Authorization, DPoP, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID',
  'access-control-max-age': '600',
  vary: 'Origin, Access-Control-Request-Headers'
}
const corsOf = ({ headers }: Answer): Record<string, unknown> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name === 'vary' || name.startsWith('access-control')))

const urls = {
  '/t/acme/mcp': 'GET, POST, DELETE, OPTIONS',
  '/t/acme/files/mcp': 'GET, POST, DELETE, OPTIONS',
  '/t/acme/sse': 'GET, OPTIONS',
  '/t/acme/messages': 'POST, OPTIONS',
  '/.well-known/oauth-protected-resource/t/acme/mcp': 'GET, OPTIONS',
  '/.well-known/oauth-protected-resource/t/acme/sse': 'GET, OPTIONS'
}

t.test('OPTIONS is answered on every URL, with its methods; only an allowed origin gets more', async (t) => {
  const { publicUrl } = await acmeGateway(t, { origins: [page] })
  for (const [path, allow] of Object.entries(urls)) {
    const options = (headers: Record<string, string>) => send(publicUrl + path, { method: 'OPTIONS', headers })
    const asked = await options({ origin: page, 'access-control-request-method': 'POST' })
    t.match([asked.status, asked.headers.allow, asked.text], [204, allow, ''], path)
    t.same(corsOf(asked), preflight, path)
    t.same(corsOf(await options({ origin: page })), preflight, 'whatever it asks for')
    const plain = await options({})
    t.match([plain.status, plain.headers.allow, corsOf(plain)], [204, allow, {}], 'without Origin')
    const foreign = await options({ origin: 'https://other.example', 'access-control-request-method': 'POST' })
    t.match([foreign.status, foreign.json.error.data.reason, corsOf(foreign)], [403, 'forbidden_origin', {}])
  }
})

t.test('of lists in headers nothing is read beyond 4 KiB', async (t) => {
  const { publicUrl } = await acmeGateway(t, { origins: [page] })
  const url = `${publicUrl}/t/acme/mcp`
  const allowedWith = async (before: string): Promise<string> => {
    const wanted = `${before}mcp-param-region`
    const headers = { origin: page, 'access-control-request-headers': wanted }
    return String((await send(url, { method: 'OPTIONS', headers })).headers['access-control-allow-headers'])
  }
  t.match(await allowedWith(','.repeat(4_000)), 'mcp-param-region', 'the control')
  t.notMatch(await allowedWith(','.repeat(8_000)), 'mcp-param-region')
  const acceptedWith = async (before: string): Promise<number> => {
    const headers = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}`, accept: `${before}application/json` }
    return (await send(url, { headers, body: initializeBody() })).status
  }
  t.equal(await acceptedWith(','.repeat(4_000)), 200, 'the control')
  t.equal(await acceptedWith(','.repeat(8_000)), 406)
})

t.test('OPTIONS makes no page of a path that is none', async (t) => {
  const { publicUrl } = await acmeGateway(t, { origins: [page] })
  for (const path of ['/', '/t/acme', '/t/acme/other', '/health/live', '/*', '/nowhere']) {
    for (const headers of [{}, { origin: publicUrl, 'access-control-request-method': 'POST' }]) {
      const { status, json } = await send(publicUrl + path, { method: 'OPTIONS', headers })
      t.match([status, json.error.data.reason], [404, 'not_found'], path)
    }
  }
})

t.test('an allowed page can read every reply, refusals included', async (t) => {
  const { publicUrl } = await acmeGateway(t, { origins: [page] })
  const authorization = `Bearer ${keyOf.ada}`
  const body = initializeBody()
  const replies: Array<[number, string, Parameters<typeof send>[1]]> = [
    [200, '/t/acme/mcp', { headers: { ...jsonHeaders, authorization }, body }],
    [400, '/t/acme/mcp', { headers: { ...jsonHeaders, authorization }, body: '{' }],
    [401, '/t/acme/mcp', { headers: jsonHeaders, body }],
    [403, '/t/acme/mcp', { headers: { ...jsonHeaders, authorization, host: 'other.example' }, body }],
    [404, '/t/acme/nothing/mcp', { headers: { ...jsonHeaders, authorization }, body }],
    [405, '/t/acme/mcp', { method: 'PUT' }],
    [415, '/t/acme/mcp', { headers: { ...jsonHeaders, authorization, 'content-type': 'text/plain' }, body }],
    [200, '/.well-known/oauth-protected-resource/t/acme/mcp', { method: 'GET' }]
  ]
  for (const [status, path, request] of replies) {
    const at = (headers: Record<string, string>) =>
      send(publicUrl + path, { ...request, headers: { ...request?.headers, ...headers } })
    const read = await at({ origin: page })
    t.equal(read.status, status, `${status} ${path}`)
    t.same(corsOf(read), readable, `${status} ${path}`)
    t.same(corsOf(await at({})), {}, 'without Origin')
    t.same(corsOf(await at({ origin: 'https://other.example' })), {}, 'of another origin')
  }
})

t.test('health is not for pages', async (t) => {
  const { publicUrl } = await acmeGateway(t, { origins: [page] })
  t.same(corsOf(await send(`${publicUrl}/health/live`, { method: 'GET', headers: { origin: publicUrl } })), {})
})
