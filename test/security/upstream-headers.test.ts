// Attack: an upstream tries to control the gateway's client by headers, statuses or broken streams of its responses.

import { createServer } from 'node:http'
import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { isMethod } from '../kit/upstream.ts'

const evil = {
  'Set-Cookie': 'canary=1',
  Location: 'https://evil.example/canary',
  'WWW-Authenticate': 'Bearer resource_metadata="https://evil.example/canary"',
  'Mcp-Session-Id': 'canary-session-of-upstream',
  'Access-Control-Allow-Origin': '*',
  'Strict-Transport-Security': 'max-age=1',
  'Content-Security-Policy': 'canary',
  Server: 'canary',
  'X-Powered-By': 'canary',
  'Content-Disposition': 'attachment; filename=canary',
  Refresh: '0;url=https://evil.example',
  'Retry-After': '99999',
  'Clear-Site-Data': '"*"',
  'X-Accel-Redirect': '/canary'
}
const expected = new Set([
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'x-content-type-options',
  'x-request-id'
])

t.test('no header of an upstream reaches the caller', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const plain = await client.request('tools/call', { name: 'echo' })
  acme.upstream.override(isMethod('tools/call'), (response, { message }) => {
    response
      .writeHead(200, { ...evil, 'Content-Type': 'application/json' })
      .end(
        JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { content: [{ type: 'text', text: 'fine' }] } })
      )
  })
  const answer = await client.request('tools/call', { name: 'echo' })
  t.equal(answer.json.result.content[0].text, 'fine')
  t.same(Object.keys(answer.headers).sort(), Object.keys(plain.headers).sort())
  t.ok(Object.keys(answer.headers).every((name) => expected.has(name)))
  t.notMatch(JSON.stringify(answer.headers), /canary|evil/)
})

t.test(
  "no status of an upstream becomes the gateway's own, which would make the caller drop its token or session",
  async (t) => {
    for (const status of [301, 302, 307, 400, 401, 403, 404, 405, 406, 413, 415, 421, 429, 500, 502, 503]) {
      const acme = await acmeGateway(t)
      const client = await legacyClient(acme.url(), keyOf.ada)
      acme.upstream.override(
        isMethod('tools/call'),
        (response) => {
          response.writeHead(status, { ...evil, 'Content-Type': 'text/html' }).end('<h1>canary</h1>')
        },
        99
      )
      const answer = await client.request('tools/call', { name: 'echo' }, { id: 'mine' })
      t.equal(answer.status, 200, `${status}`)
      t.match(answer.json, { id: 'mine', error: { code: -32603 } })
      t.notOk(answer.headers['www-authenticate'])
      t.notMatch(answer.text + JSON.stringify(answer.headers), /canary/)
      t.equal((await client.request('ping')).status, 200, 'and the session lives on')
      await acme.close()
    }
  }
)

t.test('an upstream sends the gateway nowhere else, with no kind of redirect', async (t) => {
  let visits = 0
  const elsewhere = await listen(
    t,
    createServer((_request, response) => {
      visits++
      response.writeHead(204).end()
    })
  )
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const call = async () => {
    const before = acme.upstream.seen.length
    const answer = await client.request('tools/call', { name: 'echo' })
    t.same(
      acme.upstream.seen.slice(before).filter(({ message }) => message?.['method'] === 'tools/call').length,
      1,
      'asked once'
    )
    return answer
  }
  for (const status of [300, 301, 302, 303, 307, 308])
    for (const location of [elsewhere, acme.upstream.url]) {
      acme.upstream.override(isMethod('tools/call'), (response) => {
        response.writeHead(status, { location }).end()
      })
      t.match((await call()).json.error, { message: /redirects/ }, `${status} to ${location}`)
    }
  acme.upstream.override(isMethod('tools/call'), (response, { message }) => {
    const result = { content: [{ type: 'text', text: 'fine' }] }
    response
      .writeHead(200, { refresh: `0; url=${elsewhere}`, location: elsewhere, 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
  })
  t.match((await call()).json.result, { content: [{ text: 'fine' }] })
  t.equal(visits, 0)
})

t.test('a stream that breaks off is an error for its call, never silence', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  acme.upstream.override(isMethod('tools/call'), (response, { message }) => {
    const params = message?.['params'] as { _meta: { progressToken: unknown } }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write(
      `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1 } })}\n\n`,
      () => response.socket?.destroy()
    )
  })
  const answer = await client.request('tools/call', { name: 'echo', _meta: { progressToken: 'p' } }, { id: 'mine' })
  t.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.match(answer.messages[0], { method: 'notifications/progress', params: { progressToken: 'p' } })
  t.match(answer.messages[1], { id: 'mine', error: { data: { outcome: 'unknown' } } })
  t.equal(answer.messages.length, 2)
})
