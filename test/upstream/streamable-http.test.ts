// Streamable HTTP: sessions and their renewal, broken streams, and servers that answer with something else than MCP.

import { gzipSync } from 'node:zlib'
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
import { isCall, isMethod, startUpstream, type HttpUpstreamOptions, type Seen } from '../kit/upstream.ts'
import type { ServerResponse } from 'node:http'
import type { HttpDefinition } from '../../src/config/snapshot.ts'

const timeoutMs = 45_000

async function open(t: Test, options: HttpUpstreamOptions = {}, overrides: Partial<HttpDefinition> = {}) {
  const peer = await startUpstream(options)
  t.teardown(peer.close)
  const events = recordingEvents()
  const clock = heldClock(timeoutMs)
  const shop = testConnector({ clock })
  const upstream = await shop.connector.connect(
    httpDefinition(`${peer.url}?token=hunter2`, { timeoutMs, ...overrides }),
    handshake,
    events
  )
  t.teardown(() => upstream.close())
  const call = (tool: string, args: object = {}, client = recordingClient()) =>
    upstream.request(callOf(tool, args), client, never)
  /** The time of the calls that run by now is over. */
  const timeOut = (): void => clock.pass(timeoutMs)
  return { peer, upstream, events, call, timeOut, ...shop }
}

const idOf = (seen: Seen): unknown => seen.message?.['id']
const resultFor = (seen: Seen, text: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id: idOf(seen), result: { content: [{ type: 'text', text }] } })
/**
 * What is sent on the GET stream of the session arrives: to the gateway, a stream that breaks before its head has
 * arrived was never open.
 */
async function heard({ peer, events }: Pick<Awaited<ReturnType<typeof open>>, 'peer' | 'events'>): Promise<void> {
  await until(peer.allListening, 'the session has its stream')
  const before = events.notifications.length
  peer.broadcast({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'test://heard' } })
  await until(() => events.notifications.length > before, 'what it says is heard')
  events.notifications.splice(before)
}
const initializes = (seen: Seen[]): number => seen.filter(isMethod('initialize')).length

t.test('a Content-Type that comes twice is read as its first', async (t) => {
  const { peer, call } = await open(t)
  peer.override(isCall('echo'), (response, seen) => {
    response.setHeader('Content-Type', ['application/json; charset=utf-8', 'application/json'])
    response.writeHead(200).end(resultFor(seen, 'read'))
  })
  t.match(await call('echo'), { content: [{ text: 'read' }] })
})

t.test('each request carries what the specification and the definition ask for', async (t) => {
  const { peer, call } = await open(
    t,
    {},
    { headers: { 'X-Api-Key': 'k-1', 'Content-Type': 'text/plain', 'MCP-Session-Id': 'forged' } }
  )
  await call('echo')
  await until(() => peer.streams() === 1, 'the standalone stream is open')
  const first = peer.seen.find(isMethod('initialize'))
  t.notOk(first?.headers['mcp-session-id'], 'initialize has no session')
  t.notOk(first?.headers['mcp-protocol-version'])
  const [sessionId] = peer.sessions
  for (const seen of [
    ...peer.seen.filter(isCall('echo')),
    ...peer.seen.filter(isMethod('notifications/initialized')),
    ...peer.seen.filter(({ method }) => method === 'GET')
  ]) {
    t.match(seen.headers, {
      'mcp-session-id': sessionId,
      'mcp-protocol-version': '2025-11-25',
      'x-api-key': 'k-1',
      'accept-encoding': 'identity'
    })
  }
  t.match(peer.seen.find(isCall('echo'))?.headers, {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'user-agent': 'gatehouse-test/0.0.0'
  })
  t.equal(peer.seen.find(({ method }) => method === 'GET')?.headers.accept, 'text/event-stream')
})

t.test('a server of a revision without the version header gets none', async (t) => {
  const { peer, call } = await open(t, { revision: '2025-03-26' })
  await call('echo')
  t.notOk(peer.seen.find(isCall('echo'))?.headers['mcp-protocol-version'])
})

t.test('closing ends the session at the server', async (t) => {
  const { peer, upstream } = await open(t)
  t.equal(peer.sessions.size, 1)
  await upstream.close()
  t.equal(peer.sessions.size, 0)
  t.equal(peer.seen.at(-1)?.method, 'DELETE')
})

t.test('a server without sessions and without a stream works', async (t) => {
  const { peer, upstream, call } = await open(t, { sessions: false, stream: false })
  t.match(await call('echo'), { content: [{}] })
  await upstream.close()
  t.equal(peer.seen.filter(({ method }) => method === 'GET').length, 1, '405 is not asked again')
  t.notOk(peer.seen.some(({ method }) => method === 'DELETE'))
})

t.test('a forgotten session is made anew once for all calls, and each is sent again exactly once', async (t) => {
  const { peer, upstream, events } = await open(t)
  await upstream.request({ method: 'logging/setLevel', params: { level: 'debug' } }, recordingClient(), never)
  peer.sessions.clear()
  const results = await Promise.all(
    Array.from({ length: 10 }, (_, n) => upstream.request(callOf('echo', { n }), recordingClient(), never))
  )
  t.same(
    results.map((result) => (result['structuredContent'] as { arguments: { n: number } }).arguments.n),
    Array.from({ length: 10 }, (_, n) => n)
  )
  t.equal(initializes(peer.seen), 2)
  t.equal(peer.server.calls('echo'), 10, 'none was executed twice')
  await until(
    () => peer.server.received.filter(({ method }) => method === 'logging/setLevel').length === 2,
    'the new session learns the log level'
  )
  t.same(
    [...new Set(events.changed)].sort(),
    ['prompts', 'resources', 'tools'],
    'the new session may offer something else'
  )
  t.same(events.ended, [])
})

t.test('a new session is subscribed to what the old one was, and what may have been missed is announced', async (t) => {
  const { peer, upstream, events, call } = await open(t)
  const ask = (method: string, uri: string) => upstream.request({ method, params: { uri } }, recordingClient(), never)
  const asked = (method: string) =>
    peer.server.received
      .filter((message) => message['method'] === method)
      .map(({ params }) => (params as { uri: string }).uri)
  for (const uri of ['test://one', 'test://two', 'test://three']) await ask('resources/subscribe', uri)
  peer.override(isMethod('resources/subscribe'), (response, seen) => {
    response
      .writeHead(200, json)
      .end(JSON.stringify({ jsonrpc: '2.0', id: idOf(seen), error: { code: -32002, message: 'no such resource' } }))
  })
  t.match(await ask('resources/subscribe', 'test://none').catch((error: unknown) => error), { error: { code: -32002 } })
  await ask('resources/unsubscribe', 'test://two')
  peer.sessions.clear()
  await call('echo')
  await until(() => asked('resources/subscribe').length === 5, 'the new session is subscribed')
  t.same(asked('resources/subscribe').slice(3), ['test://one', 'test://three'], 'not to what was given up or refused')
  await until(() => events.notifications.length === 2, 'what may have been missed is announced')
  t.same(
    events.notifications,
    ['test://one', 'test://three'].map((uri) => ({ method: 'notifications/resources/updated', params: { uri } }))
  )
  await heard({ peer, events })
  peer.cut()
  await until(() => events.notifications.length === 4, 'after a cut of the stream as well')
  t.equal(asked('resources/subscribe').length, 5, 'which is no new session')
})

t.test(
  'of many subscriptions, as many sessions may have on one connection, a new session gets all, a few at a time',
  async (t) => {
    const { peer, upstream, call } = await open(t)
    const uris = Array.from({ length: 1_050 }, (_, n) => `test://${n}`)
    for (let from = 0; from < uris.length; from += 50) {
      await Promise.all(
        uris
          .slice(from, from + 50)
          .map((uri) =>
            upstream.request(
              { method: 'resources/subscribe', params: { uri, _meta: { note: 'for this request only' } } },
              recordingClient(),
              never
            )
          )
      )
    }
    const before = peer.seen.length
    const held: Array<() => void> = []
    let most = 0
    peer.override(
      isMethod('resources/subscribe'),
      (response, seen) => {
        held.push(() =>
          response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id: idOf(seen), result: {} }))
        )
        most = Math.max(most, held.length)
      },
      Infinity
    )
    peer.sessions.clear()
    await call('echo')
    const again = () =>
      peer.seen
        .slice(before)
        .filter(isMethod('resources/subscribe'))
        .map(({ message }) => message?.['params'] as { uri: string; _meta: object })
    await until(() => held.length === 8, 'the first are there')
    await call('echo')
    t.equal(again().length, 8, 'the rest waits for them')
    await upstream.request(
      { method: 'resources/unsubscribe', params: { uri: 'test://1049' } },
      recordingClient(),
      never
    )
    await until(() => {
      for (const answer of held.splice(0)) answer()
      return again().length === 1_049
    }, 'the new session is subscribed to all but what was given up meanwhile')
    for (const answer of held.splice(0)) answer()
    t.same(
      again().map(({ uri }) => uri),
      uris.slice(0, -1)
    )
    t.notOk(again().some(({ _meta }) => 'note' in (_meta ?? {})))
    t.equal(most, 8)
  }
)

t.test('a session forgotten twice in a row fails the call and nothing is executed', async (t) => {
  const { peer, call } = await open(t)
  peer.override(
    isCall('echo'),
    (response) => {
      response.writeHead(404).end()
    },
    2
  )
  await t.rejects(call('echo'), { code: 'upstream_unavailable', message: /404/ })
  t.equal(peer.server.calls('echo'), 0)
  t.equal(initializes(peer.seen), 2)
  t.match(await call('echo'), { content: [{}] }, 'the next call works')
})

t.test('a session that cannot be made anew ends the connection', async (t) => {
  const { peer, upstream, call, events } = await open(t)
  peer.sessions.clear()
  peer.override(isMethod('initialize'), (response) => {
    response.writeHead(503).end()
  })
  await t.rejects(call('echo'), { code: 'upstream_unavailable', message: /503/ })
  t.equal(events.ended.length, 1)
  await t.rejects(call('echo'), { code: 'upstream_unavailable' })
  await upstream.close()
})

t.test('a server that says 400 for a forgotten session fails the call, and the next one works', async (t) => {
  const { peer, call } = await open(t, { unknownSession: 400 })
  peer.sessions.clear()
  t.match(await call('echo').catch((error: unknown) => error), { error: { code: -32000 } })
  await until(() => initializes(peer.seen) === 2, 'the session is made anew')
  await until(
    () =>
      call('echo').then(
        () => true,
        () => false
      ),
    'calls work again'
  )
  t.equal(peer.server.calls('echo'), 1)
})

t.test('a 404 without a session renews no session', async (t) => {
  const { peer, call } = await open(t, { sessions: false })
  peer.override(isCall('echo'), (response) => {
    response.writeHead(404).end('Not here')
  })
  await t.rejects(call('echo'), { code: 'upstream_protocol', message: /404.*check its url/ })
  t.equal(initializes(peer.seen), 1)
})

interface Odd {
  name: string
  answer: (response: ServerResponse, seen: Seen) => void
  error: { readonly code?: string; readonly error?: object; readonly message?: RegExp; readonly data?: object }
}
const json = { 'Content-Type': 'application/json' }
const sse = { 'Content-Type': 'text/event-stream' }
const odd: Odd[] = [
  {
    name: 'a redirect',
    answer: (response) => {
      response.writeHead(307, { Location: 'http://169.254.169.254/secret' }).end()
    },
    error: { code: 'upstream_protocol', message: /redirects \(HTTP 307\)/ }
  },
  {
    name: '401',
    answer: (response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
    },
    error: { code: 'upstream_unavailable', message: /refused our credentials \(HTTP 401\): check its headers/ }
  },
  {
    name: '401 of a server with an authorization server',
    answer: (response) => {
      const metadata = 'resource_metadata="https://a.example/.well-known/oauth-protected-resource"'
      response.writeHead(401, { 'WWW-Authenticate': `Bearer ${metadata}` }).end()
    },
    error: { code: 'upstream_unavailable', message: /With auth: \{ type: user \} .* each person connects an account/ }
  },
  {
    name: '403',
    answer: (response) => {
      response.writeHead(403).end()
    },
    error: { code: 'upstream_unavailable', message: /HTTP 403/ }
  },
  {
    name: '429',
    answer: (response) => {
      response.writeHead(429, { 'Retry-After': '1' }).end()
    },
    error: { code: 'upstream_unavailable' }
  },
  {
    name: '500',
    answer: (response) => {
      response.writeHead(500).end('<h1>Oops</h1>')
    },
    error: { code: 'upstream_unavailable', data: { outcome: 'unknown' } }
  },
  {
    name: '503',
    answer: (response) => {
      response.writeHead(503).end()
    },
    error: { code: 'upstream_unavailable' }
  },
  {
    name: '500 with an endless body',
    answer: (response) => {
      response.writeHead(500)
      response.write('x'.repeat(200_000))
    },
    error: { code: 'upstream_unavailable' }
  },
  {
    name: '400 with the error of this request',
    answer: (response, seen) => {
      response
        .writeHead(400, json)
        .end(JSON.stringify({ jsonrpc: '2.0', id: idOf(seen), error: { code: -32602, message: 'bad arguments' } }))
    },
    error: { error: { code: -32602, message: 'bad arguments' } }
  },
  {
    name: '400 with the error of another request',
    answer: (response) => {
      response
        .writeHead(400, json)
        .end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'what\nis this' } }))
    },
    error: { code: 'upstream_protocol', message: /what\\u\{a\}is this/ }
  },
  {
    name: 'a page for people',
    answer: (response) => {
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>')
    },
    error: { code: 'upstream_protocol', message: /Content-Type/ }
  },
  {
    name: 'an empty 200',
    answer: (response) => {
      response.writeHead(200, json).end()
    },
    error: { code: 'upstream_protocol' }
  },
  {
    name: '202 for a request',
    answer: (response) => {
      response.writeHead(202).end()
    },
    error: { code: 'upstream_protocol', message: /202/ }
  },
  {
    name: 'broken JSON',
    answer: (response) => {
      response.writeHead(200, json).end('{"jsonrpc":"2.0","id":')
    },
    error: { code: 'upstream_protocol', message: /not valid JSON/ }
  },
  {
    name: 'two documents',
    answer: (response, seen) => {
      response.writeHead(200, json).end(resultFor(seen, 'a') + resultFor(seen, 'b'))
    },
    error: { code: 'upstream_protocol' }
  },
  {
    name: 'invalid UTF-8',
    answer: (response, seen) => {
      response.writeHead(200, json).end(Buffer.concat([Buffer.from(resultFor(seen, 'a')), Buffer.from([0xff])]))
    },
    error: { code: 'upstream_protocol', message: /UTF-8/ }
  },
  {
    name: 'an abyss of brackets',
    answer: (response) => {
      response.writeHead(200, json).end('['.repeat(100_000))
    },
    error: { code: 'upstream_protocol', message: /nested/ }
  },
  {
    name: 'the answer to another request',
    answer: (response, seen) => {
      response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id: Number(idOf(seen)) + 1000, result: {} }))
    },
    error: { code: 'upstream_protocol' }
  },
  {
    name: 'the same id as a string',
    answer: (response, seen) => {
      response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id: String(idOf(seen)), result: {} }))
    },
    error: { code: 'upstream_protocol' }
  },
  {
    name: 'a result that is no object',
    answer: (response, seen) => {
      response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id: idOf(seen), result: null }))
    },
    error: { code: 'upstream_protocol' }
  },
  {
    name: 'gzip',
    answer: (response, seen) => {
      response.writeHead(200, { ...json, 'Content-Encoding': 'gzip' }).end(gzipSync(resultFor(seen, 'bomb')))
    },
    error: { code: 'upstream_protocol', message: /compressed/ }
  },
  {
    name: 'a huge body',
    answer: (response) => {
      response.writeHead(200, json)
      response.write(`"${'x'.repeat(300_000)}`)
    },
    error: { code: 'upstream_protocol', message: /larger than 200000/ }
  },
  {
    name: 'a huge event',
    answer: (response) => {
      response.writeHead(200, sse)
      response.write(`data: ${'x'.repeat(300_000)}`)
    },
    error: { code: 'upstream_protocol', message: /larger than 200000/ }
  },
  {
    name: 'an event that is no JSON',
    answer: (response) => {
      response.writeHead(200, sse)
      response.write('data: hello\n\n')
    },
    error: { code: 'upstream_protocol' }
  },
  {
    name: 'a stream that ends without the answer',
    answer: (response) => {
      response.writeHead(200, sse).end('data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n')
    },
    error: { code: 'upstream_lost', data: { outcome: 'unknown' } }
  },
  {
    name: 'a stream that is cut',
    answer: (response) => {
      response.writeHead(200, sse)
      response.write(': hello\n\n', () => {
        response.socket?.destroy()
      })
    },
    error: { code: 'upstream_lost', data: { outcome: 'unknown' } }
  },
  {
    name: 'a body that is cut',
    answer: (response) => {
      response.writeHead(200, { ...json, 'Content-Length': '500' })
      response.write('{"jsonrpc"', () => {
        response.socket?.destroy()
      })
    },
    error: { code: 'upstream_lost' }
  },
  {
    name: 'a connection that is cut',
    answer: (response) => {
      response.socket?.destroy()
    },
    error: { code: 'upstream_lost', data: { outcome: 'unknown' } }
  },
  {
    name: 'something that is not HTTP',
    answer: (response) => {
      response.socket?.end('SSH-2.0-OpenSSH\r\n\r\n')
    },
    error: { code: 'upstream_protocol' }
  },
  {
    name: 'nothing at all',
    answer: () => {},
    error: { code: 'upstream_timeout', data: { outcome: 'unknown' } }
  }
]

for (const { name, answer, error } of odd) {
  t.test(`${name} is an error of one call, sent once`, async (t) => {
    const { peer, upstream, timeOut } = await open(t, {}, { maxMessageBytes: 200_000 })
    peer.override(isCall('echo'), answer)
    const failing = upstream.request(callOf('echo'), recordingClient(), never).catch((error: unknown) => error)
    await until(() => peer.seen.some(isCall('echo')), 'it has reached the server')
    if (error.code === 'upstream_timeout') timeOut()
    const failure = await failing
    t.match(failure, error)
    t.notMatch((failure as Error).message, /169\.254|hunter2/)
    t.equal(peer.seen.filter(isCall('echo')).length, 1)
    t.match(await upstream.request(callOf('echo'), recordingClient(), never), { content: [{}] }, 'the next call works')
  })
}

t.test('a server that is not there is unavailable', async (t) => {
  const { peer, call } = await open(t)
  await peer.close()
  await t.rejects(call('echo'), {
    code: 'upstream_unavailable',
    message: /cannot be reached at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\)/
  })
})

t.test('idle sockets that the server closes cost no call', async (t) => {
  const { peer, call } = await open(t)
  for (let n = 0; n < 5; n++) {
    await call('echo')
    peer.cut()
    await until(
      () =>
        call('echo').then(
          () => true,
          () => false
        ),
      'the next call works'
    )
  }
  t.equal(peer.server.calls('echo'), 10)
})

t.test('a stream with event ids is resumed where it ended, and the call is not sent again', async (t) => {
  const { peer, upstream } = await open(t)
  const retryMs = 120
  peer.override(isCall('echo'), (response) => {
    response.writeHead(200, sse)
    response.end(
      `id: s1\nretry: ${retryMs}\ndata:\n\nid: s2\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'first' } })}\n\n`
    )
  })
  const isResume = ({ method, headers }: Seen): boolean => method === 'GET' && headers['last-event-id'] !== undefined
  let resumedAt = 0
  peer.override(isResume, (response) => {
    resumedAt = Date.now()
    // Cut again, in the middle of things.
    response.writeHead(200, sse)
    response.write(
      `id: s3\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'second' } })}\n\n`,
      () => {
        response.socket?.destroy()
      }
    )
  })
  peer.override(isResume, (response) => {
    response
      .writeHead(200, sse)
      .end(`id: s4\ndata: ${resultFor(peer.seen.find(isCall('echo')) as Seen, 'resumed')}\n\n`)
  })
  const client = recordingClient()
  const start = Date.now()
  t.match(await upstream.request(callOf('echo'), client, never), { content: [{ text: 'resumed' }] })
  t.ok(resumedAt - start >= retryMs - 20, 'retry is honoured')
  t.same(
    client.notified.map(({ params }) => params?.['data']),
    ['first', 'second']
  )
  t.same(
    peer.seen.filter(isResume).map(({ headers }) => headers['last-event-id']),
    ['s2', 's3']
  )
  t.equal(peer.seen.filter(isCall('echo')).length, 1)
})

t.test('a stream that cannot be resumed is lost', async (t) => {
  const { peer, call } = await open(t)
  peer.override(isCall('echo'), (response) => {
    response.writeHead(200, sse).end('id: s1\nretry: 10\ndata:\n\n')
  })
  peer.override(
    ({ headers }) => headers['last-event-id'] !== undefined,
    (response) => {
      response.writeHead(400).end()
    }
  )
  await t.rejects(call('echo'), { code: 'upstream_lost', data: { outcome: 'unknown' } })
})

t.test('a stream that is resumed without end and brings nothing is lost', async (t) => {
  const { peer, call } = await open(t)
  peer.override(isCall('echo'), (response) => {
    response.writeHead(200, sse).end('id: s1\nretry: 1\ndata:\n\n')
  })
  peer.override(
    ({ headers }) => headers['last-event-id'] !== undefined,
    (response) => {
      response.writeHead(200, sse).end(': nothing\n\n')
    },
    100
  )
  await t.rejects(call('echo'), { code: 'upstream_lost' })
  t.equal(peer.seen.filter(({ headers }) => headers['last-event-id'] !== undefined).length, 5)
})

t.test(
  'the standalone stream is opened again after a cut, with what it had, and what may have been missed is announced',
  async (t) => {
    const { peer, events } = await open(t)
    await until(() => peer.streams() === 1, 'it is open')
    peer.broadcast({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'test://one' } })
    await until(() => events.notifications.length === 1, 'a message of no call is an event')
    t.same(events.changed, [])
    peer.cut()
    await until(() => peer.streams() === 1 && events.changed.length === 3, 'it is open again')
    peer.broadcast({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed' })
    await until(() => events.changed.at(-1) === 'prompts' && events.changed.length === 4, 'and heard')
    t.same(events.ended, [])
  }
)

t.test('a session that ends while its stream is down is made anew without a call', async (t) => {
  const { peer, events, call } = await open(t)
  await heard({ peer, events })
  peer.sessions.clear()
  peer.cut()
  await until(() => initializes(peer.seen) === 2 && peer.allListening(), 'a new session listens')
  t.match(await call('echo'), { content: [{}] })
})

t.test('a call cancelled before it was sent is never sent', async (t) => {
  const { peer, upstream } = await open(t)
  const stop = new AbortController()
  stop.abort()
  await t.rejects(upstream.request(callOf('echo'), recordingClient(), stop.signal), { code: 'cancelled' })
  const late = new AbortController()
  const calls = Array.from({ length: 5 }, () =>
    t.rejects(upstream.request(callOf('echo'), recordingClient(), late.signal), { code: 'cancelled' })
  )
  late.abort()
  await Promise.all(calls)
  await upstream.request(callOf('pid'), recordingClient(), never)
  t.equal(peer.server.calls('echo'), 0)
})

t.test('a stream that stays open after its answer does not hold the call', async (t) => {
  const { peer, call } = await open(t)
  let ended = false
  peer.override(isCall('echo'), (response, seen) => {
    response.on('close', () => {
      ended = true
    })
    response.writeHead(200, sse).write(`data: ${resultFor(seen, 'early')}\n\n`)
  })
  t.match(await call('echo'), { content: [{ text: 'early' }] })
  t.notOk(ended)
  await until(() => ended, 'the stream is closed by us in the end')
})

t.test('two upstreams with one URL share no socket', async (t) => {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const { connector } = testConnector()
  const ports = new Set<string>()
  for (const key of ['a', 'b']) {
    const upstream = await connector.connect(
      httpDefinition(peer.url, { hash: key, headers: { 'x-api-key': key } }),
      handshake,
      recordingEvents()
    )
    t.teardown(() => upstream.close())
    peer.override(isCall('echo'), (response, seen) => {
      ports.add(String(response.socket?.remotePort))
      response.writeHead(200, json).end(resultFor(seen, 'x'))
    })
    await upstream.request(callOf('echo'), recordingClient(), never)
  }
  t.equal(ports.size, 2)
})
