// What a request of 2026-07-28 is answered with: one JSON object, or a stream where something comes first.

import { type Teardown, until } from '../../kit/until.ts'
import t from 'tap'
import { open, send } from '../../kit/client.ts'
import { gateway, key, type TestGatewayOptions } from '../../kit/gateway.ts'
import { modernMessage, modernRequest, type ModernOptions } from '../../kit/modern-client.ts'
import type { Json } from '../../kit/mcp-server.ts'
import { startModern } from '../../kit/modern-server.ts'

async function acme(t: Teardown, options: Partial<TestGatewayOptions> = {}) {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    ...options
  })
  const call = (name: string, args: Json = {}, options: ModernOptions = {}) =>
    modernRequest(made.url(), 'tools/call', { name, arguments: args }, { token: key, ...options })
  return { made, upstream, call, url: made.url() }
}

const serverInfo = { 'io.modelcontextprotocol/serverInfo': { name: 'gatehouse', version: '0.0.0-test' } }
const wantsLogs = { meta: { 'io.modelcontextprotocol/logLevel': 'info' } }

t.test('a result alone is one JSON object, with who we are', async (t) => {
  const { call, url } = await acme(t)
  const answer = await call('echo', { a: 1 }, { id: 'x-1' })
  t.equal(answer.status, 200)
  t.match(answer.headers, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  t.match(answer.json, {
    jsonrpc: '2.0',
    id: 'x-1',
    result: {
      resultType: 'complete',
      structuredContent: { arguments: { a: 1 } },
      _meta: { ...serverInfo, 'test/kept': true }
    }
  })
  for (const method of [
    'server/discover',
    'tools/list',
    'prompts/list',
    'resources/list',
    'resources/templates/list'
  ]) {
    t.match(
      await modernRequest(url, method, {}, { token: key }),
      { status: 200, json: { result: { resultType: 'complete', _meta: serverInfo } } },
      method
    )
  }
})

t.test('progress and log messages come first on a stream that nothing can be resumed from', async (t) => {
  const { call } = await acme(t)
  const answer = await call('progress', { steps: 2 }, { id: 5, meta: { progressToken: 'p' } })
  t.equal(answer.status, 200)
  t.match(answer.headers, {
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
    'cache-control': 'no-store, no-transform'
  })
  t.notMatch(answer.text, /^id:|^retry:/m)
  t.match(answer.messages, [
    { method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } },
    { method: 'notifications/progress', params: { progressToken: 'p', progress: 2 } },
    { id: 5, result: { resultType: 'complete', _meta: serverInfo } }
  ])
  t.equal(answer.messages.length, 3)
})

t.test('log messages come to those who ask for them, from their level on', async (t) => {
  const { call } = await acme(t)
  t.match((await call('log', { level: 'warning' }, wantsLogs)).messages, [
    { method: 'notifications/message', params: { level: 'warning' } },
    { result: {} }
  ])
  t.equal((await call('log', { level: 'debug', always: true }, wantsLogs)).messages.length, 1, 'below the level')
  const unasked = await call('log', { always: true })
  t.equal(unasked.messages.length, 1, 'not asked for')
  t.equal(unasked.headers['content-type'], 'application/json')
})

t.test(
  'Accept decides what may come: JSON only leaves notifications out, a stream only has the result as its event',
  async (t) => {
    const { call } = await acme(t)
    const json = await call('log', {}, { ...wantsLogs, headers: { accept: 'application/json' } })
    t.match(json, { status: 200, headers: { 'content-type': 'application/json' }, json: { result: {} } })
    const stream = await call('echo', {}, { headers: { accept: 'text/event-stream' } })
    t.match(stream, { status: 200, headers: { 'content-type': /event-stream/ }, messages: [{ result: {} }] })
    for (const accept of ['*/*', undefined, ''])
      t.equal((await call('echo', {}, { headers: { accept } })).status, 200, String(accept))
    t.equal((await call('echo', {}, { headers: { accept: 'text/html' } })).status, 406)
  }
)

t.test('errors of the upstream are ordinary answers, but for a capability that the client lacks', async (t) => {
  const { call } = await acme(t)
  t.match(await call('rpcerror', { code: 7, message: 'mine' }), {
    status: 200,
    json: { id: 1, error: { code: 7, message: 'mine' } }
  })
  t.match(await call('needs'), {
    status: 400,
    json: { id: 1, error: { code: -32021, data: { requiredCapabilities: { sampling: {} } } } }
  })
  t.match(await call('needs', {}, { capabilities: { sampling: {} } }), { status: 200, json: { result: {} } })
  t.match(await call('nobody'), { status: 200, json: { id: 1, error: { code: -32602 } } })
})

t.test('a session id and an event id mean nothing, and none is given', async (t) => {
  const { call } = await acme(t)
  const answer = await call('echo', {}, { headers: { 'mcp-session-id': 'A'.repeat(43), 'last-event-id': 'x.1.y' } })
  t.equal(answer.status, 200)
  t.equal(answer.headers['mcp-session-id'], undefined)
  t.equal((await call('echo', {}, { headers: { 'mcp-session-id': 'not even one of ours' } })).status, 200)
})

t.test('a client that closes the connection cancels the call, at once and upstream too', async (t) => {
  const { call, upstream } = await acme(t, { overrides: { keepAliveMs: 600_000 } })
  const stop = new AbortController()
  const pending = call('slow', {}, { signal: stop.signal })
  await until('the call is there', () => upstream.server.waiting.size === 1)
  stop.abort()
  await t.rejects(pending)
  await until('it is cancelled', () => upstream.server.cancelled.length === 1)
})

t.test('a quiet call begins its stream with a comment, and keeps it with more', async (t) => {
  const { url, upstream } = await acme(t, { overrides: { keepAliveMs: 60 } })
  const response = await open(url, {
    method: 'POST',
    ...modernMessage('tools/call', { name: 'slow', arguments: {} }, { token: key })
  })
  t.match(response.headers['content-type'], /event-stream/)
  let text = ''
  response.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  await until('some comments', () => text.split(': keep-alive').length > 3)
  await until('the call is there', () => upstream.server.waiting.size === 1)
  upstream.server.release()
  await until('the result', () => text.includes('slow is done'))
  t.match(text, /^: keep-alive\n\n/)
})

t.test('too many calls of one caller at once are refused, and counted no longer when they are over', async (t) => {
  const { call, upstream } = await acme(t, {
    limits: { callsPerSession: 2 },
    auth: {
      keys: [
        { name: 'test', key },
        { name: 'other', key: 'gh_another_key_0123456789' }
      ]
    }
  })
  const running = [call('slow'), call('slow')]
  await until('both are there', () => upstream.server.waiting.size === 2)
  const refused = await call('echo')
  t.match(refused, {
    status: 429,
    headers: { 'retry-after': '1' },
    json: { id: 1, error: { code: 429, data: { reason: 'too_many' } } }
  })
  t.equal((await call('echo', {}, { token: 'gh_another_key_0123456789' })).status, 200, 'another caller is not touched')
  upstream.server.release()
  await Promise.all(running)
  t.equal((await call('echo')).status, 200)
})

t.test('who is no longer let in gets no result, and the call is cancelled', async (t) => {
  const { made, call, upstream } = await acme(t, {
    auth: {
      keys: [
        { name: 'test', key },
        { name: 'other', key: 'gh_another_key_0123456789' }
      ]
    }
  })
  const pending = call('slow', {}, { id: 9 })
  await until('the call is there', () => upstream.server.waiting.size === 1)
  made.reload({
    listen: { host: '127.0.0.1', port: 0 },
    store: 'memory:',
    tenants: {
      acme: {
        auth: { keys: [{ name: 'other', key: 'gh_another_key_0123456789' }] },
        upstreams: { up: { type: 'http', url: upstream.url } },
        endpoints: { default: { upstreams: ['up'], prefix: '' } }
      }
    }
  })
  t.match(await pending, {
    status: 200,
    json: { id: 9, error: { code: 401, data: { reason: 'unauthenticated', outcome: 'unknown' } } }
  })
  await until('it is cancelled', () => upstream.server.cancelled.length === 1)
})

t.test('a stopping gateway waits for its calls, and ends those that take longer', async (t) => {
  const patient = await acme(t)
  const served = patient.call('slow')
  await until('the call is there', () => patient.upstream.server.waiting.size === 1)
  const closed = patient.made.close()
  patient.upstream.server.release()
  t.match(await served, { status: 200, json: { result: {} } })
  await closed
  const hasty = await acme(t, { limits: { drainMs: 50 } })
  const cut = hasty.call('slow')
  await until('the call is there', () => hasty.upstream.server.waiting.size === 1)
  void hasty.made.close()
  t.match(await cut, {
    status: 200,
    json: { error: { code: 503, data: { reason: 'shutting_down', outcome: 'unknown' } } }
  })
})

t.test('a large answer after many messages comes whole to a client that reads', async (t) => {
  const { url, call } = await acme(t)
  t.equal((await call('big', { bytes: 3_000_000 })).json.result.content[0].text.length, 3_000_000)
  const { headers, body } = modernMessage(
    'tools/call',
    { name: 'progress', arguments: { steps: 2_000 } },
    { token: key, meta: { progressToken: 1 } }
  )
  const answer = await send(url, { headers, body })
  t.match(answer.json, { id: 1, result: {} })
  t.equal(answer.messages.length, 2_001)
})

t.test('capabilities of a request take 4 KiB at most, as in initialize', async (t) => {
  const { url } = await acme(t)
  const listed = (text: string) =>
    modernRequest(
      url,
      'tools/list',
      {},
      { token: key, meta: { 'io.modelcontextprotocol/clientCapabilities': { experimental: { x: { y: text } } } } }
    )
  t.equal((await listed('x'.repeat(4_000))).status, 200)
  for (const text of ['x'.repeat(4_100), '\u00e9'.repeat(2_100)]) {
    t.match(await listed(text), {
      status: 400,
      json: { error: { code: -32602, message: /clientCapabilities" takes more than 4096 bytes as JSON/ } }
    })
  }
})
