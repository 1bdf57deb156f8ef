// Which era a server is spoken to in: what it answers, over which transport, who wants which, and exactly what is sent
// to find out.

import t, { type Test } from 'tap'
import { createServer } from 'node:http'
import { createConnector } from '../../src/upstream/connect/connect.ts'
import { createEgressGuard } from '../../src/egress/guard.ts'
import { createEgress } from '../../src/upstream/http/socket-pool.ts'
import {
  handClock,
  handshake,
  heldClock,
  httpDefinition,
  recordingEvents,
  stdioDefinition,
  testConnector,
  until
} from '../kit/connector.ts'
import { modernStdio, startModern } from '../kit/modern-server.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { startUpstream } from '../kit/upstream.ts'
import type { AddressInfo } from 'node:net'
import type { HttpDefinition, StdioDefinition, UpstreamDefinition } from '../../src/config/snapshot.ts'
import type { Era } from '../../src/protocol/messages.ts'
import type { Upstream } from '../../src/protocol/seams.ts'
import type { Clock } from '../../src/time/clock.ts'

type Json = Record<string, unknown>

/** How one method is answered. `status`: over HTTP, default 200. */
interface Reply {
  readonly result?: Json
  readonly error?: Json
  readonly status?: number
  readonly text?: string
  readonly silent?: true
  readonly die?: true
  /** Over stdio: it is answered when the next request is there, and ahead of that one. */
  readonly late?: true
}
type Behaviour = Readonly<Record<string, readonly Reply[]>>

const discovered: Reply = {
  result: {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {} },
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'new', version: '2' } }
  }
}
const initialized: Reply = {
  result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } }
}
const unsupported = (supported: string[], status = 400): Reply => ({
  status,
  error: { code: -32022, message: 'unsupported version', data: { supported, requested: '2026-07-28' } }
})
const rpc = (code: number, status = 200): Reply => ({ status, error: { code, message: `error ${code}` } })
const plain = (status: number): Reply => ({ status, text: '<h1>no</h1>' })

const D = 'server/discover'
const I = 'initialize'
const N = 'notifications/initialized'

interface Case {
  readonly name: string
  readonly behaviour: Behaviour
  readonly wanted?: Era
  readonly pinned?: 'legacy' | 'modern'
  readonly over?: 'http' | 'stdio'
  readonly transport?: HttpDefinition['transport']
  /** The era, or what the error says. */
  readonly becomes: Era | { code: string; message?: RegExp }
  /** Over HTTP, GET stands for itself. */
  readonly sent: readonly string[]
  /** stdio: how many processes it takes. */
  readonly processes?: number
}

const oldSends = [D, I, N]
const cases: Case[] = [
  {
    name: 'a modern server is recognised by its answer',
    behaviour: { [D]: [discovered] },
    becomes: 'modern',
    sent: [D]
  },
  {
    name: 'a server of both eras is modern where the caller wants that',
    behaviour: { [D]: [discovered], [I]: [initialized] },
    becomes: 'modern',
    sent: [D]
  },
  {
    name: 'and legacy where the caller wants that, without server/discover',
    behaviour: { [D]: [discovered], [I]: [initialized] },
    wanted: 'legacy',
    over: 'stdio',
    becomes: 'legacy',
    sent: [I, N]
  },
  {
    name: 'a server of both eras that opens no session is modern, whatever the caller wants',
    behaviour: { [D]: [discovered], [I]: [initialized] },
    wanted: 'legacy',
    over: 'http',
    becomes: 'modern',
    sent: [I, N, D]
  },
  {
    name: 'an older server that opens no session is legacy',
    behaviour: { [D]: [rpc(-32601, 404)], [I]: [initialized] },
    wanted: 'legacy',
    over: 'http',
    becomes: 'legacy',
    sent: [I, N, D]
  },
  {
    name: 'pinned legacy, it is never asked',
    behaviour: { [D]: [discovered], [I]: [initialized] },
    pinned: 'legacy',
    becomes: 'legacy',
    sent: [I, N]
  },
  {
    name: 'configured as modern, it is modern whatever the caller wants',
    behaviour: { [D]: [discovered], [I]: [initialized] },
    pinned: 'modern',
    wanted: 'legacy',
    becomes: 'modern',
    sent: [D]
  },
  {
    name: 'a server that offers older revisions beside the newer one is modern',
    behaviour: { [D]: [{ result: { ...discovered.result, supportedVersions: ['2025-11-25', '2026-07-28'] } }] },
    becomes: 'modern',
    sent: [D]
  },
  {
    name: 'a server that discovers itself as an older one is legacy',
    behaviour: { [D]: [{ result: { ...discovered.result, supportedVersions: ['2025-11-25'] } }], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends
  },
  {
    name: 'a server of unknown revisions only is neither',
    behaviour: { [D]: [{ result: { ...discovered.result, supportedVersions: ['2031-01-01'] } }], [I]: [initialized] },
    becomes: { code: 'upstream_protocol', message: /speaks 2031-01-01; the gateway speaks 2026-07-28/ },
    sent: [D]
  },
  {
    name: '-32022 with a revision that we speak is asked once more',
    behaviour: { [D]: [unsupported(['2031-01-01', '2026-07-28']), discovered] },
    becomes: 'modern',
    sent: [D, D]
  },
  {
    name: '-32022 twice is the end of it',
    behaviour: { [D]: [unsupported(['2026-07-28'])], [I]: [initialized] },
    becomes: { code: 'upstream_protocol', message: /refuses to say/ },
    sent: [D, D]
  },
  {
    name: '-32022 with older revisions only means initialize',
    behaviour: { [D]: [unsupported(['2025-11-25', '2025-06-18'])], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends
  },
  {
    name: '-32022 with strange revisions only means neither',
    behaviour: { [D]: [unsupported(['1999-01-01'])], [I]: [initialized] },
    becomes: { code: 'upstream_protocol', message: /1999-01-01/ },
    sent: [D]
  },
  ...[-32020, -32021].map((code): Case => ({
    name: `${code} is of a modern server, which is never sent initialize`,
    behaviour: { [D]: [rpc(code, 400)], [I]: [initialized] },
    becomes: { code: 'upstream_protocol', message: /speaks revision 2026-07-28, but refuses/ },
    sent: [D]
  })),
  ...[
    [-32601, 200],
    [-32601, 404],
    [-32602, 200],
    [-32602, 400],
    [-32000, 400],
    [-32600, 400],
    [-32001, 404],
    [-32603, 200]
  ].map(([code = 0, status = 0]): Case => ({
    name: `error ${code} (HTTP ${status}) means legacy`,
    behaviour: { [D]: [rpc(code, status)], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends
  })),
  {
    name: 'a result that is none of discover means legacy',
    behaviour: { [D]: [{ result: {} }], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends
  },
  {
    name: 'pinned modern, a legacy server is refused and not fallen back to',
    behaviour: { [D]: [rpc(-32601, 404)], [I]: [initialized] },
    pinned: 'modern',
    becomes: { code: 'upstream_protocol', message: /era: modern/ },
    sent: [D]
  },
  ...[-32601, -32602].map((code): Case => ({
    name: `initialize refused with ${code} leads to the question`,
    behaviour: { [D]: [discovered], [I]: [rpc(code, code === -32601 ? 404 : 400)] },
    wanted: 'legacy',
    becomes: 'modern',
    sent: [I, D]
  })),
  {
    name: 'initialize refused with -32022 too',
    behaviour: { [D]: [discovered], [I]: [unsupported(['2026-07-28'])] },
    wanted: 'legacy',
    becomes: 'modern',
    sent: [I, D]
  },
  {
    name: 'initialize refused for want of a header too',
    over: 'http',
    behaviour: { [D]: [discovered], [I]: [rpc(-32020, 400)] },
    wanted: 'legacy',
    becomes: 'modern',
    sent: [I, D]
  },
  {
    name: 'where the answer to the question is no either, the refusal of initialize is told',
    behaviour: { [D]: [rpc(-32601, 404)], [I]: [rpc(-32602, 400)] },
    wanted: 'legacy',
    becomes: { code: 'upstream_unavailable', message: /refused to initialize: error -32602/ },
    sent: [I, D]
  },
  {
    name: 'initialize refused for another reason leads to no question',
    behaviour: { [D]: [discovered], [I]: [rpc(-32000, 400)] },
    wanted: 'legacy',
    becomes: { code: 'upstream_unavailable', message: /error -32000/ },
    sent: [I]
  },
  {
    name: 'pinned legacy, a modern server is refused',
    behaviour: { [D]: [discovered], [I]: [unsupported(['2026-07-28'])] },
    pinned: 'legacy',
    becomes: { code: 'upstream_unavailable' },
    sent: [I]
  },

  ...[400, 404, 405].map((status): Case => ({
    name: `HTTP ${status} without an error of its own means legacy`,
    over: 'http',
    behaviour: { [D]: [plain(status)], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends
  })),
  {
    name: 'HTTP 200 with a page means legacy',
    over: 'http',
    behaviour: { [D]: [plain(200)], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends
  },
  {
    name: 'HTTP 202 without anything means legacy',
    over: 'http',
    behaviour: { [D]: [{ status: 202, text: '' }], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends
  },
  {
    name: 'a modern error with HTTP 200 proves nothing',
    over: 'http',
    behaviour: { [D]: [unsupported(['2026-07-28'], 200)], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends
  },
  ...[401, 403, 429, 500, 502, 503].map((status): Case => ({
    name: `HTTP ${status} says nothing: no initialize`,
    over: 'http',
    behaviour: { [D]: [plain(status)], [I]: [initialized] },
    becomes: { code: 'upstream_unavailable' },
    sent: [D]
  })),
  {
    name: 'HTTP 500 with a modern error says nothing',
    over: 'http',
    behaviour: { [D]: [rpc(-32022, 500)], [I]: [initialized] },
    becomes: { code: 'upstream_unavailable' },
    sent: [D]
  },
  {
    name: 'a broken connection says nothing',
    over: 'http',
    behaviour: { [D]: [{ die: true }], [I]: [initialized] },
    becomes: { code: 'upstream_unavailable' },
    sent: [D]
  },
  {
    name: 'silence over HTTP is an outage',
    over: 'http',
    behaviour: { [D]: [{ silent: true }], [I]: [initialized] },
    becomes: {
      code: 'upstream_unavailable',
      message: /server\/discover within 45 s.*Only server\/discover was sent.*era: legacy/
    },
    sent: [D]
  },
  {
    name: 'HTTP 500 is explained as what a legacy server may answer',
    over: 'http',
    behaviour: { [D]: [plain(500)] },
    becomes: { code: 'upstream_unavailable', message: /HTTP 500.*Only server\/discover was sent.*era: legacy/ },
    sent: [D]
  },
  {
    name: 'a broken connection too',
    over: 'http',
    behaviour: { [D]: [{ die: true }] },
    becomes: {
      code: 'upstream_unavailable',
      message: /ended during its start.*Only server\/discover was sent.*era: legacy/
    },
    sent: [D]
  },
  {
    name: 'refused credentials are not, since another era needs the same',
    over: 'http',
    behaviour: { [D]: [plain(401)] },
    becomes: { code: 'upstream_unavailable', message: /HTTP 401\): check its headers in the configuration\.$/ },
    sent: [D]
  },
  {
    name: 'nor silence where the era is pinned',
    over: 'http',
    pinned: 'modern',
    behaviour: { [D]: [{ silent: true }] },
    becomes: { code: 'upstream_unavailable', message: /connectMs\)\.$/ },
    sent: [D]
  },
  {
    name: 'a URL for HTTP+SSE is never asked',
    over: 'http',
    transport: 'sse',
    behaviour: { [D]: [discovered] },
    becomes: { code: 'upstream_protocol', message: /HTTP\+SSE/ },
    sent: ['GET']
  },

  {
    name: 'silence over stdio means legacy, in the same process',
    over: 'stdio',
    behaviour: { [D]: [{ silent: true }], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends,
    processes: 1
  },
  {
    name: 'an answer that comes too late is dropped',
    over: 'stdio',
    behaviour: { [D]: [{ ...discovered, late: true }], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends,
    processes: 1
  },
  {
    name: 'a process that dies of the question is started anew, and not asked again',
    over: 'stdio',
    behaviour: { [D]: [{ die: true }], [I]: [initialized] },
    becomes: 'legacy',
    sent: oldSends,
    processes: 2
  },
  {
    name: 'silence where only the new era is known: initialize is refused, and the question answered then',
    over: 'stdio',
    behaviour: { [D]: [{ silent: true }, discovered], [I]: [rpc(-32601)] },
    becomes: 'modern',
    sent: [D, I, D],
    processes: 1
  },
  {
    name: 'a process that refuses initialize and ends is started anew for the question',
    over: 'stdio',
    behaviour: { [D]: [discovered], [I]: [{ ...rpc(-32602), die: true }] },
    wanted: 'legacy',
    becomes: 'modern',
    sent: [I, D],
    processes: 2
  },
  {
    name: 'pinned modern, silence is an outage',
    over: 'stdio',
    pinned: 'modern',
    behaviour: { [D]: [{ silent: true }], [I]: [initialized] },
    becomes: { code: 'upstream_unavailable', message: /connectMs/ },
    sent: [D],
    processes: 1
  },
  {
    name: 'pinned modern, a process that dies is refused',
    over: 'stdio',
    pinned: 'modern',
    behaviour: { [D]: [{ die: true }], [I]: [initialized] },
    becomes: {
      code: 'upstream_unavailable',
      message: /ended during its start\..* run its command by hand .*era: modern/
    },
    sent: [D],
    processes: 1
  }
]

/** Answers each method with its replies in turn, the last one for ever. */
async function httpServer(t: Test, behaviour: Behaviour) {
  const sent: string[] = []
  const headers: Json[] = []
  const asked = new Map<string, number>()
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on('end', () => {
      if (request.method === 'DELETE') return void response.writeHead(204).end()
      const message = body === '' ? undefined : (JSON.parse(body) as Json)
      const method = message === undefined ? String(request.method) : String(message['method'])
      const version = request.headers['mcp-protocol-version']
      // The stream of a legacy session is no question.
      if (method !== 'GET' || version === undefined) {
        sent.push(method)
        headers.push(request.headers)
      }
      const nth = asked.get(method) ?? 0
      asked.set(method, nth + 1)
      const replies = behaviour[method]
      if (replies === undefined) return void response.writeHead(method === 'GET' ? 405 : 202).end()
      const { status = 200, text, result, error, die, silent } = replies[Math.min(nth, replies.length - 1)] ?? {}
      if (silent === true) return
      if (die === true) return void request.socket.destroy()
      if (text !== undefined) return void response.writeHead(status, { 'content-type': 'text/html' }).end(text)
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(
          JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], ...(result === undefined ? { error } : { result }) })
        )
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, sent, headers }
}

/** The same as a program; it says on standard error what it was sent. */
const program = `
const behaviour = JSON.parse(process.argv[1]), asked = {}
let held = () => {}
process.stderr.write('born\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  process.stderr.write('sent ' + method + '\\n')
  held()
  const nth = asked[method] = (asked[method] ?? -1) + 1
  const replies = behaviour[method]
  if (replies === undefined) return
  const { result, error, silent, die, late } = replies[Math.min(nth, replies.length - 1)]
  if (silent) return
  const answer = () => {
    if (result !== undefined || error !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...result === undefined ? { error } : { result } }) + '\\n')
    if (die) setImmediate(() => process.exit(9))
  }
  held = () => {}
  if (late) held = answer
  else answer()
})`

const connectMs = 45_000
/** How long a process is waited for before it is taken for a legacy server. */
const silenceMs = 5_000

/** Nothing counts as silent before the test says so, however long the machine takes. */
const patient = () => heldClock(connectMs, silenceMs)

function stdioServer(behaviour: Behaviour, overrides: Partial<StdioDefinition>, clock: Clock) {
  const lines: string[] = []
  const events = {
    ...recordingEvents(),
    stderr(line: string): boolean {
      lines.push(line)
      return false
    }
  }
  return {
    ...testConnector({ clock }),
    events,
    definition: stdioDefinition({}, { args: ['-e', program, JSON.stringify(behaviour)], ...overrides }),
    sent: () => lines.flatMap((line) => (line.startsWith('sent ') ? [line.slice(5)] : [])),
    processes: () => lines.filter((line) => line === 'born').length
  }
}

async function connected(t: Test, connect: Promise<Upstream>, { becomes }: Case): Promise<void> {
  if (typeof becomes === 'object') return void (await t.rejects(connect, becomes))
  const upstream = await connect
  t.equal(upstream.era, becomes)
  t.equal(upstream.revision, becomes === 'modern' ? '2026-07-28' : '2025-11-25')
  t.equal(upstream.serverInfo.name, becomes === 'modern' ? 'new' : 'old')
  t.same(upstream.capabilities, { tools: {} })
  t.teardown(() => upstream.close())
}

for (const over of ['http', 'stdio'] as const) {
  t.test(over, async (t) => {
    for (const each of cases) {
      if (each.over !== undefined && each.over !== over) continue
      const { name, behaviour, wanted = 'modern', pinned = 'auto', transport = 'streamable', sent, processes } = each
      t.test(name, async (t) => {
        const common: { era: 'auto' | Era; connectMs: number } = { era: pinned, connectMs }
        const clock = patient()
        const [first] = behaviour[D] ?? []
        /** Where the question is not answered, the time for its answer passes once it is there. */
        const silence = async (asked: () => readonly string[], ms: number): Promise<void> => {
          if (first?.silent !== true && first?.late !== true) return
          await until(() => asked().includes(D), 'it is asked')
          clock.pass(ms)
        }
        if (over === 'http') {
          const peer = await httpServer(t, behaviour)
          const connecting = testConnector({ clock }).connector.connect(
            httpDefinition(peer.url, { ...common, transport }),
            { ...handshake, era: wanted },
            recordingEvents()
          )
          await Promise.all([connected(t, connecting, each), silence(() => peer.sent, connectMs)])
          t.same(peer.sent, sent)
          peer.sent.forEach((method, at) => {
            if (method === D)
              t.match(peer.headers[at], {
                'mcp-protocol-version': '2026-07-28',
                'mcp-method': D,
                accept: 'application/json, text/event-stream',
                'content-type': 'application/json'
              })
          })
        } else {
          const peer = stdioServer(behaviour, common, clock)
          const connecting = peer.connector.connect(peer.definition, { ...handshake, era: wanted }, peer.events)
          const ms = pinned === 'modern' ? connectMs : silenceMs
          await Promise.all([connected(t, connecting, each), silence(peer.sent, ms)])
          await until(() => peer.sent().length >= sent.length, 'all is sent')
          t.same(peer.sent(), sent)
          if (processes !== undefined) t.equal(peer.processes(), processes)
          if (typeof each.becomes === 'object')
            await until(() => peer.supervisor.count() === 0, 'no process is left behind')
        }
      })
    }
  })
}

/** A connector whose sense of now can be moved, while timers run in real time; nothing counts as silent. */
function shop() {
  const { supervisor, log } = testConnector()
  const hands = handClock()
  const connector = createConnector({
    supervisor,
    egress: createEgress(createEgressGuard()),
    clock: { ...patient(), now: hands.now },
    random: () => 0,
    log
  })
  const connect = async (t: Test, definition: UpstreamDefinition, era: Era): Promise<Upstream> => {
    const upstream = await connector.connect(definition, { ...handshake, era }, recordingEvents())
    t.teardown(() => upstream.close())
    return upstream
  }
  return { connect, advance: hands.advance }
}

t.test('that a server is legacy is believed for ten minutes', async (t) => {
  const peer = await httpServer(t, { [D]: [rpc(-32601, 404)], [I]: [initialized] })
  const { connect, advance } = shop()
  const definition = httpDefinition(peer.url)
  await connect(t, definition, 'modern')
  await connect(t, definition, 'modern')
  t.same(peer.sent, [D, I, N, I, N])
  await connect(t, { ...definition, hash: 'another' }, 'modern')
  t.same(peer.sent.slice(5), [D, I, N], 'another definition may see another server')
  advance(11 * 60_000)
  peer.sent.length = 0
  await connect(t, definition, 'modern')
  t.same(peer.sent, [D, I, N], 'after its time it is asked again')
})

t.test('an outage does not change what is known of the era', async (t) => {
  const peer = await httpServer(t, {
    [D]: [discovered, plain(503), plain(401), { die: true }, discovered],
    [I]: [plain(400)]
  })
  const { connect } = shop()
  await connect(t, httpDefinition(peer.url), 'modern')
  for (const _outage of [503, 401, 0])
    await t.rejects(connect(t, httpDefinition(peer.url), 'modern'), { code: 'upstream_unavailable' })
  t.equal((await connect(t, httpDefinition(peer.url), 'modern')).era, 'modern')
  t.same(peer.sent, [D, D, D, D, D])
})

t.test('a server that was set back to the older era is found out by the next connection', async (t) => {
  const peer = await httpServer(t, { [D]: [discovered, rpc(-32601, 404)], [I]: [initialized] })
  const { connect } = shop()
  t.equal((await connect(t, httpDefinition(peer.url), 'modern')).era, 'modern')
  t.equal((await connect(t, httpDefinition(peer.url), 'modern')).era, 'legacy')
  t.same(peer.sent, [D, D, I, N])
})

t.test('a server that knows only the newer era is not asked for the older one again', async (t) => {
  const peer = await startModern()
  t.teardown(peer.close)
  const { connect } = shop()
  const methods = () => peer.seen.map(({ message }) => message?.['method'])
  for (const _time of [1, 2]) t.equal((await connect(t, httpDefinition(peer.url), 'legacy')).era, 'modern')
  t.same(methods(), [I, D, D])
})

t.test('a server of both eras without sessions in the older one is modern for everybody', async (t) => {
  const peer = await httpServer(t, {
    [D]: [discovered, plain(503), discovered],
    [I]: [initialized]
  })
  const { connect, advance } = shop()
  const sentFor = async (wanted: Era, becomes: Era): Promise<string[]> => {
    peer.sent.length = 0
    t.equal((await connect(t, httpDefinition(peer.url), wanted)).era, becomes)
    return [...peer.sent]
  }
  t.same(await sentFor('modern', 'modern'), [D])
  t.same(await sentFor('legacy', 'legacy'), [I, N, D], 'where the newer one fails, the older one is better than none')
  t.same(await sentFor('legacy', 'modern'), [I, N, D])
  t.same(await sentFor('legacy', 'modern'), [D], 'known from now on')
  advance(11 * 60_000)
  t.same(await sentFor('legacy', 'modern'), [I, N, D], 'after ten minutes it is tried again')
})

t.test('the scripted server of both eras is what each caller wants', async (t) => {
  const peer = await startModern({ legacy: true })
  t.teardown(peer.close)
  const { connect } = shop()
  for (const era of ['legacy', 'modern'] as const) {
    t.equal((await connect(t, httpDefinition(peer.url), era)).era, era)
    const { command, args } = modernStdio({ legacy: true })
    t.equal((await connect(t, stdioDefinition({}, { command, args }), era)).era, era)
  }
})

t.test('both older transports are still found behind the question', async (t) => {
  const [sse, streamable] = [await startSseUpstream(), await startUpstream()]
  t.teardown(sse.close)
  t.teardown(streamable.close)
  const { connect } = shop()
  for (const peer of [sse, streamable]) {
    t.equal((await connect(t, httpDefinition(peer.url), 'modern')).era, 'legacy')
    t.equal(peer.seen[0]?.message?.['method'], D)
    t.equal(peer.seen.filter(({ message }) => message?.['method'] === D).length, 1)
  }
})
