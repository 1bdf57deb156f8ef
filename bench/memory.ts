// What sessions cost in memory: many idle ones with a GET stream each, and whether anything stays of those that came
// and went. A real gateway process with a store in a file; it collects its garbage before each figure.

import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get, type ClientRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { Pool } from 'undici'
import { table } from './figures.ts'
import { initializeParams, toolCall } from './messages.ts'
import type { Held } from './memory-probe.ts'

export interface Memory {
  readonly text: string
  readonly figures: Readonly<Record<string, unknown>>
}

export interface MemoryOptions {
  /** Idle sessions at once. */
  readonly sessions: number
  /** Sessions opened and abandoned. */
  readonly abandoned: number
}

interface House {
  readonly child: ChildProcess
  readonly origin: string
  readonly pool: Pool
}

const apiKey = 'gh_bench_key_0123456789abcdef'
const path = '/t/bench/mcp'
/** Enough for sessions and upstream connections of a round to run out, with their sweepers. */
const idleMs = 1_000
const settleMs = 3_000
const rounds = 10
const atOnce = 32

export async function memory({ sessions, abandoned }: MemoryOptions): Promise<Memory> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  const children: ChildProcess[] = []
  try {
    const upstream = fork(join(import.meta.dirname, 'upstream.ts'))
    children.push(upstream)
    const [upstreamUrl] = (await once(upstream, 'message')) as [string]
    const start = async (name: string, limits: Record<string, number>, upstreamIdleMs: number): Promise<House> => {
      const house = await startGateway(join(folder, name), `${upstreamUrl}/json`, limits, upstreamIdleMs)
      children.push(house.child)
      return house
    }
    const idle = await idleSessions(await start('idle', { sessionsPerPrincipal: 1_000_000 }, 600_000), sessions)
    const growth = await openAndAbandon(
      await start('abandoned', { sessionsPerPrincipal: 1_000_000, sessionIdleMs: idleMs }, idleMs),
      abandoned
    )
    const rows = [
      ['an idle session with a GET stream', idle.listening.rss.toFixed(1), idle.listening.heap.toFixed(1)],
      ['the same after one call', idle.called.rss.toFixed(1), idle.called.heap.toFixed(1)]
    ]
    const text =
      table([`memory, ${sessions} sessions`, 'KiB RSS each', 'KiB heap each'], rows) +
      `${abandoned} sessions with a call each, opened and abandoned: heap ${growth.heapMiB.map((value) => value.toFixed(1)).join(' ')} MiB after each tenth, ` +
      `${growth.bytesPerSession.toFixed(0)} bytes per session over the second half.\n`
    return { text, figures: { ...idle, growth } }
  } finally {
    await Promise.all(children.map(stop))
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Each {
  readonly rss: number
  readonly heap: number
}

/** KiB per session: listening, and after a call has opened each its connection to the upstream. */
async function idleSessions(house: House, sessions: number): Promise<{ listening: Each; called: Each }> {
  // Code that has never run is no cost of a session.
  await many(200, async () => {
    await open(house)
  })
  const before = await held(house)
  const opened: Array<Readonly<Record<string, string>>> = []
  const streams: ClientRequest[] = []
  await many(sessions, async () => {
    const headers = await open(house)
    streams.push(await listen(house, headers))
    opened.push(headers)
  })
  const each = (now: Held): Each => ({
    rss: (now.rss - before.rss) / sessions / 1024,
    heap: (now.heapUsed + now.external - before.heapUsed - before.external) / sessions / 1024
  })
  const listening = each(await held(house))
  await many(sessions, async (n) => {
    await call(house, opened[n] ?? {})
  })
  const called = each(await held(house))
  for (const stream of streams) stream.destroy()
  await house.pool.close()
  await stop(house.child)
  return { listening, called }
}

/** The heap after each round of sessions that nobody ended, and its slope by least squares, in bytes per session. */
async function openAndAbandon(
  house: House,
  sessions: number
): Promise<{ heapMiB: number[]; rssMiB: number[]; bytesPerSession: number }> {
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

async function many(count: number, run: (n: number) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < count) await run(next++)
    })
  )
}

/** @returns the headers of a session that is ready */
async function open(house: House): Promise<Record<string, string>> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${apiKey}`
  }
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

/** A GET stream on a socket of its own, which stays open. */
async function listen({ origin }: House, headers: Readonly<Record<string, string>>): Promise<ClientRequest> {
  const { 'content-type': _none, ...rest } = headers
  const request = get(`${origin}${path}`, { agent: false, headers: { ...rest, accept: 'text/event-stream' } })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`GET: ${response.statusCode}`)
  request.on('error', () => {}) // Our own end of it, or the gateway's.
  response.on('error', () => {}).resume()
  return request
}

async function held({ child }: House): Promise<Held> {
  const answer = once(child, 'message')
  child.send('held')
  const [now] = (await answer) as [Held]
  return now
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

async function startGateway(
  base: string,
  upstreamUrl: string,
  limits: Record<string, number>,
  upstreamIdleMs: number
): Promise<House> {
  writeFileSync(
    `${base}.json`,
    JSON.stringify({
      listen: { host: '127.0.0.1', port: 0 },
      store: `file:${base}.db`,
      limits,
      tenants: {
        bench: {
          auth: { keys: [{ name: 'bench', key: apiKey }] },
          upstreams: { json: { type: 'http', url: upstreamUrl, idleMs: upstreamIdleMs } }
        }
      }
    })
  )
  const log = openSync(`${base}.log`, 'a')
  const child = spawn(
    process.execPath,
    [
      '--expose-gc',
      '--import',
      join(import.meta.dirname, 'memory-probe.ts'),
      join(import.meta.dirname, '..', 'bin', 'gatehouse.mjs'),
      'serve',
      '--config',
      `${base}.json`
    ],
    { stdio: ['ignore', 'pipe', log, 'ipc'] }
  )
  closeSync(log)
  if (child.stdout === null) throw new Error('the gateway has no standard output')
  for await (const line of createInterface({ input: child.stdout })) {
    const [, origin] = /^gatehouse listening on (\S+)$/.exec(line) ?? []
    if (origin !== undefined) return { child, origin, pool: new Pool(origin, { connections: atOnce, pipelining: 1 }) }
  }
  throw new Error(`the gateway ended before it was ready:\n${readFileSync(`${base}.log`, 'utf8')}`)
}
