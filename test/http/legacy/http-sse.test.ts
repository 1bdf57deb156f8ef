// HTTP+SSE as a client sees it (2024-11-05 basic/transports "HTTP with SSE").

import t from 'tap'
import { moveClock } from '../../kit/moving-clock.ts'
import { acmeGateway, initializeBody, keyOf } from '../../kit/acme-gateway.ts'
import { open, send } from '../../kit/client.ts'
import { httpSseClient, openSse, sseUrl } from '../../kit/http-sse-client.ts'
import { until } from '../../kit/until.ts'

const authorization = `Bearer ${keyOf.ada}`

t.test('the stream begins with where to post, and every message of the session rides on it', async (t) => {
  const acme = await acmeGateway(t)
  const client = await openSse(sseUrl(acme.url()), keyOf.ada)
  t.equal(client.response.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.match(client.response.headers['cache-control'], /no-store/)
  t.equal(client.response.headers['x-accel-buffering'], 'no')
  t.equal(client.response.headers['x-content-type-options'], 'nosniff')
  t.notOk(client.response.headers['mcp-session-id'], 'the id of the record is told to nobody')
  t.match(client.text(), /^event: endpoint\ndata: \/t\/acme\/messages\?sessionId=[0-9a-f]{8}-[\w-]{43}\n\n$/)

  const accepted = await send(client.messagesUrl, {
    headers: client.headers,
    body: initializeBody('2024-11-05', 'first')
  })
  t.equal(accepted.status, 202)
  t.equal(accepted.text, '')
  t.equal(accepted.headers['mcp-session-id'], undefined)
  const answer = await client.next('the answer', ({ id }) => id === 'first')
  t.match(answer.result, {
    protocolVersion: '2024-11-05',
    serverInfo: { name: 'gatehouse' },
    capabilities: { tools: {} }
  })
  t.match(client.text(), /\n\nevent: message\ndata: \{.*\}\n\n$/, 'no ids: this stream cannot be resumed')
  t.equal((await client.notify('notifications/initialized')).status, 202)
  t.match((await client.request('tools/list')).result.tools, [{ name: 'echo' }])
  t.match((await client.request('tools/call', { name: 'echo', arguments: { a: 1 } })).result, {
    content: [{ type: 'text', text: '{"a":1}' }]
  })
  t.match(await client.request('nonsense'), { error: { code: -32601 } })
  client.close()
})

t.test('each revision can be agreed on; an unknown one becomes the latest', async (t) => {
  const acme = await acmeGateway(t)
  for (const [asked, agreed] of [
    ['2024-11-05', '2024-11-05'],
    ['2025-03-26', '2025-03-26'],
    ['2025-06-18', '2025-06-18'],
    ['2025-11-25', '2025-11-25'],
    ['1999-01-01', '2025-11-25']
  ]) {
    const client = await openSse(sseUrl(acme.url()), keyOf.ada)
    t.equal(
      (
        await client.request('initialize', {
          protocolVersion: asked,
          capabilities: {},
          clientInfo: { name: 'raw', version: '1' }
        })
      ).result.protocolVersion,
      agreed
    )
    client.close()
  }
})

t.test('a named endpoint has URLs of its own', async (t) => {
  const acme = await acmeGateway(t)
  const client = await httpSseClient(acme.url('files'), keyOf.ada)
  t.match(client.messagesUrl, /\/t\/acme\/files\/messages\?sessionId=/)
  t.match((await client.request('tools/list')).result.tools, [{ name: 'up__echo' }])
  client.close()
})

t.test(
  'before initialize a ping is answered and nothing else; initialize comes once, and again where it failed',
  async (t) => {
    const acme = await acmeGateway(t)
    const client = await openSse(sseUrl(acme.url()), keyOf.ada)
    t.same((await client.request('ping')).result, {})
    for (const body of [
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 1, result: {} },
      [{ jsonrpc: '2.0', id: 1, method: 'ping' }]
    ]) {
      const answer = await client.post(body)
      t.equal(answer.status, 400, JSON.stringify(body))
      t.equal(answer.json.error.data.reason, 'invalid_request')
    }
    t.match(await client.request('initialize', { capabilities: {} }, 'bad'), { error: { code: -32602 } })
    const racing = await Promise.all(
      [1, 2, 3].map((id) =>
        send(client.messagesUrl, { headers: client.headers, body: initializeBody('2024-11-05', id) })
      )
    )
    t.same(
      racing.map(({ status }) => status).sort((a, b) => a - b),
      [202, 400, 400]
    )
    await client.next('the one answer', ({ result }) => result?.protocolVersion === '2024-11-05')
    t.equal((await send(client.messagesUrl, { headers: client.headers, body: initializeBody() })).status, 400)
    t.match((await client.request('tools/list')).result.tools, [{ name: 'echo' }])
    client.close()
  }
)

t.test(
  'a client of 2026-07-28 that asks for discovery first is told on the stream, and initializes then',
  async (t) => {
    const acme = await acmeGateway(t)
    const client = await openSse(sseUrl(acme.url()), keyOf.ada)
    t.match(await client.request('server/discover', { _meta: {} }), { error: { code: -32601 } })
    t.match(
      await client.request('initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'x', version: '1' }
      }),
      { result: { protocolVersion: '2025-11-25' } }
    )
    t.match((await client.request('tools/list')).result.tools, [{ name: 'echo' }])
    client.close()
  }
)

t.test('batches are for 2025-03-26, taken whole or not at all', async (t) => {
  const acme = await acmeGateway(t)
  const client = await httpSseClient(acme.url(), keyOf.ada, '2025-03-26')
  const ping = (id: number): unknown => ({ jsonrpc: '2.0', id, method: 'ping' })
  t.equal(
    (await client.post([ping(101), { jsonrpc: '2.0', method: 'notifications/roots/list_changed' }, ping(102)])).status,
    202
  )
  await Promise.all(
    [101, 102].map((id) =>
      client.next(`the answer to ${id}`, (message) => message.id === id && message.result !== undefined)
    )
  )
  for (const bad of [
    [],
    [ping(103), { jsonrpc: '2.0' }],
    [ping(104), JSON.parse(initializeBody())],
    [[ping(105)]],
    Array.from({ length: 101 }, () => ping(106))
  ])
    t.equal((await client.post(bad)).status, 400)
  await client.request('ping')
  t.notOk(
    client.messages.some(({ id }) => id > 102),
    'nothing of a refused one was done'
  )
  client.close()
  for (const revision of ['2024-11-05', '2025-06-18', '2025-11-25']) {
    const other = await httpSseClient(acme.url(), keyOf.ada, revision)
    t.equal((await other.post([ping(1)])).status, 400, revision)
    other.close()
  }
})

t.test('what is wrong with a POST is said by its status', async (t) => {
  const acme = await acmeGateway(t)
  const client = await httpSseClient(acme.url(), keyOf.ada)
  const bare = client.messagesUrl.split('?')[0] ?? ''
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  const status = async (url: string, headers: Record<string, unknown>, body: string): Promise<unknown[]> => {
    const answer = await send(url, { headers: { ...client.headers, ...headers } as Record<string, string>, body })
    return [answer.status, answer.json?.error?.data?.reason]
  }
  t.same(await status(bare, {}, ping), [400, 'invalid_request'])
  t.same(await status(`${client.messagesUrl}&sessionId=x`, {}, ping), [400, 'invalid_request'])
  t.same(await status(`${bare}?sessionId=${'x'.repeat(43)}`, {}, ping), [404, 'session_unknown'])
  t.same(await status(`${bare}?sessionId=`, {}, ping), [404, 'session_unknown'])
  t.same(await status(client.messagesUrl, { 'content-type': 'text/plain' }, ping), [415, 'unsupported_media_type'])
  t.same(await status(client.messagesUrl, { 'mcp-protocol-version': '1999-01-01' }, ping), [400, 'unsupported_version'])
  t.same(await status(client.messagesUrl, {}, '{'), [400, 'parse_error'])
  t.same(await status(client.messagesUrl, {}, '{"jsonrpc":"1.0","id":1,"method":"ping"}'), [400, 'invalid_request'])
  t.same(await status(client.messagesUrl, { authorization: 'Bearer nothing' }, ping), [401, 'unauthenticated'])
  t.same(await status(client.messagesUrl, { origin: 'https://evil.example' }, ping), [403, 'forbidden_origin'])
  t.same(await status(client.messagesUrl, { host: 'evil.example' }, ping), [403, 'forbidden_host'])
  t.same(
    await status(client.messagesUrl, { 'mcp-protocol-version': '2024-11-05' }, ping),
    [202, undefined],
    'while this one is right'
  )
  client.close()
})

t.test('the wrong method or format, and the preflight of a page', async (t) => {
  const acme = await acmeGateway(t, { origins: ['https://page.example'] })
  const sse = sseUrl(acme.url())
  const messages = acme.url().replace(/mcp$/, 'messages')
  for (const [url, methods, allow] of [
    [sse, ['POST', 'DELETE', 'PUT', 'PATCH', 'HEAD'], 'GET, OPTIONS'],
    [messages, ['GET', 'DELETE', 'PUT', 'PATCH', 'HEAD'], 'POST, OPTIONS']
  ] as const) {
    for (const method of methods) {
      const answer = await send(url, { method, headers: { authorization } })
      t.equal(answer.status, 405, `${method} ${url}`)
      t.equal(answer.headers.allow, allow)
    }
    const preflight = await send(url, { method: 'OPTIONS', headers: { origin: 'https://page.example' } })
    t.equal(preflight.status, 204)
    t.equal(preflight.headers['access-control-allow-origin'], 'https://page.example')
    t.equal((await send(url, { method: 'OPTIONS', headers: { origin: 'https://other.example' } })).status, 403)
  }
  t.equal((await send(sse, { method: 'GET', headers: { authorization, accept: 'application/json' } })).status, 406)
  t.equal((await send(sse, { method: 'GET', headers: { authorization, origin: 'https://other.example' } })).status, 403)
  t.equal((await send(sse, { method: 'GET', headers: { authorization, host: 'other.example' } })).status, 403)
  t.equal((await send(sse.replace('acme', 'nobody'), { method: 'GET', headers: { authorization } })).status, 404)
  t.equal(
    (await send(sse.replace('sse', '%73se'), { method: 'GET', headers: { authorization } })).status,
    404,
    'one spelling only'
  )
  const page = await openSse(sse, keyOf.ada, { origin: 'https://page.example' })
  t.equal(page.response.headers['access-control-allow-origin'], 'https://page.example')
  t.equal(
    (await page.post({ jsonrpc: '2.0', id: 1, method: 'ping' })).headers['access-control-allow-origin'],
    'https://page.example'
  )
  page.close()
})

t.test('a stream counts for the cap of its caller from its first byte, and no longer than it lasts', async (t) => {
  const acme = await acmeGateway(t, { limits: { sessionsPerPrincipal: 2 } })
  const url = sseUrl(acme.url())
  const [first, second] = [await openSse(url, keyOf.ada), await openSse(url, keyOf.ada)]
  const third = await send(url, { method: 'GET', headers: { authorization } })
  t.equal(third.status, 429)
  t.match(third.headers['retry-after'], /^[1-9]\d*$/)
  const other = await openSse(url, keyOf.bob)
  first.close()
  const next = await until('one that ended made room', () => openSse(url, keyOf.ada).catch(() => undefined))
  for (const client of [second, other, next]) client.close()
})

t.test('it is kept alive by comments, and so is its session', async (t) => {
  t.teardown(() => moveClock(0))
  const acme = await acmeGateway(t, { limits: { sessionIdleMs: 60_000 }, overrides: { keepAliveMs: 40 } })
  const client = await httpSseClient(acme.url(), keyOf.ada)
  await client.request('tools/call', { name: 'echo' })
  const comments = (): number => client.text().split(': keep-alive\n\n').length - 1
  for (const later of [30_000, 60_000, 90_000, 120_000]) {
    moveClock(later)
    const before = comments()
    await until('more comments came', () => comments() >= before + 3)
  }
  t.match((await client.request('tools/call', { name: 'echo' })).result.content, [{ type: 'text' }])
  t.equal(acme.upstream.sessions.size, 2, 'on the same connection as before, beside that of the listing')
  client.close()
})

t.test('a stream that its client leaves, even before it was open, is forgotten with its session', async (t) => {
  const acme = await acmeGateway(t, { limits: { sessionsPerPrincipal: 20 } })
  const url = sseUrl(acme.url())
  for (let n = 0; n < 60; n++) {
    const abort = new AbortController()
    const opening = open(url, { headers: { authorization, accept: 'text/event-stream' }, signal: abort.signal })
    setTimeout(() => abort.abort(), n % 10)
    await opening.then(
      (response) => response.on('error', () => {}),
      () => {}
    )
    await until(
      'there is room again',
      async () =>
        (await openSse(url, keyOf.ada).then(
          (client) => client.close(),
          () => false
        )) !== false
    )
  }
  const all = await until('all twenty are free again', async () => {
    const got = await Promise.all(Array.from({ length: 20 }, () => openSse(url, keyOf.ada).catch(() => undefined)))
    const open = got.filter((client) => client !== undefined)
    if (open.length === 20) return open
    for (const client of open) client.close()
    return undefined
  })
  for (const client of all) client.close()
})
