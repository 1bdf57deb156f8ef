// What sessions cost in memory: many idle ones with a GET stream each, and whether anything stays of those that came
// and went. A real gateway process with a store in a file; it collects its garbage before each figure.

import { once } from 'node:events'
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Pool } from 'undici'
import { envelope, initializeParams, modernRevision, request, toolCall } from './messages.ts'
import type { Held } from './memory-probe.ts'
import type { Section } from './report.ts'
import { createStage, type Peer, type Stage } from './stage.ts'

export interface Memory {
  readonly section: Section
  readonly figures: Readonly<Record<string, unknown>>
}

export interface MemoryOptions {
  /** Idle sessions at once. */
  readonly sessions: number
  /** Sessions opened and abandoned; 0: that question is left out. */
  readonly abandoned: number
}

interface House extends Peer {
  readonly stage: Stage
  readonly pool: Pool
}

/** A caller may have 100 listen streams, so that there have to be several of them. */
const listensPerCaller = 50
const keyOf = (n: number): string => `gh_bench_key_0123456789abcdef_${n}`
const path = '/t/bench/mcp'
/** Enough for sessions and upstream connections of a round to run out, with their sweepers. */
const idleMs = 1_000
const settleMs = 3_000
const quickLimits = { sessionIdleMs: idleMs }
const rounds = 10
const atOnce = 32

export async function memory({ sessions, abandoned }: MemoryOptions): Promise<Memory> {
  const stage = await createStage()
  try {
    const { origin: upstream } = await stage.peer('peers/upstream.ts', 'ends')
    const start = (name: string, limits: Record<string, number>, upstreamIdleMs: number): Promise<House> =>
      startHouse(
        stage,
        name,
        limits,
        { type: 'http', url: `${upstream}/legacy/4`, idleMs: upstreamIdleMs },
        2 * sessions
      )
    const idle = await idleSessions(await start('idle', {}, 600_000), sessions)
    const listens = await idleListens(await start('listens', {}, 600_000), sessions)
    const rowOf = (what: string, { rss, heap }: Each): string[] => [what, rss.toFixed(1), heap.toFixed(1), '25', '40']
    const rows = [
      rowOf('an idle session with a GET stream', idle.listening),
      rowOf('the same after one call', idle.called),
      rowOf('a subscriptions/listen', listens)
    ]
    const growth =
      abandoned > 0 ? await openAndAbandon(await start('abandoned', quickLimits, idleMs), abandoned) : undefined
    const notes = growth === undefined ? [] : [growthNote(abandoned, growth)]
    const head = [`W7: memory, ${sessions} of each`, 'KiB RSS each', 'KiB heap each', 'aim', 'at least']
    return { section: { head, rows, notes }, figures: { ...idle, listens, growth } }
  } finally {
    await stage.close()
  }
}

const growthNote = (sessions: number, { heapMiB, bytesPerSession }: Growth): string =>
  `${sessions} sessions with a call each, opened and abandoned: heap ` +
  `${heapMiB.map((value) => value.toFixed(1)).join(' ')} MiB after each tenth, ` +
  `${bytesPerSession.toFixed(0)} bytes per session over the second half.`

interface Each {
  readonly rss: number
  readonly heap: number
}

/** KiB per session: listening, and after a call has opened each its connection to the upstream. */
async function idleSessions(house: House, sessions: number): Promise<{ listening: Each; called: Each }> {
  const opened: Array<Readonly<Record<string, string>>> = []
  const streams: ClientRequest[] = []
  const openAll = async (): Promise<Held> => {
    await many(sessions, async () => {
      const headers = await open(house)
      streams.push(await openStream(house, 'GET', headers))
      opened.push(headers)
    })
    return await held(house)
  }
  const callAll = async (from: number): Promise<Held> => {
    await many(sessions, (n) => call(house, opened[from + n] ?? {}))
    return await held(house)
  }
  // What the process takes once is no cost of a session: code, the space of young objects, the cache of the store.
  const first = await openAll()
  const listening = eachOf(first, await openAll(), sessions)
  const firstCalled = await callAll(0)
  const connection = eachOf(firstCalled, await callAll(sessions), sessions)
  const called = { rss: listening.rss + connection.rss, heap: listening.heap + connection.heap }
  for (const stream of streams) stream.destroy()
  await house.pool.close()
  await house.stage.stop(house.child)
  return { listening, called }
}

const eachOf = (before: Held, now: Held, count: number): Each => ({
  rss: (now.rss - before.rss) / count / 1024,
  heap: (now.heapUsed + now.external - before.heapUsed - before.external) / count / 1024
})

/** KiB per listen stream, each on a socket of its own. */
async function idleListens(house: House, count: number): Promise<Each> {
  const body = request(1, 'subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: envelope })
  const streams: ClientRequest[] = []
  let callers = 0
  const open = async (): Promise<void> => {
    const headers = {
      ...headersOf(callers++ % Math.ceil((2 * count) / listensPerCaller)),
      'mcp-protocol-version': modernRevision,
      'mcp-method': 'subscriptions/listen'
    }
    streams.push(await openStream(house, 'POST', headers, body))
  }
  await many(count, open)
  const before = await held(house)
  await many(count, open)
  const now = await held(house)
  for (const stream of streams) stream.destroy()
  await house.pool.close()
  await house.stage.stop(house.child)
  return eachOf(before, now, count)
}

interface Growth {
  readonly heapMiB: readonly number[]
  readonly rssMiB: readonly number[]
  readonly bytesPerSession: number
}

/** The heap after each round of sessions that nobody ended, and its slope by least squares, in bytes per session. */
async function openAndAbandon(house: House, sessions: number): Promise<Growth> {
  const samples: Held[] = []
  for (let round = 0; round < rounds; round++) {
    await many(sessions / rounds, async () => {
      await call(house, await open(house))
    })
    await wait(idleMs + settleMs)
    samples.push(await held(house))
  }
  await house.pool.close()
  const mib = (bytes: number): number => bytes / 1024 / 1024
  return {
    heapMiB: samples.map(({ heapUsed, external }) => mib(heapUsed + external)),
    rssMiB: samples.map(({ rss }) => mib(rss)),
    // The first half fills bounded caches and compiles code.
    bytesPerSession:
      slope(samples.slice(rounds / 2).map(({ heapUsed, external }) => heapUsed + external)) / (sessions / rounds)
  }
}

function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const [over, under] = values.reduce(
    ([over, under], value, at) => [over + (at - middle) * (value - mean), under + (at - middle) ** 2],
    [0, 0] as [number, number]
  )
  return over / under
}

async function many(count: number, run: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < count) await run(next++)
    })
  )
}

/** Of the caller with this number. */
const headersOf = (caller: number): Record<string, string> => ({
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  authorization: `Bearer ${keyOf(caller)}`
})

/** @returns the headers of a session that is ready */
async function open(house: House): Promise<Record<string, string>> {
  const headers = headersOf(0)
  const hello = await post(
    house,
    headers,
    JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: initializeParams })
  )
  if (hello.sessionId === undefined) throw new Error(`initialize: ${hello.text}`)
  const session = { ...headers, 'mcp-session-id': hello.sessionId, 'mcp-protocol-version': '2025-11-25' }
  await post(house, session, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
  return session
}

async function call(house: House, headers: Readonly<Record<string, string>>): Promise<void> {
  const { text } = await post(house, headers, toolCall(1, 'json__echo'))
  if (!text.includes('"result"')) throw new Error(`tools/call: ${text}`)
}

async function post(
  { pool }: House,
  headers: Readonly<Record<string, string>>,
  body: string
): Promise<{ sessionId: string | undefined; text: string }> {
  const response = await pool.request({ path, method: 'POST', headers, body })
  const text = await response.body.text()
  if (response.statusCode >= 300) throw new Error(`${response.statusCode} ${text}`)
  return { sessionId: response.headers['mcp-session-id'] as string | undefined, text }
}

/** On a socket of its own, which stays open. */
async function openStream(
  { origin }: House,
  method: string,
  headers: Readonly<Record<string, string>>,
  body?: string
): Promise<ClientRequest> {
  const accept = method === 'GET' ? { accept: 'text/event-stream' } : {}
  const stream = httpRequest(`${origin}${path}`, { method, agent: false, headers: { ...headers, ...accept } })
  stream.end(body)
  const [response] = (await once(stream, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`${method}: ${response.statusCode}`)
  stream.on('error', () => {}) // Our own end of it, or the gateway's.
  response.on('error', () => {}).resume()
  return stream
}

async function held({ child }: House): Promise<Held> {
  const answer = once(child, 'message')
  child.send('held')
  const [now] = (await answer) as [Held]
  return now
}

async function startHouse(
  stage: Stage,
  name: string,
  limits: Readonly<Record<string, number>>,
  upstream: Readonly<Record<string, unknown>>,
  sessions: number
): Promise<House> {
  const keys = Array.from({ length: Math.ceil(sessions / listensPerCaller) }, (_, n) => ({
    name: `bench-${n}`,
    key: keyOf(n)
  }))
  const config = { limits, tenants: { bench: { auth: { keys }, upstreams: { json: upstream } } } }
  const flags = ['--expose-gc', '--import', join(import.meta.dirname, 'memory-probe.ts')]
  const peer = await stage.gateway(name, config, { flags, ipc: true })
  return { ...peer, stage, pool: new Pool(peer.origin, { connections: atOnce, pipelining: 1 }) }
}
