// Memory that was counted is given back, however a request ends: a byte that is kept would in time refuse everybody.

import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { personKeyOf } from '../../src/auth/principal.ts'
import { reservedIssuerPrefix } from '../../src/config/auth/auth-config.ts'
import { createMemoryAccount, memoryAccountOfProcess, type MemoryAccount } from '../../src/limits/memory.ts'
import { availableMemory, memoryOfWorker } from '../../src/limits/process-memory.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { acmeGateway, initializeBody, keyOf, type AcmeGateway, type AcmeGatewayOptions } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, open, send, type LegacyClient } from '../kit/client.ts'
import { listenEvents } from '../kit/events.ts'
import { httpSseClient } from '../kit/http-sse-client.ts'
import { modernMessage, modernRequest } from '../kit/modern-client.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'

const token = keyOf.ada
const text = 'x'.repeat(100_000)
const echo = { name: 'echo', arguments: { text } }
const slow = { name: 'slow', arguments: { text } }
const big = { name: 'big', arguments: { bytes: 8_000_000 } }

const times = <T>(count: number, make: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => make(n)))

interface Counted {
  readonly acme: AcmeGateway
  readonly memory: MemoryAccount
  /** Bytes beyond those of a gateway at rest. */
  held(): number
  untilHeld(bytes: number): Promise<unknown>
}

type Storm = (counted: Counted, client: LegacyClient, t: Test) => Promise<void>

/** What remains counted are the lists of its upstream. */
async function countedGateway(t: Test, options: AcmeGatewayOptions = {}): Promise<Counted> {
  const memory = createMemoryAccount(1024 * 1024 * 1024)
  const acme = await acmeGateway(t, { ...options, overrides: { memory } })
  await acme.gateway.warm()
  const atRest = memory.held
  const held = (): number => memory.held - atRest
  return { acme, memory, held, untilHeld: (bytes) => until(`${bytes} are held`, () => held() >= bytes) }
}

/** Calls that are under way, and what ends them for their client. */
async function underWay({ acme, untilHeld }: Counted, start: (signal: AbortSignal) => Promise<unknown>) {
  const stop = new AbortController()
  const before = acme.upstream.server.calls('slow')
  const calls = times(10, () => start(stop.signal).catch(() => undefined))
  await until('they are at the upstream', () => acme.upstream.server.calls('slow') === before + 10)
  await untilHeld(10 * text.length)
  return { calls, stop }
}

/** A request as bytes, on a connection that is not read. */
function unread(t: Test, { acme }: Counted, headers: object, body: string) {
  const socket = dial(acme.port).pause()
  t.teardown(() => socket.destroy())
  const lines = Object.entries({
    host: `127.0.0.1:${acme.port}`,
    ...headers,
    'content-length': Buffer.byteLength(body)
  })
  const head = lines.map(([name, value]) => `${name}: ${String(value)}\r\n`).join('')
  socket.write(`POST /t/acme/mcp HTTP/1.1\r\n${head}\r\n${body}`)
  return socket
}

const rpc = (method: string, params: unknown, id: unknown = 'raw'): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params })

const storms: Readonly<Record<string, Storm>> = {
  async 'requests that are answered, as JSON and as a stream'({ acme }, client) {
    await times(20, () => client.request('tools/call', echo))
    await times(5, () => client.request('tools/call', big, { headers: { accept: 'application/json' } }))
    await times(5, () => client.request('tools/call', big, { headers: { accept: 'text/event-stream' } }))
    await times(20, () => modernRequest(acme.url(), 'tools/call', echo, { token }))
    const meta = { progressToken: 'p', 'io.modelcontextprotocol/logLevel': 'debug' }
    const progress = { name: 'progress', arguments: { steps: 200, text } }
    await times(10, () => modernRequest(acme.url(), 'tools/call', progress, { token, meta }))
    await times(10, () => client.request('tools/call', { ...progress, _meta: { progressToken: 'p' } }))
  },

  async 'requests that are refused'({ acme }, client, t) {
    const headers = client.headers
    const statuses = await times(9, async (n) => {
      const [changed, body] = [
        [{}, '{"jsonrpc":'],
        [{}, `[${'{},'.repeat(60_000)}{}]`],
        [{ 'mcp-session-id': 'x'.repeat(43) }, rpc('tools/call', echo)],
        [{ authorization: 'Bearer none' }, rpc('tools/call', echo)],
        [{ 'content-type': 'text/plain' }, rpc('tools/call', echo)],
        [{ accept: 'image/png' }, rpc('tools/call', echo)],
        [{}, rpc('tools/call', { name: 'none', arguments: { text } })],
        [{}, rpc('ping', { text: 'x'.repeat(5_000_000) })],
        [{}, JSON.stringify({ text })]
      ][n] as [object, string]
      return (await send(acme.url(), { headers: { ...headers, ...changed }, body })).status
    })
    t.same(statuses, [400, 400, 404, 401, 415, 406, 200, 413, 400])
    t.equal((await modernRequest(acme.url(), 'tools/call', { name: 'none', text }, { token })).status, 200)
  },

  async 'bodies that break off'(counted, client, t) {
    for (let at = 0; at < 10; at++) {
      const socket = unread(t, counted, client.headers, rpc('tools/call', echo))
      socket.destroy()
    }
    const body = rpc('tools/call', echo)
    const sockets = Array.from({ length: 10 }, () => dial(counted.acme.port))
    for (const socket of sockets)
      socket.write(
        `POST /t/acme/mcp HTTP/1.1\r\nhost: 127.0.0.1:${counted.acme.port}\r\nauthorization: Bearer ${token}\r\n` +
          `content-type: application/json\r\naccept: application/json, text/event-stream\r\n` +
          `content-length: ${body.length}\r\n\r\n${body.slice(0, 50_000)}`
      )
    await counted.untilHeld(10 * body.length)
    for (const socket of sockets) socket.destroy()
  },

  async 'calls whose client goes'(counted, client) {
    const { acme } = counted
    const legacy = await underWay(counted, (signal) => client.request('tools/call', slow, { signal }))
    legacy.stop.abort()
    await legacy.calls
    const modern = await underWay(counted, (signal) => modernRequest(acme.url(), 'tools/call', slow, { token, signal }))
    modern.stop.abort()
    await modern.calls
    acme.upstream.server.release()
  },

  async 'long answers whose client goes while they are written'(counted, client) {
    const url = counted.acme.url()
    // What one session has not read counts against its next requests.
    const other = await legacyClient(url, token, '2025-11-25', {})
    const asks = [
      (n: number) => ({
        headers: { ...client.headers, accept: 'application/json' },
        body: rpc('tools/call', big, `json ${n}`)
      }),
      (n: number) => ({
        headers: { ...other.headers, accept: 'text/event-stream' },
        body: rpc('tools/call', big, `stream ${n}`)
      }),
      () => modernMessage('tools/call', big, { token })
    ]
    for (const ask of asks) {
      const stop = new AbortController()
      const { signal } = stop
      // Nothing of the answers is read, or one of them would be over before the next one is there.
      const calls = times(6, (n) =>
        open(url, { method: 'POST', ...ask(n), signal }).then(
          (response) => response.on('error', () => {}),
          () => undefined
        )
      )
      await counted.untilHeld(3 * 7_000_000)
      stop.abort()
      await calls
    }
    await other.end()
  },

  async 'calls that are cancelled'(counted, client) {
    let id = 1_000
    const { calls } = await underWay(counted, (signal) => client.request('tools/call', slow, { id: ++id, signal }))
    await times(10, (n) => client.notify('notifications/cancelled', { requestId: 1_001 + n }))
    await calls
  },

  async 'calls whose upstream goes'(counted, client, t) {
    const { calls } = await underWay(counted, () => client.request('tools/call', slow))
    counted.acme.upstream.cut()
    for (const answer of await calls) t.match(answer, { json: { error: {} } })
  },

  async 'upstreams that break off, send too much or no JSON'({ acme }, client, t) {
    const { upstream } = acme
    for (const accept of ['application/json', 'text/event-stream'])
      for (const end of ['cut', 'garbled', 'long'] as const) {
        upstream.override(isCall('echo'), (response) => {
          response.writeHead(200, { 'content-type': accept })
          response.write(accept === 'application/json' ? '{"result":"' : 'data: {"result":"')
          for (let at = 0; at < (end === 'long' ? 200 : 10); at++) response.write(text)
          if (end === 'garbled') response.end('\n\n')
          else if (end === 'cut') setImmediate(() => response.destroy())
        })
        t.match((await client.request('tools/call', echo)).json, { error: { data: { reason: /upstream/ } } })
      }
  },

  async 'answers that nobody reads'(counted, client, t) {
    const modern = modernMessage('tools/call', big, { token })
    const sockets = [
      unread(t, counted, { ...client.headers, accept: 'application/json' }, rpc('tools/call', big, 1)),
      unread(t, counted, { ...client.headers, accept: 'text/event-stream' }, rpc('tools/call', big, 2)),
      unread(t, counted, modern.headers, modern.body),
      unread(t, counted, { ...modern.headers, accept: 'text/event-stream' }, modern.body)
    ]
    await counted.untilHeld(4 * 7_000_000)
    for (const socket of sockets) socket.destroy()
  },

  async 'sessions over HTTP+SSE'({ acme, untilHeld }, _client, t) {
    const sse = await httpSseClient(acme.url(), token)
    await times(10, (n) => sse.request('tools/call', echo, `echo ${n}`))
    await times(3, (n) => sse.request('tools/call', big, `big ${n}`))
    const post = () => sse.post({ jsonrpc: '2.0', id: 'slow', method: 'tools/call', params: slow })
    times(5, post).catch(() => {})
    await untilHeld(text.length)
    sse.close()
    const deaf = await httpSseClient(acme.url(), token)
    t.teardown(() => deaf.close())
    deaf.response.pause()
    await times(2, (n) => deaf.post({ jsonrpc: '2.0', id: n, method: 'tools/call', params: big }))
    await untilHeld(2 * 7_000_000)
    deaf.close()
    acme.upstream.server.release()
  },

  async 'streams that are left and resumed, and subscriptions'({ acme }, client, t) {
    for (let at = 0; at < 3; at++) {
      const stream = await listenEvents(acme.url(), client)
      await client.request('resources/subscribe', { uri: 'test://one' })
      await client.request('tools/call', { name: 'touch', arguments: {} })
      await stream.next('the update', ({ method }) => method === 'notifications/resources/updated')
      stream.cut()
      const again = await listenEvents(acme.url(), client, stream.lastId())
      t.equal(again.status, 200)
      again.cut()
    }
    await client.request('resources/unsubscribe', { uri: 'test://one' })
    await client.request('resources/subscribe', { uri: 'test://two' })
  },

  async 'listen streams'({ acme, untilHeld }) {
    const filter = { notifications: { resourceSubscriptions: ['test://one'], toolsListChanged: true } }
    const streams = await times(10, () =>
      open(acme.url(), { method: 'POST', ...modernMessage('subscriptions/listen', filter, { token }) })
    )
    await untilHeld(10 * 32_768)
    for (const stream of streams) stream.destroy()
  },

  async 'calls that wait for a person'({ acme }, client, t) {
    const capabilities = { elicitation: {} }
    const asks = { name: 'elicit', arguments: { text } }
    const parked = await modernRequest(acme.url(), 'tools/call', asks, { token, capabilities })
    t.match(parked.json.result, { resultType: 'input_required' })
    const { inputRequests, requestState } = parked.json.result
    const inputResponses = Object.fromEntries(
      Object.keys(inputRequests).map((key) => [key, { action: 'accept', content: { name: 'Ada' } }])
    )
    const done = await modernRequest(
      acme.url(),
      'tools/call',
      { ...asks, inputResponses, requestState },
      { token, capabilities }
    )
    t.match(done.json.result, { content: [{}] })
    await client.request('tools/call', asks)
  }
}

for (const [name, storm] of Object.entries(storms))
  t.test(`nothing stays counted of ${name}`, async (t) => {
    const counted = await countedGateway(t)
    const { acme, held } = counted
    const client = await legacyClient(acme.url(), token, '2025-11-25', {})
    t.ok(held() > 0, 'a session is counted')
    await storm(counted, client, t)
    await client.end()
    await until(`all is given back; ${held()} were held`, () => held() === 0).catch((error: unknown) => {
      t.equal(held(), 0, String(error))
    })
  })

t.test('where the system knows of no containers, the memory of the machine is what there is', async (t) => {
  t.equal(availableMemory(0, 1_000), 1_000)
  t.equal(availableMemory(500, 1_000), 500)
  t.equal(availableMemory(2 ** 64, 1_000), 1_000, 'a container without a limit')
})

t.test('workers share what one process may use with their primary, which takes 96 MiB', async (t) => {
  const MiB = 1024 * 1024
  t.equal(memoryOfWorker(1_096 * MiB, 2), 500 * MiB)
  t.equal(memoryOfWorker(undefined, 2), Math.floor((Math.floor(availableMemory() * 0.75) - 96 * MiB) / 2))
})

t.test('where no ceiling is configured, it is three quarters of the memory that there is', async (t) => {
  const GiB = 1024 * 1024 * 1024
  // Of a tenant: a half of what the process may hold, which is what the ceiling leaves.
  const limit = (...of: Parameters<typeof memoryAccountOfProcess>) => memoryAccountOfProcess(...of).ofTenant('a').limit
  t.equal(limit(undefined, GiB), limit(GiB * 0.75))
  t.ok(limit(undefined, GiB) < limit(GiB), 'not all of it')
  t.ok(limit(undefined, GiB) > limit(GiB * 0.7), 'and no less')
})

t.test('what callers hold who are not known yet counts once for all', async (t) => {
  const account = createMemoryAccount(4_000)
  const [strangers, known] = [account.share('', ''), account.share('acme', 'ada')]
  t.ok(strangers.take(1_000))
  t.equal(account.held, 1_000)
  t.ok(known.take(1_000))
  t.ok(strangers.has(0), 'what others hold is not theirs')
  strangers.move(-1_000)
  known.move(-1_000)
  t.equal(account.held, 0)
})

t.test('nothing stays counted of calls that take too long', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const late = { type: 'http', url: upstream.url, timeoutMs: 2_000 }
  const { acme, held } = await countedGateway(t, { upstreams: { up: late } })
  const client = await legacyClient(acme.url(), token)
  for (const { json } of await times(10, () => client.request('tools/call', slow)))
    t.match(json, { error: { data: { reason: 'upstream_timeout' } } })
  for (const { json } of await times(10, () => modernRequest(acme.url(), 'tools/call', slow, { token })))
    t.match(json, { error: { data: { reason: 'upstream_timeout' } } })
  await client.end()
  await until('all is given back', () => held() === 0)
})

t.test('nothing stays counted of calls that the drain ends', async (t) => {
  const { acme, held, untilHeld } = await countedGateway(t, { limits: { drainMs: 100 } })
  const stopped = times(10, () => modernRequest(acme.url(), 'tools/call', slow, { token }))
  await until('they are at the upstream', () => acme.upstream.server.calls('slow') === 10)
  await untilHeld(10 * text.length)
  await acme.close()
  for (const { json } of await stopped) t.match(json, { error: { data: { reason: 'shutting_down' } } })
  await until('all is given back', () => held() <= 0)
})

t.test('a stream of an upstream that only says that it is alive takes no memory', async (t) => {
  const memory = createMemoryAccount(4 * 1024 * 1024)
  const acme = await acmeGateway(t, { overrides: { memory } })
  const client = await legacyClient(acme.url(), token)
  const call = async (before: string) => {
    acme.upstream.override(isCall('slow'), (response, { message }) => {
      const result = { content: [{ type: 'text', text: 'done' }] }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`${before}data: ${JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result })}\n\n`)
    })
    return (await client.request('tools/call', { name: 'slow', arguments: {} })).json
  }
  t.match(await call(': still at work\n\n'.repeat(100_000)), { result: { content: [{ text: 'done' }] } })
  t.match(await call(`data: {"text":"${text.repeat(10)}`), { error: { data: { reason: 'too_many' } } })
})

t.test(
  'a call that was made, whose answer has no room, is not answered by a status that invites to repeat it',
  async (t) => {
    const memory = createMemoryAccount(4 * 1024 * 1024)
    const acme = await acmeGateway(t, { overrides: { memory } })
    const client = await legacyClient(acme.url(), token)
    const call = (bytes: number) => client.request('tools/call', { name: 'big', arguments: { bytes } })
    t.match((await call(1_000)).json, { result: {} })
    for (const bytes of [600_000, 2_000_000]) {
      const { status, headers, json } = await call(bytes)
      t.match([status, headers['retry-after']], [200, undefined])
      t.match(json, { error: { message: /memory/, data: { reason: 'too_many', outcome: 'unknown' } } })
    }
  }
)

t.test('a refusal for want of memory takes none', async (t) => {
  const memory = createMemoryAccount(4 * 1024 * 1024)
  const acme = await acmeGateway(t, { overrides: { memory } })
  const client = await legacyClient(acme.url(), token)
  const before = memory.held
  const large = { name: 'echo', arguments: { text: 'x'.repeat(1_000_000) } }
  const answers = await times(10, () => client.request('tools/call', large))
  for (const { status, json } of answers) {
    t.equal(status, 429)
    t.match(json, { error: { message: /memory.*limits\.memoryBytes/, data: { reason: 'too_many' } } })
  }
  t.match((await client.request('tools/call', { name: 'echo', arguments: {} })).json, { result: {} })
  await until('none is held', () => memory.held <= before)
  const modern = await modernRequest(acme.url(), 'tools/call', large, { token })
  t.equal(modern.status, 429)
  t.equal((await send(acme.url(), { headers: jsonHeaders, body: '{}' })).status, 401)
})

/**
 * Takes what ada, or all callers of the tenant together, may hold, but for so many bytes.
 * @returns gives it back
 */
function leave(memory: MemoryAccount, whose: 'this caller' | 'the tenant of this caller', bytes: number): () => void {
  const { limit, used } = memory.ofTenant('acme')
  const ada = personKeyOf({ tenant: tenantId('acme'), issuer: `${reservedIssuerPrefix}key`, subject: 'ada' })
  const [share, most] =
    whose === 'this caller'
      ? [memory.share('acme', ada), limit / 2]
      : [memory.share('acme', 'somebody else'), limit - used]
  share.move(most - bytes)
  return () => share.move(bytes - most)
}

/** What the request for it takes, and some more, but no session besides. */
const roomForRequest = 44_000

for (const whose of ['this caller', 'the tenant of this caller'] as const)
  t.test(`a session is refused where ${whose} has no memory left for it, and opened once there is room`, async (t) => {
    const { acme, memory, held } = await countedGateway(t)
    const open = (key: string = token) =>
      send(acme.url(), { headers: { ...jsonHeaders, authorization: `Bearer ${key}` }, body: initializeBody() })
    const giveBack = leave(memory, whose, roomForRequest)
    const before = held()
    const { status, headers, json } = await open()
    t.equal(status, 429)
    t.match(json, { id: 1, error: { data: { reason: 'too_many' } } })
    t.ok(json.error.message.startsWith(`The session would need more memory than is left for ${whose}: `))
    t.notOk(headers['mcp-session-id'])
    await until('nothing is held of it', () => held() === before)
    t.equal((await open(keyOf.bob)).status, whose === 'this caller' ? 200 : 429, 'another caller')
    giveBack()
    t.equal((await open()).status, 200)
  })

t.test('what waits for a person counts for its caller, and is refused where that has no memory for it', async (t) => {
  const { acme, memory, held } = await countedGateway(t)
  // Four bytes as they come, and 21 characters as they are kept.
  const numbers = `{"numbers":[${Array(3_000).fill('1e20').join()}]}`
  const schema = '{"type":"object","properties":{}}'
  const question = `"method":"elicitation/create","params":{"message":"who?","requestedSchema":${schema},"_meta":${numbers}}`
  /** The upstream asks, and says in its result what it was told. */
  const call = async (key: string, more = {}) => {
    const options = { token: key, capabilities: { elicitation: {} } }
    return (await modernRequest(acme.url(), 'tools/call', { name: 'elicit', arguments: {}, ...more }, options)).json
  }
  const calls = new Map<unknown, ServerResponse>()
  const write = (response: ServerResponse, said: object): boolean =>
    response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...said })}\n\n`)
  acme.upstream.override(
    isCall('elicit'),
    (response, { message: call }) => {
      const id = `question of ${String(call?.['id'])}`
      calls.set(id, response.writeHead(200, { 'content-type': 'text/event-stream' }))
      response.write(`data: {"jsonrpc":"2.0","id":"${id}",${question}}\n\n`)
    },
    Infinity
  )
  acme.upstream.override(
    ({ message: answer }) => calls.has(answer?.['id']),
    (response, { message: answer }) => {
      response.writeHead(202).end()
      const id = Number(String(answer?.['id']).replace('question of ', ''))
      const told = JSON.stringify(answer?.['error'] ?? answer?.['result'])
      write(calls.get(answer?.['id']) as ServerResponse, { id, result: { content: [{ type: 'text', text: told }] } })
    },
    Infinity
  )

  const giveBack = leave(memory, 'this caller', roomForRequest + 100_000)
  const refused = await call(keyOf.ada)
  t.match(refused.result?.content?.[0]?.text, /Too much waits for clients to answer.*too_many/, 'the upstream is told')
  t.match((await call(keyOf.bob)).result, { resultType: 'input_required' }, 'that of another caller waits')
  giveBack()
  const before = held()
  const waiting = await call(keyOf.ada)
  t.match(waiting.result, { resultType: 'input_required' }, 'and so does the same call, once there is room')
  const { inputRequests, requestState } = waiting.result
  const answer = { action: 'accept', content: { name: 'Ada' } }
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]))
  t.match((await call(keyOf.ada, { inputResponses, requestState })).result, { content: [{ text: /Ada/ }] })
  await until('it is given back', () => held() <= before)
})
