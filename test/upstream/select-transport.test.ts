// Which HTTP transport a URL speaks: found out by initialize and one GET, remembered for a while, and never by anything
// that acts.

import { connect as connectTo, createServer, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createConnector } from '../../src/upstream/connect/connect.ts'
import { createEgressGuard } from '../../src/egress/guard.ts'
import { createEgress } from '../../src/upstream/http/socket-pool.ts'
import { startReference } from '../conformance/reference.ts'
import {
  callOf,
  handClock,
  handshake,
  heldClock,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  testConnector,
  until
} from '../kit/connector.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { isMethod, startUpstream, type Seen } from '../kit/upstream.ts'
import type { ServerResponse } from 'node:http'
import type { HttpDefinition } from '../../src/config/snapshot.ts'
import type { Upstream } from '../../src/protocol/seams.ts'

const connectMs = 50_000

/** A connector whose sense of now can be moved. The time for connecting passes when it is told to, other timers run. */
function shop() {
  const { supervisor, log, logged } = testConnector()
  const hands = handClock()
  // Of that time each transport has half.
  const held = heldClock(connectMs, connectMs / 2)
  const connector = createConnector({
    supervisor,
    egress: createEgress(createEgressGuard()),
    clock: { ...held, now: hands.now },
    random: () => 0,
    log
  })
  const connect = async (t: Test, url: string, overrides: Partial<HttpDefinition> = {}): Promise<Upstream> => {
    const definition = httpDefinition(url, { connectMs, ...overrides })
    const upstream = await connector.connect(definition, handshake, recordingEvents())
    t.teardown(() => upstream.close())
    return upstream
  }
  return { connect, advance: hands.advance, pass: held.pass, logged }
}

const works = (upstream: Upstream) =>
  upstream.request(callOf('echo'), recordingClient(), never).then(
    () => true,
    () => false
  )
const isGet = ({ method }: Seen): boolean => method === 'GET'
const tried = (seen: readonly Seen[]): string[] =>
  seen
    .filter(({ method, message }) => method === 'GET' || message?.['method'] === 'initialize')
    .map(({ method }) => method)

t.test('a server of the older transport is found, and the next connections do not probe', async (t) => {
  const peer = await startSseUpstream()
  t.teardown(peer.close)
  const { connect, logged } = shop()
  t.ok(await works(await connect(t, peer.url)))
  t.same(
    tried(peer.seen),
    ['POST', 'GET', 'POST'],
    'initialize is refused, the stream opened, initialize posted where it says'
  )
  peer.seen.length = 0
  t.ok(await works(await connect(t, peer.url)))
  t.ok(await works(await connect(t, peer.url)))
  t.same(tried(peer.seen), ['GET', 'POST', 'GET', 'POST'])
  t.equal(logged.filter(({ msg }) => msg.includes('HTTP+SSE')).length, 1)
})

t.test('the reference server of the SDK is found as well', async (t) => {
  const { connect } = shop()
  const upstream = await connect(t, await startReference(t, 'sse'))
  t.equal(upstream.serverInfo.name, 'gatehouse-reference')
})

t.test('a server of the newer transport is never asked for the older one', async (t) => {
  const peer = await startUpstream({ stream: false })
  t.teardown(peer.close)
  const { connect } = shop()
  t.ok(await works(await connect(t, peer.url)))
  t.same(
    peer.seen.slice(0, 1).map(({ message }) => message?.['method']),
    ['initialize']
  )
  t.same(tried(peer.seen), ['POST', 'GET'], 'the GET is that of its own session')
  t.ok(peer.seen.find(isGet)?.headers['mcp-session-id'])
})

t.test('nothing but initialize is sent to find out', async (t) => {
  const peer = await startSseUpstream()
  t.teardown(peer.close)
  const { connect } = shop()
  await connect(t, peer.url)
  t.same(
    [...new Set(peer.seen.map(({ message }) => message?.['method']))],
    ['initialize', undefined, 'notifications/initialized']
  )
})

t.test('what was found out holds for one definition', async (t) => {
  const peer = await startSseUpstream()
  t.teardown(peer.close)
  const { connect } = shop()
  await connect(t, peer.url)
  peer.seen.length = 0
  await connect(t, peer.url, { hash: 'other' })
  t.same(tried(peer.seen), ['POST', 'GET', 'POST'])
})

t.test('that a URL speaks HTTP+SSE is believed for a while', async (t) => {
  const peer = await startSseUpstream()
  t.teardown(peer.close)
  const { connect, advance } = shop()
  await connect(t, peer.url)
  advance(9 * 60_000)
  peer.seen.length = 0
  await connect(t, peer.url)
  t.same(tried(peer.seen), ['GET', 'POST'], 'before it')
  advance(2 * 60_000)
  peer.seen.length = 0
  await connect(t, peer.url)
  t.same(tried(peer.seen), ['POST', 'GET', 'POST'], 'after it')
})

/** One address, and what stands behind it can be changed. */
async function front(t: Test) {
  let target = 0
  const server = createServer((socket) => {
    const back = connectTo(target, '127.0.0.1')
    for (const [one, other] of [
      [socket, back],
      [back, socket]
    ] as const)
      one.on('error', () => other.destroy()).pipe(other)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/sse`,
    point: (url: string) => {
      target = Number(new URL(url).port)
    }
  }
}

t.test('a server that is upgraded under its URL is noticed by the next connection', async (t) => {
  const old = await startSseUpstream()
  const young = await startUpstream()
  t.teardown(old.close)
  t.teardown(young.close)
  const { url, point } = await front(t)
  const { connect } = shop()
  point(old.url)
  await (await connect(t, url)).close()
  point(young.url)
  t.ok(await works(await connect(t, url)), 'though it was remembered otherwise')
  young.seen.length = 0
  t.ok(await works(await connect(t, url)))
  t.equal(young.seen[0]?.method, 'POST', 'and what was known is forgotten')
})

t.test('one whose stream says nothing any more is tried the other way in time', async (t) => {
  const old = await startSseUpstream()
  const young = await startUpstream({ sessions: false })
  t.teardown(old.close)
  t.teardown(young.close)
  const { url, point } = await front(t)
  const { connect, pass } = shop()
  point(old.url)
  await (await connect(t, url)).close()
  point(young.url)
  const connecting = connect(t, url)
  await until(() => young.streams() === 1, 'a GET without a session opens its stream, which stays mute')
  pass(connectMs / 2)
  t.ok(await works(await connecting))
})

interface Silent {
  name: string
  answer: (response: ServerResponse) => void
  error: { code: string; message?: RegExp }
}
const silent: Silent[] = [
  {
    name: '401',
    answer: (response) => void response.writeHead(401).end(),
    error: { code: 'upstream_unavailable', message: /refused our credentials/ }
  },
  {
    name: '403',
    answer: (response) => void response.writeHead(403).end(),
    error: { code: 'upstream_unavailable' }
  },
  {
    name: '406',
    answer: (response) => void response.writeHead(406).end(),
    error: { code: 'upstream_protocol' }
  },
  {
    name: '500',
    answer: (response) => void response.writeHead(500).end(),
    error: { code: 'upstream_unavailable' }
  },
  {
    name: '503',
    answer: (response) => void response.writeHead(503).end(),
    error: { code: 'upstream_unavailable' }
  },
  {
    name: 'a broken connection',
    answer: (response) => {
      response.socket?.destroy()
    },
    error: { code: 'upstream_unavailable' }
  },
  {
    name: 'silence',
    answer: () => {},
    error: { code: 'upstream_unavailable', message: /connectMs/ }
  },
  {
    name: 'a page',
    answer: (response) => {
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>')
    },
    error: { code: 'upstream_protocol' }
  }
]
for (const { name, answer, error } of silent) {
  t.test(`${name} says nothing about the transport: no other is tried`, async (t) => {
    const peer = await startSseUpstream()
    t.teardown(peer.close)
    peer.override(isMethod('initialize'), answer)
    const { connect, pass } = shop()
    const refused = t.rejects(connect(t, peer.url), error)
    await until(() => peer.seen.length > 0, 'it is asked')
    if (name === 'silence') pass(connectMs)
    await refused
    t.same(
      peer.seen.map(({ method }) => method),
      ['POST']
    )
    t.ok(await works(await connect(t, peer.url)), 'later it is found')
  })
}

for (const status of [400, 404, 405]) {
  t.test(`${status} to initialize leads to the older transport, an error of its own does not`, async (t) => {
    const peer = await startSseUpstream()
    t.teardown(peer.close)
    peer.override(isMethod('initialize'), (response) => {
      response.writeHead(status).end('<h1>no</h1>')
    })
    t.ok(await works(await shop().connect(t, peer.url)))
    peer.seen.length = 0
    peer.override(isMethod('initialize'), (response, { message }) => {
      response
        .writeHead(status, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code: -32000, message: 'bad client' } }))
    })
    await t.rejects(shop().connect(t, peer.url), { code: 'upstream_unavailable', message: /bad client/ })
    t.same(
      peer.seen.map(({ method }) => method),
      ['POST']
    )
  })
}

t.test('where neither is spoken, the first refusal is told', async (t) => {
  const peer = await startSseUpstream()
  t.teardown(peer.close)
  const { connect } = shop()
  for (const type of ['text/html', 'text/event-stream']) {
    peer.override(isGet, (response) => {
      response.writeHead(type === 'text/html' ? 404 : 200, { 'Content-Type': type }).end()
    })
    await t.rejects(connect(t, peer.url), {
      code: 'upstream_protocol',
      message: /no MCP endpoint.*HTTP 405.*check its url/
    })
  }
})

t.test('where the older one cannot be asked or asks too much, that is told', async (t) => {
  const peer = await startSseUpstream()
  t.teardown(peer.close)
  const { connect } = shop()
  peer.override(isGet, (response) => {
    response.writeHead(401).end()
  })
  await t.rejects(connect(t, peer.url), { code: 'upstream_unavailable', message: /refused our credentials/ })
  peer.override(isGet, (response) => {
    response
      .writeHead(200, { 'Content-Type': 'text/event-stream' })
      .write('event: endpoint\ndata: http://169.254.169.254/\n\n')
  })
  await t.rejects(connect(t, peer.url), { code: 'upstream_protocol', message: /origin of its url/ })
})
