// Attack: up to two thousand connections, on each of which a request comes at the same moment. In one turn of the event
// loop all of them can be ready.

import type { Socket } from 'node:net'
import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'

/** In one go, each of these takes several times as long. Node reads and parses all that is ready in one turn. */
const maxTurnMs = 130
const connections = 2_000
/** The longest time that connections are opened, in milliseconds: one that is silent for 10 s is answered 408. */
const openingMs = 5_000

const gateway = await attacked(t, {
  // None is refused because it waits: test/abuse/overload.test.ts.
  limits: { requestsPerSecondPerPrincipal: 100_000, requestsPerSecondPerTenant: 100_000, queueMs: 300_000 },
  watchTurns: true
})
const { host, port } = new URL(gateway.origin)
const session = await legacyClient(gateway.url, keys.attacker)
const { headers: ofModern } = modernMessage('tools/list', {}, { token: keys.attacker })

interface Opened {
  readonly socket: Socket
  status(): string
}

function open(): Promise<Opened> {
  const socket = dial(Number(port))
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve({ socket, status: () => text.slice(9, 12) }))
    socket.once('error', reject)
  })
}

const requestOf = (headers: object, body: string): string =>
  `POST /t/acme/mcp HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n` +
  `${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n${body}`

interface Burst {
  readonly status: string
  request(id: number): string
}

const bursts: Record<string, Burst> = {
  'of a session': {
    status: '200',
    request: (id) => requestOf(session.headers, JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' }))
  },
  'of 2026-07-28': {
    status: '200',
    request: (id) => requestOf(ofModern, modernMessage('tools/list', {}, { id }).body)
  },
  'with a bad token': {
    status: '401',
    request: () => requestOf({ ...ofModern, authorization: 'Bearer nobody_0123456789' }, '{}')
  }
}

/** @returns with which status codes they were answered */
async function burst({ request }: Burst): Promise<Set<string>> {
  const all: Opened[] = []
  const began = performance.now()
  while (all.length < connections && performance.now() - began < openingMs)
    all.push(...(await Promise.all(Array.from({ length: 100 }, open))))
  await gateway.pause()
  all.forEach(({ socket }, id) => socket.write(request(id)))
  gateway.signal('SIGCONT')
  await until('all are answered', () => all.every((each) => each.status().length === 3), 60_000)
  for (const { socket } of all) socket.destroy()
  return new Set(all.map((each) => each.status()))
}

for (const [what, requests] of Object.entries(bursts))
  t.test(`up to ${connections} requests ${what} that come at once are answered, and stall nobody`, async (t) => {
    await burst(requests)
    const ms = await gateway.longestTurnMs(maxTurnMs, async () =>
      t.same(await burst(requests), new Set([requests.status]))
    )
    t.ok(ms < maxTurnMs, `the longest turn took ${ms} ms of CPU`)
  })

t.test('while the requests of one tenant wait, those of another do not wait for all of them', async (t) => {
  const neighbour = await legacyClient(gateway.neighbourUrl, keys.neighbour)
  const own = await open()
  const ask = (id: number): string =>
    requestOf(neighbour.headers, JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })).replace(
      '/t/acme/',
      '/t/other/'
    )
  own.socket.write(ask(1))
  await until('the neighbour is known on its connection', () => own.status() === '200')
  const all: Opened[] = []
  const { request } = bursts['of a session'] as Burst
  while (all.length < 1_000) all.push(...(await Promise.all(Array.from({ length: 100 }, open))))
  all.forEach(({ socket }, id) => socket.write(request(id)))
  await until('the attacker is known on its connections', () => all.every((each) => each.status() !== ''), 60_000)
  let answered = 0
  let before: number | undefined
  for (const { socket } of all) socket.once('data', () => answered++)
  own.socket.once('data', () => (before = answered))
  await gateway.pause()
  all.forEach(({ socket }, id) => socket.write(request(id)))
  own.socket.write(ask(2))
  gateway.signal('SIGCONT')
  await until('all are answered', () => answered === all.length, 60_000)
  t.ok(before !== undefined && before < all.length / 2, `${before} were answered before it`)
  for (const { socket } of [own, ...all]) socket.destroy()
})

t.test(
  'bodies of requests that come at once on many connections, one behind the other, are not all held',
  async (t) => {
    const memoryBytes = 600 * 1024 * 1024
    const small = await attacked(t, { limits: { memoryBytes } })
    const { host: own, port: ownPort } = new URL(small.origin)
    const { headers } = await legacyClient(small.url, keys.attacker)
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { pad: 'x'.repeat(60_000) } })
    const request = requestOf(headers, body).replace(host, own).repeat(60)
    let read = 0
    const sockets = Array.from({ length: 400 }, () => {
      const socket = dial(Number(ownPort))
      // A session may use an id once at a time: 400 says that the body was read.
      socket.on(
        'data',
        (part: Buffer) => (read += part.toString('latin1').match(/HTTP\/1.1 (?:200|400)/g)?.length ?? 0)
      )
      socket.write(request)
      return socket
    })
    await until('many of them are read', () => read > 1_000, 60_000)
    for (const socket of sockets) socket.destroy()
    t.ok(small.peakMemory() < memoryBytes, `${small.peakMemory()} bytes`)
  }
)
