// JSON or a stream, as the call needs (2025-11-25 basic/transports), byte by byte; cancellation and progress on the
// way.

import t from 'tap'
import { acmeGateway, credentials, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient, open, send } from '../../kit/client.ts'
import { readRawResponse } from '../../kit/raw-http.ts'
import { until } from '../../kit/until.ts'

t.test('an answer that nothing precedes is one JSON object', async (t) => {
  const acme = await acmeGateway(t)
  for (const kind of credentials) {
    const client = await legacyClient(acme.url(), await acme.bearer(kind))
    const answer = await client.request('tools/call', { name: 'echo', arguments: { a: 1 } })
    t.equal(answer.headers['content-type'], 'application/json')
    t.equal(answer.headers['content-length'], String(Buffer.byteLength(answer.text)))
    t.equal(answer.headers['cache-control'], 'no-store')
    t.equal(answer.headers['x-content-type-options'], 'nosniff')
    t.notOk(answer.headers['mcp-session-id'], 'the session id is issued once')
    t.same(answer.json.result.structuredContent.arguments, { a: 1 })
  }
})

t.test('with progress, the answer closes a stream', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const call = {
    jsonrpc: '2.0',
    id: 'p',
    method: 'tools/call',
    params: { name: 'progress', arguments: { steps: 3 }, _meta: { progressToken: 12345678901234567890n.toString() } }
  }
  const body = JSON.stringify(call)
  const answer = await acme.exchange(acme.post(body, `Mcp-Session-Id: ${client.sessionId}\r\n`))
  t.equal(answer.status, 200)
  t.equal(answer.header('content-type'), 'text/event-stream; charset=utf-8')
  t.match(answer.header('cache-control'), /no-store/)
  t.equal(answer.header('x-accel-buffering'), 'no')
  t.equal(answer.header('x-content-type-options'), 'nosniff')
  t.notOk(answer.header('content-encoding'))
  // Chunks of HTTP/1.1 around whole events.
  const events = answer.body
    .split('\r\n')
    .filter((line) => line.startsWith('event: '))
    .map((event) => event.split('\n'))
  t.equal(events.length, 4)
  for (const [event, id, data, ...rest] of events) {
    t.equal(event, 'event: message')
    t.match(id, /^id: \S+$/)
    t.match(data, /^data: \{.*\}$/)
    t.same(rest, ['', ''])
  }
  const messages = events.map(
    ([, , data = '']) =>
      JSON.parse(data.slice(6)) as { id?: unknown; params?: { progressToken: unknown; progress: number } }
  )
  t.same(
    messages.map(({ params }) => params?.progress),
    [1, 2, 3, undefined],
    'in order, the result last'
  )
  t.equal(messages[0]?.params?.progressToken, '12345678901234567890', 'under the token of the client')
  t.equal(messages[3]?.id, 'p')

  const jsonOnly = await client.request('tools/call', call.params, { headers: { accept: 'application/json' } })
  t.equal(jsonOnly.headers['content-type'], 'application/json', 'a client that takes no streams gets the result alone')
})

t.test(
  'a progress token is a short string or an integer that a double holds: it comes back with every message',
  async (t) => {
    const acme = await acmeGateway(t)
    const client = await legacyClient(acme.url(), keyOf.ada)
    const progress = (token: string) =>
      send(acme.url(), {
        headers: client.headers,
        body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","arguments":{"steps":1},"_meta":{"progressToken":${token}}}}`
      })
    for (const token of ['"x"', '0', '""', '9007199254740991', `"${'x'.repeat(1_000)}"`]) {
      t.ok((await progress(token)).text.includes(`"progressToken":${token}`), token.slice(0, 30))
    }
    for (const token of [`"${'x'.repeat(2_000)}"`, '1.5', '12345678901234567890', `[${'1,'.repeat(2_000)}1]`])
      t.equal((await progress(token)).json.error.code, -32602)
  }
)

t.test('an event is one line of data, whatever the text holds', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const hostile = 'a\nb\rc\r\nd\u2028e\u2029f\u0085g\0h\n\ndata: {"x":1}\n\nevent: endpoint\nid: 1\n:\ud800'
  const answer = await client.request(
    'tools/call',
    { name: 'echo', arguments: { hostile } },
    { headers: { accept: 'text/event-stream' } }
  )
  t.match(answer.text, /^id: \S+\nretry: 1000\ndata:\n\nevent: message\nid: \S+\ndata: [^\n]+\n\n$/)
  t.notMatch(answer.text, /\r|\0/)
  t.equal(answer.json.result.structuredContent.arguments.hostile, hostile)
})

t.test(
  'notifications/cancelled reaches the call of this session with this id, and the call ends in silence',
  async (t) => {
    const acme = await acmeGateway(t)
    const client = await legacyClient(acme.url(), keyOf.ada)
    const other = await legacyClient(acme.url(), keyOf.ada)
    // The scripted server knows its calls by their upstream id alone; these move the ids of the second session out of
    // the way.
    for (let n = 0; n < 8; n++) await other.request('tools/call', { name: 'echo' })
    const slow = (who: typeof client, id: string | number, headers = {}) =>
      who.request('tools/call', { name: 'slow' }, { id, headers })
    const calls = [
      slow(client, 1),
      slow(client, '1'),
      slow(other, 1),
      slow(client, 2, { accept: 'application/json' })
    ] as const
    await until('all four run', () => acme.upstream.server.calls('slow') === 4)

    await client.notify('notifications/cancelled', { requestId: 'no such' })
    await client.notify('notifications/cancelled', { requestId: 1, reason: 'changed my mind' })
    await client.notify('notifications/cancelled', { requestId: 2 })
    const cancelled = await calls[0]
    t.equal(cancelled.status, 200)
    t.equal(
      cancelled.headers['content-type'],
      'text/event-stream; charset=utf-8',
      'a request is answered by JSON or a stream; here by an empty one'
    )
    t.same(cancelled.messages, [])
    const withoutStreams = await calls[3]
    t.equal(withoutStreams.status, 200)
    t.match(
      withoutStreams.json,
      { id: 2, error: { code: -32603, data: { reason: 'cancelled' } } },
      'who takes no stream is answered all the same'
    )
    await until(
      'the upstream was told of both',
      () => acme.upstream.seen.filter(({ message }) => message?.['method'] === 'notifications/cancelled').length === 2
    )

    acme.upstream.server.release()
    t.equal((await calls[1]).json.id, '1', '"1" is another id than 1')
    t.equal(
      (await calls[2]).json.result.content[0].text,
      'slow is done',
      'and the same id of another session is another call'
    )
  }
)

t.test('a lost connection is no cancellation', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const abort = new AbortController()
  const lost = client.request('tools/call', { name: 'slow' }, { signal: abort.signal })
  await until('it runs', () => acme.upstream.server.calls('slow') === 1)
  abort.abort()
  await t.rejects(lost)
  const next = await client.request('tools/call', { name: 'release' })
  t.equal(next.status, 200)
  t.notOk(acme.upstream.seen.some(({ message }) => message?.['method'] === 'notifications/cancelled'))
})

t.test('a quiet call is kept alive by comments', async (t) => {
  const acme = await acmeGateway(t, { overrides: { keepAliveMs: 30 } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const response = await open(acme.url(), {
    method: 'POST',
    headers: client.headers,
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}'
  })
  let text = ''
  response.setEncoding('utf8')
  response.on('data', (part: string) => {
    text += part
  })
  await until('comments come', () => text.split(': keep-alive\n\n').length > 3)
  acme.upstream.server.release()
  await until('the answer comes', () => text.includes('"id":1'))
  t.match(
    text,
    /^id: \S+\nretry: 1000\ndata:\n\n(: keep-alive\n\n)+event: message\nid: \S+\ndata: \{"jsonrpc":"2\.0","id":1,/
  )
})

t.test('too many calls at once are told so, and the others go on', async (t) => {
  const acme = await acmeGateway(t, { limits: { callsPerSession: 2 } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const running = [client.request('tools/call', { name: 'slow' }), client.request('tools/call', { name: 'slow' })]
  await until('both run', () => acme.upstream.server.calls('slow') === 2)
  const third = await client.request('ping', undefined, { id: 'third' })
  t.match(third.json, { id: 'third', error: { data: { reason: 'too_many' } } })
  acme.upstream.server.release()
  for (const answer of await Promise.all(running)) t.ok(answer.json.result)
  t.same((await client.request('ping')).json.result, {})
})

t.test('requests that follow each other on one connection are answered in their order', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const line = `Mcp-Session-Id: ${sessionId}\r\n`
  const ping = (id: number) =>
    acme.post(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`, line).replace('Connection: close\r\n', '')
  const answer = await acme.exchange(
    Array.from({ length: 50 }, (_, id) => ping(id)).join('') +
      acme.post('{"jsonrpc":"2.0","id":50,"method":"ping"}', line)
  )
  const ids = [...answer.text.matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id))
  t.same(
    ids,
    Array.from({ length: 51 }, (_, id) => id)
  )
  t.equal(readRawResponse(answer.text).status, 200)
  t.equal((await send(`${acme.publicUrl}/health/live`, { method: 'GET' })).status, 200)
})
