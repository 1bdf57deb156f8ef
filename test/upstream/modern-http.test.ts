// A server of 2026-07-28 over HTTP: what is on the wire, what is sent again and what never, and what its misbehaviour
// costs.

import { request as httpRequest, type ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import {
  callOf,
  handshake,
  heldClock,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  testConnector,
  until
} from '../kit/connector.ts'
import { startModern, type ModernHttpOptions, type ModernSeen, type ModernUpstream } from '../kit/modern-server.ts'
import { startUpstream } from '../kit/upstream.ts'
import type { HttpDefinition } from '../../src/config/snapshot.ts'
import type { ConnectionUse } from '../../src/upstream/rpc/transport.ts'
import type { Client } from '../../src/protocol/seams.ts'

const modern = (capabilities: object = {}, extras: object = {}): ReturnType<typeof recordingClient> =>
  ({ ...recordingClient(), era: 'modern', capabilities: { ...capabilities }, ...extras }) as ReturnType<
    typeof recordingClient
  >

const timeoutMs = 45_000

async function open(
  t: Test,
  options: ModernHttpOptions = {},
  overrides: Partial<HttpDefinition> = {},
  use: ConnectionUse = 'calls'
) {
  const peer = await startModern(options)
  const events = recordingEvents()
  const clock = heldClock(timeoutMs)
  const work = testConnector({ clock })
  const upstream = await work.pool.acquire(
    httpDefinition(peer.url, { timeoutMs, ...overrides }),
    'one',
    { ...handshake, era: 'modern' },
    events,
    use
  )
  t.teardown(async () => {
    await upstream.close()
    await peer.close()
  })
  /** The time of the calls that run by now is over. */
  const timeOut = (): void => clock.pass(timeoutMs)
  return { ...work, peer, events, upstream, timeOut }
}

const isTool =
  (name: string) =>
  ({ message }: ModernSeen): boolean =>
    message?.['method'] === 'tools/call' && (message['params'] as { name: unknown }).name === name
const isMethod =
  (method: string) =>
  ({ message }: ModernSeen): boolean =>
    message?.['method'] === method
const methods = (peer: ModernUpstream): unknown[] => peer.seen.map(({ message }) => message?.['method'])
const answer =
  (status: number, body: unknown, type = 'application/json') =>
  (response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': type }).end(typeof body === 'string' ? body : JSON.stringify(body))
  }
const refusal =
  (code: number, data?: unknown, status = 400) =>
  (response: ServerResponse, { message }: ModernSeen): void =>
    answer(status, { jsonrpc: '2.0', id: message?.['id'], error: { code, message: `error ${code}`, data } })(response)
/** Writes these messages as a stream, with the id of the request in place of ID, and does as `end` says. */
const stream =
  (messages: readonly object[], end: 'end' | 'break' | 'stay' = 'end') =>
  (response: ServerResponse, { message }: ModernSeen): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const each of messages)
      response.write(
        `data: ${JSON.stringify({ jsonrpc: '2.0', ...each }).replaceAll('"ID"', JSON.stringify(message?.['id']))}\n\n`
      )
    if (end === 'end') response.end()
    else if (end === 'break') setTimeout(() => response.destroy(), 20)
  }
const done = { id: 'ID', result: { resultType: 'complete', content: [] } }

t.test('each request is a POST with the envelope and its headers, and nothing of a session', async (t) => {
  const { upstream, peer } = await open(t, {}, { headers: { Authorization: 'Bearer secret', 'X-Own': 'a b' } })
  const requests: Array<[method: string, params: object, name: string | undefined]> = [
    ['tools/call', { name: 'echo', arguments: { a: 1 } }, 'echo'],
    ['prompts/get', { name: 'greet', arguments: { who: 'x' } }, 'greet'],
    ['resources/read', { uri: 'test://one' }, 'test://one'],
    ['resources/read', { uri: 'test://größe' }, `=?base64?${Buffer.from('test://größe').toString('base64')}?=`],
    ['resources/read', { uri: ' test://padded ' }, `=?base64?${Buffer.from(' test://padded ').toString('base64')}?=`],
    ['resources/read', { uri: '=?base64?x?=' }, `=?base64?${Buffer.from('=?base64?x?=').toString('base64')}?=`],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: '' } },
      undefined
    ],
    ['resources/list', {}, undefined]
  ]
  await upstream.request({ method: 'tools/list' }, recordingClient(), never)
  for (const [method, params, name] of requests) {
    peer.seen.length = 0
    await upstream.request({ method, params: { ...params } }, modern({ elicitation: { form: {} } }), never)
    t.equal(peer.seen.length, 1)
    const [{ headers, message, method: verb } = { headers: {}, message: {}, method: '' }] = peer.seen
    t.equal(verb, 'POST')
    t.match(headers, {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      authorization: 'Bearer secret',
      'x-own': 'a b',
      'user-agent': 'gatehouse-test/0.0.0'
    })
    t.equal(headers['mcp-name'], name)
    t.notOk(['mcp-session-id', 'last-event-id'].some((header) => header in headers))
    t.same(message, {
      jsonrpc: '2.0',
      id: message?.['id'],
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': handshake.clientInfo,
          'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } }
        }
      }
    })
  }
})

t.test('tasks are named by their id', async (t) => {
  const { upstream, peer } = await open(t)
  const client = modern({ extensions: { 'io.modelcontextprotocol/tasks': {} } })
  const { taskId, resultType } = await upstream.request(callOf('task'), client, never)
  t.equal(resultType, 'task')
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    await upstream.request({ method, params: { taskId, inputResponses: {} } }, client, never)
    t.equal(peer.seen.at(-1)?.headers['mcp-name'], taskId)
  }
})

t.test('what a caller says of itself goes along, and what its request brought does not survive', async (t) => {
  const { upstream, peer } = await open(t)
  const meta = {
    'acme/kept': 1,
    traceparent: '00-1',
    'io.modelcontextprotocol/clientCapabilities': { sampling: {} },
    'io.modelcontextprotocol/protocolVersion': '1999-01-01'
  }
  await upstream.request(callOf('echo', {}, meta), modern({ roots: {} }, { logLevel: 'warning' }), never)
  t.same((peer.seen.at(-1)?.message?.['params'] as { _meta: unknown } | undefined)?._meta, {
    'acme/kept': 1,
    traceparent: '00-1',
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': handshake.clientInfo,
    'io.modelcontextprotocol/clientCapabilities': { roots: {} },
    'io.modelcontextprotocol/logLevel': 'warning'
  })
})

t.test('a member of the params that no method names is no header', async (t) => {
  const { upstream, peer } = await open(t)
  await upstream.request({ method: 'completion/complete', params: { '': 'x', name: 'y', uri: 'z' } }, modern(), never)
  t.notOk('mcp-name' in (peer.seen.at(-1)?.headers ?? {}))
})

t.test('arguments that a schema names are headers: none for null, an empty one for an empty string', async (t) => {
  const { upstream, peer } = await open(t)
  await upstream.request({ method: 'tools/list' }, recordingClient(), never)
  const headersOf = async (args: object) => {
    await upstream.request(callOf('routed', args), modern(), never)
    return Object.fromEntries(
      Object.entries(peer.seen.at(-1)?.headers ?? {}).filter(([name]) => name.startsWith('mcp-param-'))
    )
  }
  t.same(await headersOf({ region: 'eu', count: 42, dry: false, deep: { zone: ' z ' }, plain: 'x' }), {
    'mcp-param-region': 'eu',
    'mcp-param-count': '42',
    'mcp-param-dry': 'false',
    'mcp-param-zone': `=?base64?${Buffer.from(' z ').toString('base64')}?=`
  })
  t.same(await headersOf({ region: '', count: null, deep: {} }), { 'mcp-param-region': '' })
  t.same(await headersOf({}), {})
})

t.test('headers that would be longer than servers take are refused before anything is sent', async (t) => {
  const { upstream, peer } = await open(t)
  await upstream.request({ method: 'tools/list' }, recordingClient(), never)
  const sent = () => peer.seen.length
  const before = sent()
  const fits = 'x'.repeat(8_000)
  await upstream.request(callOf('routed', { region: fits }), modern(), never)
  t.same([sent(), peer.seen.at(-1)?.headers['mcp-param-region']], [before + 1, fits], 'positive control')
  const tooLong = { code: 'invalid_params', message: /takes \d+ bytes, more than 8192; the request was not sent/ }
  for (const call of [
    callOf('routed', { region: 'x'.repeat(8_200) }),
    // Base64 is a third longer than what it stands for.
    callOf('routed', { region: 'é'.repeat(3_200) }),
    callOf('x'.repeat(8_200)),
    { method: 'resources/read', params: { uri: `test://${'x'.repeat(8_200)}` } }
  ])
    await t.rejects(upstream.request(call, modern(), never), tooLong)
  t.equal(sent(), before + 1)
})

t.test('a connection that has seen no tools reads them ahead of its first call, once', async (t) => {
  const { upstream, peer } = await open(t, { pageSize: 10 })
  await Promise.all(
    [callOf('routed', { region: 'eu' }), callOf('echo')].map((call) => upstream.request(call, modern(), never))
  )
  await upstream.request(callOf('echo'), modern(), never)
  t.same(methods(peer), [
    'server/discover',
    'tools/list',
    'tools/list',
    'tools/list',
    'tools/call',
    'tools/call',
    'tools/call'
  ])
  t.equal(peer.seen.find(isTool('routed'))?.headers['mcp-param-region'], 'eu')
})

t.test('connections of one definition share what they know of tools', async (t) => {
  const { upstream, peer, connector } = await open(t)
  await upstream.request({ method: 'tools/list' }, recordingClient(), never)
  const other = await connector.connect(httpDefinition(peer.url), { ...handshake, era: 'modern' }, recordingEvents())
  t.teardown(() => other.close())
  await other.request(callOf('routed', { region: 'eu' }), modern(), never)
  t.same(methods(peer), ['server/discover', 'tools/list', 'server/discover', 'tools/call'])
})

for (const [status, body] of [
  [404, '<h1>no</h1>'],
  [405, ''],
  [400, JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'no valid session' } })]
] as const) {
  t.test(
    `a server that answers ${status} like an older one is asked what it is, and given up if it is one`,
    async (t) => {
      const { upstream, peer, events } = await open(t)
      peer.override(isMethod('prompts/list'), answer(status, body))
      await t.rejects(upstream.request({ method: 'prompts/list' }, modern(), never))
      await until(() => methods(peer).length === 3, 'it is asked')
      t.same(methods(peer), ['server/discover', 'prompts/list', 'server/discover'])
      t.ok(await upstream.request({ method: 'prompts/list' }, modern(), never), 'it still is a modern one')
      peer.override(({ method }) => method === 'POST', answer(status, body), 10)
      await t.rejects(upstream.request({ method: 'prompts/list' }, modern(), never))
      await until(() => events.ended.length === 1, 'the connection ends')
      await t.rejects(upstream.request({ method: 'prompts/list' }, modern(), never), { code: 'upstream_unavailable' })
    }
  )
}

t.test("an ordinary error of the server is the caller's, and raises no doubt", async (t) => {
  const { upstream, peer } = await open(t)
  t.match(
    await upstream.request(callOf('rpcerror', { code: -32050 }), modern(), never).catch((error: unknown) => error),
    { name: 'RpcError', error: { code: -32050, data: { kept: true } } }
  )
  t.match(await upstream.request(callOf('needs'), modern(), never).catch((error: unknown) => error), {
    name: 'RpcError',
    error: { code: -32021, data: { requiredCapabilities: { sampling: {} } } }
  })
  t.match(await upstream.request({ method: 'no/such' }, modern(), never).catch((error: unknown) => error), {
    name: 'RpcError',
    error: { code: -32601 }
  })
  t.equal(methods(peer).filter((method) => method === 'server/discover').length, 1)
})

const failures: Array<{
  name: string
  reply: (response: ServerResponse, seen: ModernSeen) => void
  error: { code: string; message?: RegExp; data?: object }
}> = [
  {
    name: '401',
    reply: answer(401, ''),
    error: { code: 'upstream_unavailable', message: /refused our credentials/, data: { status: 401 } }
  },
  {
    name: '403',
    reply: refusal(-32020, undefined, 403),
    error: { code: 'upstream_unavailable', data: { status: 403 } }
  },
  { name: '429', reply: answer(429, ''), error: { code: 'upstream_unavailable', data: { status: 429 } } },
  {
    name: '500',
    reply: refusal(-32603, undefined, 500),
    error: { code: 'upstream_unavailable', data: { outcome: 'unknown' } }
  },
  { name: '503', reply: answer(503, ''), error: { code: 'upstream_unavailable' } },
  {
    name: 'a redirect',
    reply: (response) => {
      response.writeHead(307, { location: 'http://169.254.169.254/' }).end()
    },
    error: { code: 'upstream_protocol', message: /redirects/ }
  },
  { name: 'a page', reply: answer(200, '<html>', 'text/html'), error: { code: 'upstream_protocol' } },
  {
    name: 'nothing',
    reply: (response) => {
      response.writeHead(202).end()
    },
    error: { code: 'upstream_protocol' }
  },
  {
    name: 'an answer to another request',
    reply: (response) => answer(200, { jsonrpc: '2.0', id: 999, result: {} })(response),
    error: { code: 'upstream_protocol', data: { outcome: 'unknown' } }
  },
  {
    name: 'a broken socket',
    reply: (response) => {
      response.socket?.destroy()
    },
    error: { code: 'upstream_lost', data: { outcome: 'unknown' } }
  },
  {
    name: 'a stream that breaks',
    reply: stream([], 'break'),
    error: { code: 'upstream_lost', data: { outcome: 'unknown' } }
  },
  {
    name: 'a stream that ends without a result',
    reply: stream([]),
    error: { code: 'upstream_lost', data: { outcome: 'unknown' } }
  },
  {
    name: 'an event with an id before the break',
    reply: (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('id: 1\nretry: 1\ndata:\n\n')
      setTimeout(() => response.destroy(), 20)
    },
    error: { code: 'upstream_lost', data: { outcome: 'unknown' } }
  },
  {
    name: 'an answer above the limit',
    reply: (response, { message }) =>
      answer(200, { jsonrpc: '2.0', id: message?.['id'], result: { big: 'x'.repeat(70_000) } })(response),
    error: { code: 'upstream_protocol', message: /65536 bytes/ }
  },
  {
    name: 'an event above the limit',
    reply: stream([{ id: 'ID', result: { big: 'x'.repeat(700_000) } }]),
    error: { code: 'upstream_protocol', message: /65536 bytes/ }
  },
  {
    name: 'a compressed answer',
    reply: (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('x')
    },
    error: { code: 'upstream_protocol', message: /compressed/ }
  },
  {
    name: 'a result that is none',
    reply: (response, { message }) => answer(200, { jsonrpc: '2.0', id: message?.['id'], result: 7 })(response),
    error: { code: 'upstream_protocol' }
  },
  { name: 'silence', reply: () => {}, error: { code: 'upstream_timeout', data: { outcome: 'unknown' } } }
]
for (const { name, reply, error } of failures) {
  t.test(`${name} for a call is its caller's, and it is sent once`, async (t) => {
    const { upstream, peer, timeOut } = await open(t, {}, { maxMessageBytes: 65_536 })
    await upstream.request({ method: 'tools/list' }, recordingClient(), never)
    peer.override(isTool('echo'), reply)
    const failed = t.rejects(upstream.request(callOf('echo'), modern(), never), error)
    await until(() => peer.seen.some(isTool('echo')), 'it has reached the server')
    if (error.code === 'upstream_timeout') timeOut()
    await failed
    t.equal(peer.seen.filter(isTool('echo')).length, 1)
    t.notOk(peer.seen.some(({ method }) => method !== 'POST'))
    t.match(await upstream.request(callOf('echo'), modern(), never), { content: [{}] }, 'the next call works')
  })
}

t.test('a server that is gone was not reached', async (t) => {
  const { upstream, peer } = await open(t)
  await peer.close()
  await t.rejects(upstream.request({ method: 'prompts/list' }, modern(), never), {
    code: 'upstream_unavailable',
    data: { outcome: undefined }
  })
})

t.test('requests of the server and answers to others on a stream are ignored with a complaint', async (t) => {
  const { upstream, peer, logged } = await open(t)
  await upstream.request({ method: 'tools/list' }, recordingClient(), never)
  const client = modern({ elicitation: {} })
  peer.override(
    isTool('echo'),
    stream([
      { id: 5, method: 'elicitation/create', params: { message: 'who?' } },
      { id: 'p', method: 'ping' },
      { id: 'other', result: { content: ['foreign'] } },
      done
    ])
  )
  t.same(await upstream.request(callOf('echo'), client, never), { resultType: 'complete', content: [] })
  t.same(client.asked, [])
  t.equal(logged.filter(({ msg }) => /sent a request, of which its revision has none/.test(msg)).length, 2)
  t.equal(
    logged.filter(({ msg }) => /answer of the upstream that came on the stream of another request/.test(msg)).length,
    1
  )
  t.notOk(
    peer.seen.some(({ message }) => message?.['method'] === undefined),
    'nothing is answered'
  )
})

t.test('one request cannot answer another with what has a method that is none, nor report its progress', async (t) => {
  const { upstream, peer, logged } = await open(t)
  await upstream.request({ method: 'tools/list' }, recordingClient(), never)
  const client = modern()
  const slow = upstream.request(callOf('slow', {}, { progressToken: 'p' }), client, never)
  await until(() => client.notified.length === 1, 'it runs')
  const [victim] = peer.server.waiting.keys()
  peer.override(
    isTool('echo'),
    stream([
      { id: victim, method: 7, result: { content: ['forged'] } },
      { id: victim, method: null, error: { code: 1, message: 'forged' } },
      { method: 'notifications/progress', params: { progressToken: victim, progress: 99 } },
      { method: 'notifications/progress', params: { progressToken: 'ID', progress: 1 } },
      done
    ])
  )
  const own = modern()
  await upstream.request(callOf('echo', {}, { progressToken: 'own' }), own, never)
  t.match(own.notified, [{ params: { progressToken: 'own', progress: 1 } }], 'its own is passed on')
  peer.server.release()
  t.match(await slow, { content: [{ text: 'slow is done' }] })
  t.equal(client.notified.length, 1)
  t.equal(logged.filter(({ msg }) => /came (on the stream of|to) another request/.test(msg)).length, 3)
})

t.test('one request cannot answer another', async (t) => {
  const { upstream, peer } = await open(t)
  await upstream.request({ method: 'tools/list' }, recordingClient(), never)
  const slow = upstream.request(callOf('slow'), modern(), never)
  await until(() => peer.server.waiting.size === 1, 'it waits')
  const [victim] = peer.server.waiting.keys()
  peer.override(isTool('echo'), stream([{ id: victim, result: { content: ['forged'] } }, done]))
  await upstream.request(callOf('echo'), modern(), never)
  peer.server.release()
  t.match(await slow, { content: [{ text: 'slow is done' }] })
})

t.test('a cancelled request is cancelled by closing its response, and in no other way', async (t) => {
  const { upstream, peer } = await open(t)
  const stop = new AbortController()
  const call = upstream.request(callOf('slow', {}, { progressToken: 'p' }), modern(), stop.signal)
  await until(() => peer.server.waiting.size === 1, 'it runs')
  const before = peer.seen.length
  stop.abort()
  await t.rejects(call, { code: 'cancelled' })
  await until(() => peer.server.cancelled.length === 1, 'the server hears of it')
  t.equal(peer.seen.length, before)
})

t.test('closing the connection cancels what is in flight', async (t) => {
  const { upstream, peer } = await open(t)
  const call = upstream.request(callOf('slow'), modern(), never)
  call.catch(() => {})
  await until(() => peer.server.waiting.size === 1, 'it runs')
  await upstream.close()
  await t.rejects(call, { code: 'cancelled' })
  await until(() => peer.server.cancelled.length === 1, 'the server hears of it')
  t.notOk(
    peer.seen.some(({ method }) => method !== 'POST'),
    'nothing is said for a good-bye'
  )
})

t.test('a server that leaves the stream of an answer open is not waited for', async (t) => {
  const { upstream, peer } = await open(t)
  let closed = false
  peer.override(isMethod('prompts/list'), (response, seen) => {
    response.once('close', () => {
      closed = true
    })
    stream([{ id: 'ID', result: { prompts: [] } }], 'stay')(response, seen)
  })
  t.same(await upstream.request({ method: 'prompts/list' }, modern(), never), { prompts: [] })
  await until(() => closed, 'its stream is closed')
})

t.test('the pool gives one modern connection to all callers of its scope', async (t) => {
  const peer = await startModern()
  const { pool } = testConnector()
  t.teardown(async () => {
    await pool.close()
    await peer.close()
  })
  const [one, two] = await Promise.all(
    [1, 2].map(() =>
      pool.acquire(httpDefinition(peer.url), 'modern:1', { ...handshake, era: 'modern' }, recordingEvents())
    )
  )
  t.equal(one, two)
  t.match(one, { era: 'modern', revision: '2026-07-28', serverInfo: { name: 'modern' } })
  t.equal(methods(peer).length, 1)
})

t.test('what was before the revision was final is understood', async (t) => {
  const peer = await startModern({
    results: {
      'server/discover': {
        supportedVersions: ['2026-07-28'],
        capabilities: {},
        serverInfo: { name: 'early', version: '0' },
        instructions: 'Be kind.'
      }
    }
  })
  t.teardown(peer.close)
  const upstream = await testConnector().connector.connect(
    httpDefinition(peer.url, { era: 'modern' }),
    handshake,
    recordingEvents()
  )
  t.teardown(() => upstream.close())
  t.match(upstream, { serverInfo: { name: 'early' }, instructions: 'Be kind.', capabilities: {} })
})

t.test('a server that is replaced by an older one under its URL is served by the next connection', async (t) => {
  const { upstream, peer, connector, events } = await open(t)
  const old = await startUpstream()
  t.teardown(old.close)
  peer.override(
    () => true,
    (response, { method, message, headers }) => {
      const forwarded = Object.fromEntries(
        Object.entries(headers).filter(([name]) =>
          ['accept', 'content-type', 'mcp-session-id', 'mcp-protocol-version'].includes(name)
        )
      ) as Record<string, string>
      const request = httpRequest(old.url, { method, headers: forwarded }, (reply) => {
        response.writeHead(reply.statusCode ?? 0, reply.headers)
        reply.pipe(response)
      })
      request.on('error', () => response.destroy())
      request.end(message === undefined ? undefined : JSON.stringify(message))
    },
    100
  )
  const client: Client = modern()
  await t.rejects(upstream.request({ method: 'tools/list' }, client, never))
  await until(() => events.ended.length === 1, 'it is noticed')
  const next = await connector.connect(httpDefinition(peer.url), { ...handshake, era: 'modern' }, recordingEvents())
  t.teardown(() => next.close())
  t.equal(next.era, 'legacy')
})
