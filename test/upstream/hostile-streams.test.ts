// What a server over HTTP may say on a stream that is kept or sent back: ids of events, when to come back, where to post.
// No call of it may keep the gateway busy, or hold what nobody counts.

import type { ServerResponse } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import {
  callOf,
  handshake,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  testConnector,
  until
} from '../kit/connector.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { isCall, startUpstream, type Seen } from '../kit/upstream.ts'
import { sseDefinition } from './http-sse-kit.ts'

const sse = { 'content-type': 'text/event-stream' }
const isResume = ({ method, headers }: Seen): boolean => method === 'GET' && headers['last-event-id'] !== undefined

async function open(t: Test, capabilities = {}) {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const definition = httpDefinition(peer.url, { connectMs: 60_000 })
  const upstream = await testConnector().connector.connect(
    definition,
    { ...handshake, capabilities },
    recordingEvents()
  )
  t.teardown(() => upstream.close())
  const answer = (): string => {
    const id = peer.seen.find(isCall('echo'))?.message?.['id']
    return `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'at last' }] } })}\n\n`
  }
  const call = (args = {}, signal = never, client = recordingClient()) =>
    upstream.request(callOf('echo', args), client, signal)
  return { peer, answer, call }
}

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void
function heldBytes(kind: 'heapUsed' | 'external' = 'heapUsed'): number {
  gc()
  return process.memoryUsage()[kind]
}

/** What others have let go of is freed a little later. */
async function settledBytes(kind: 'heapUsed' | 'external' = 'heapUsed'): Promise<number> {
  let bytes = heldBytes(kind)
  await until(() => {
    const before = bytes
    bytes = heldBytes(kind)
    return Math.abs(bytes - before) < 100_000
  }, 'what others held is freed')
  return bytes
}

// The first of these: buffers of the others would still be about to be freed.
t.test('of a call that was cancelled while its session is begun again nothing is held', async (t) => {
  const { peer, call } = await open(t)
  await call()
  const bytes = 4_000_000
  const before = await settledBytes('external')
  const caller = new AbortController()
  const isHandshake = ({ message }: Seen): boolean => message?.['method'] === 'initialize'
  let isAsked = false
  peer.override(isHandshake, () => {
    isAsked = true
  })
  peer.sessions.clear()
  const outcome = call({ text: 'x'.repeat(bytes) }, caller.signal).catch((error: unknown) => error)
  await until(() => isAsked, 'the server forgot the session, and does not begin another one')
  peer.seen.length = 0
  peer.server.received.length = 0
  t.ok(heldBytes('external') - before > bytes / 2, 'its text is held to be sent again, the control')
  caller.abort()
  t.match(await outcome, { code: 'cancelled' })
  await until(() => heldBytes('external') - before < bytes / 4, 'nothing of it is held')
})

t.test('of a call that its server asks about before it answers nothing is held', async (t) => {
  const { peer, call } = await open(t, { elicitation: {} })
  await until(peer.allListening, 'its GET stream is open')
  const bytes = 4_000_000
  const before = await settledBytes('external')
  const client = recordingClient(() => new Promise(() => {}))
  let answer: (() => void) | undefined
  peer.override(isCall('echo'), (response) => {
    answer = () => void response.writeHead(404).end()
  })
  const outcome = call({ text: 'x'.repeat(bytes) }, never, client).catch((error: unknown) => error)
  await until(() => answer !== undefined, 'the call has come')
  peer.seen.length = 0
  peer.broadcast({ jsonrpc: '2.0', id: 'p', method: 'ping' })
  await until(() => peer.seen.length > 0, 'it has answered a ping')
  peer.seen.length = 0
  t.ok(heldBytes('external') - before > bytes / 2, 'its text is held to be sent again, the control')
  const params = { mode: 'form', message: 'who?', requestedSchema: { type: 'object', properties: {} } }
  peer.broadcast({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params })
  await until(() => client.asked.length === 1, 'its client is asked')
  await until(() => heldBytes('external') - before < bytes / 4, 'nothing of it is held')
  answer?.()
  t.match(await outcome, { code: 'upstream_unavailable', message: /after it had asked something/ })
  t.notOk(peer.seen.some(isCall('echo')), 'and it is not sent again')
})

t.test('a server that has a call come back at once, again and again, is asked with pauses', async (t) => {
  const { peer, answer, call } = await open(t)
  const rounds = 8
  const times: number[] = []
  const cut = (id: number): string => `id: ${id}\nretry: 0\ndata:\n\n`
  peer.override(isCall('echo'), (response) => void response.writeHead(200, sse).end(cut(0)))
  peer.override(
    isResume,
    (response) => {
      times.push(performance.now())
      response.writeHead(200, sse).end(times.length === rounds ? answer() : cut(times.length))
    },
    rounds
  )
  t.match(await call(), { content: [{ text: 'at last' }] }, 'it has its answer all the same')
  const pauses = times.slice(1).map((time, at) => time - (times[at] ?? 0))
  // A busy machine makes them longer, and nothing shorter.
  t.ok(
    pauses.every((pause) => pause > 40),
    pauses.map(Math.round).join(' ')
  )
})

t.test(
  'the id of an event that would be too long to send back ends its stream, and a shorter one is sent',
  async (t) => {
    const { peer, answer, call } = await open(t)
    const long = 'x'.repeat(8_000)
    peer.override(
      isCall('echo'),
      (response) => void response.writeHead(200, sse).end(`id: ${long}\nretry: 1\ndata:\n\n`)
    )
    peer.override(isResume, (response) => void response.writeHead(200, sse).end(answer()))
    t.match(await call(), { content: [{ text: 'at last' }] }, 'the control')
    t.equal(peer.seen.find(isResume)?.headers['last-event-id'], long)
    // It goes on, so that only the gateway can end it.
    peer.override(
      isCall('echo'),
      (response) => void response.writeHead(200, sse).write(`id: ${long}${long}\ndata:\n\n`)
    )
    await t.rejects(call(), { code: 'upstream_protocol', message: /the id of an event is longer than 8192 characters/ })
  }
)

t.test('an address for messages that is too long is not used, and a shorter one is', async (t) => {
  const peer = await startSseUpstream()
  t.teardown(peer.close)
  const connect = () => testConnector().connector.connect(sseDefinition(peer.url), handshake, recordingEvents())
  const upstream = await connect()
  t.match(await upstream.request(callOf('echo', {}), recordingClient(), never), { content: [{}] }, 'the control')
  await upstream.close()
  peer.override(
    ({ method }) => method === 'GET',
    (response) => void response.writeHead(200, sse).write(`event: endpoint\ndata: /${'x'.repeat(9_000)}\n\n`)
  )
  await t.rejects(connect(), { code: 'upstream_protocol', message: /wants its messages at .* too long a one/ })
})

/** A connection whose GET stream the test writes. */
async function openStream(t: Test) {
  const peer = await startUpstream()
  t.teardown(peer.close)
  let stream: ServerResponse | undefined
  peer.override(
    ({ method }) => method === 'GET',
    (response) => {
      stream = response.writeHead(200, sse)
    }
  )
  const upstream = await testConnector().connector.connect(httpDefinition(peer.url), handshake, recordingEvents())
  t.teardown(() => upstream.close())
  await until(() => stream !== undefined, 'it listens')
  return { stream: () => stream }
}

t.test('of an event that came in part nothing is held while its stream is away', async (t) => {
  const part = Buffer.from(`retry: 3600000\n\ndata: ${'x'.repeat(4_000_000)}`)
  const { stream } = await openStream(t)
  const before = await settledBytes()
  stream()?.write(part)
  await until(() => heldBytes() - before > part.length / 2, 'the event is held while it comes, the control')
  stream()?.destroy()
  await until(() => heldBytes() - before < part.length / 4, 'nothing of it is held')
})

const rests: ReadonlyArray<readonly [what: string, rest: string]> = [
  ['the beginning of the next one', '\n\ndata: 0123456789'],
  ['the beginning of the next one, after other line ends,', '\r\n\rdata: 0123456789'],
  ['its id', '\nid: 0123456789abc\n\n']
]
for (const [what, rest] of rests) {
  t.test(`of a long event nothing but ${what} is held while its stream is silent`, async (t) => {
    const part = Buffer.from(`event: other\ndata: ${'x'.repeat(4_000_000)}`)
    const { stream } = await openStream(t)
    const before = await settledBytes()
    stream()?.write(part)
    await until(() => heldBytes() - before > part.length / 2, 'the event is held while it comes, the control')
    stream()?.write(rest)
    await until(() => heldBytes() - before < part.length / 4, 'nothing of it is held')
  })
}
