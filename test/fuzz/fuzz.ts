// A fuzz run: the gateway in a process of its own, hostile upstreams of every kind behind it, clients of every kind in
// front, until the time is over. It must not end, not stand still, not fail by a fault of its own, and hold no more
// memory in the end than it did after the first part.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gatehouse, logLine, type Running } from '../e2e/kit/process.ts'
import { legacyClient } from '../kit/client.ts'
import { withCompiledCode } from '../kit/compiled-code.ts'
import type { Teardown } from '../kit/listen.ts'
import { until } from '../kit/until.ts'
import { clientKinds, converse, rawBytes, type ClientKind, type Outcome } from './clients.ts'
import type { Ports } from './hostile-http-server.ts'
import type { Measurement } from './loop-delay.ts'
import { random } from './random.ts'

export const upstreamKinds = ['streamable', 'sse', 'modern', 'stdio', 'modernstdio'] as const
export type UpstreamKind = (typeof upstreamKinds)[number]

export interface Fuzzed {
  readonly conversations: number
  /** Results that clients got, by `client to upstream`: without any, nothing would have been tried. */
  readonly results: ReadonlyMap<string, number>
  /** Errors of the gateway's own making, as clients got them or as the log has them; at most ten. */
  readonly faults: readonly string[]
  /** Of the longest turn of the event loop, in ms of CPU. */
  readonly stallMs: number
  /** What is still held at the end beyond what was held after the first part, in bytes; at least 0. */
  readonly growthBytes: number
  /** The gateway still answers a caller who does nothing wrong, and then stops cleanly. */
  readonly isAlive: boolean
}

export interface FuzzOptions {
  readonly seed: number
  readonly ms: number
  /** Conversations at once. */
  readonly workers?: number
  /** So many conversations at the most while a pair has no result, however long they take. */
  readonly forEachPair?: number
}

type Pair = readonly [ClientKind, UpstreamKind]
const pairs: readonly Pair[] = clientKinds.flatMap((client) => upstreamKinds.map((each): Pair => [client, each]))
const nameOf = ([client, upstream]: Pair): string => `${client} to ${upstream}`

/** Of every client at every upstream: those that nothing came of. */
export const pairsWithoutResult = (results: Fuzzed['results']): string[] =>
  pairs.map(nameOf).filter((pair) => (results.get(pair) ?? 0) === 0)

const keys = { fuzz: 'gh_fuzz_key_of_fuzz_0123456789', calm: 'gh_fuzz_key_of_calm_0123456789' } as const
/** Several of each kind, because one that fails at its handshake is left alone for a while. */
const upstreamsPerKind = 3
const faultText = 'a request failed by a fault of the gateway'
/** What may be held in addition: caches that are filling still. */
const settledBytes = 8 * 1024 * 1024

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

async function configOf(t: Teardown, seed: number): Promise<object> {
  const child = fork(pathOf('hostile-http-server.ts'), [String(seed)], { execArgv: [] })
  t.teardown(() => child.kill())
  const [ports] = (await once(child, 'message')) as [Ports]
  const times = { timeoutMs: 700, connectMs: 5_000, idleMs: 3_000 }
  const stdio = (era: string, n: number): object => ({
    command: process.execPath,
    args: [pathOf('hostile-stdio-server.ts'), String(seed + n), era],
    isolation: 'shared',
    ...times
  })
  const definitions: Record<UpstreamKind, (n: number) => object> = {
    streamable: (n) => ({ url: `http://127.0.0.1:${ports.streamable}/mcp?n=${n}`, ...times }),
    sse: (n) => ({ type: 'sse', url: `http://127.0.0.1:${ports.sse}/sse?n=${n}`, ...times }),
    modern: (n) => ({ url: `http://127.0.0.1:${ports.modern}/mcp?n=${n}`, ...times }),
    stdio: (n) => stdio('legacy', n),
    modernstdio: (n) => stdio('modern', n)
  }
  const upstreams: Record<string, object> = {}
  for (const kind of upstreamKinds)
    for (let n = 0; n < upstreamsPerKind; n++) upstreams[`${kind}${n}`] = definitions[kind](n)
  const endpoints = Object.fromEntries(
    Object.keys(upstreams).map((name) => [name, { upstreams: [name], prefix: '' }] as const)
  )
  const calm = { command: process.execPath, args: [pathOf('../kit/stdio-server.ts')] }
  return {
    limits: { sessionIdleMs: 5_000, coldStartMs: 500, drainMs: 2_000 },
    tenants: {
      fuzz: { auth: { keys: [{ name: 'fuzz', key: keys.fuzz }] }, upstreams: withCompiledCode(upstreams), endpoints },
      calm: { auth: { keys: [{ name: 'calm', key: keys.calm }] }, upstreams: withCompiledCode({ calm }) }
    }
  }
}

async function startGateway(t: Teardown, seed: number): Promise<Running> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-fuzz-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'gatehouse.json')
  await writeFile(file, JSON.stringify(await configOf(t, seed)))
  return gatehouse(t, ['serve', '--config', file, '--port', '0'], {
    cwd: folder,
    nodeArgs: ['--expose-gc', '--import', new URL('loop-delay.ts', import.meta.url).href]
  })
}

async function measure(running: Running): Promise<Measurement> {
  const all = (): Measurement[] =>
    running.stderr.map(logLine).filter((line) => line?.['msg'] === 'measured') as unknown as Measurement[]
  const before = all().length
  running.signal('SIGUSR2')
  return await until('the gateway measures itself', () => all()[before])
}

export async function fuzz(t: Teardown, { seed, ms, workers = 6, forEachPair = 0 }: FuzzOptions): Promise<Fuzzed> {
  const running = await startGateway(t, seed)
  const origin = await running.ready
  const end = new AbortController()
  void running.ended.then(() => end.abort())
  const results = new Map<string, number>()
  const faults: string[] = []
  let conversations = 0

  async function one(n: number): Promise<void> {
    const chance = random(seed, n)
    const [client, upstream] = pairs[n % pairs.length] as Pair
    const url = `${origin}/t/fuzz/${upstream}${chance.below(upstreamsPerKind)}/mcp`
    const outcome: Outcome = { results: 0, faults: [] }
    if (chance.chance(0.1)) await rawBytes(chance, { url, key: keys.fuzz })
    await converse(client, chance, { url, key: keys.fuzz }, outcome)
    const pair = nameOf([client, upstream])
    results.set(pair, (results.get(pair) ?? 0) + outcome.results)
    faults.push(...outcome.faults.map((fault) => `conversation ${n}, ${pair}: ${fault}`))
  }
  const isOneMissing = (): boolean => conversations < forEachPair && pairsWithoutResult(results).length > 0
  async function part(partMs: number): Promise<void> {
    const deadline = performance.now() + partMs
    const work = async (): Promise<void> => {
      while ((performance.now() < deadline || isOneMissing()) && !end.signal.aborted) await one(conversations++)
    }
    await Promise.all(Array.from({ length: workers }, work))
  }
  const ended = (): Fuzzed => ({
    conversations,
    results,
    faults: [...faults, ...running.stderr.slice(-5)],
    stallMs: 0,
    growthBytes: 0,
    isAlive: false
  })

  // What is compiled and loaded on the way is no growth, nor is it a stall of a message.
  await measure(running)
  await part(ms / 3)
  if (end.signal.aborted) return ended()
  const first = await measure(running)
  await part((ms * 2) / 3)
  if (end.signal.aborted) return ended()
  let last = await measure(running)
  const stallMs = Math.max(first.stallMs, last.stallMs)
  // Sessions that nobody ended expire first.
  const isSettled = async (): Promise<boolean> => {
    last = await measure(running)
    return last.heapBytes <= first.heapBytes + settledBytes
  }
  await until('what was held is let go of', isSettled, 30_000).catch(() => {})
  const calm = await legacyClient(`${origin}/t/calm/mcp`, keys.calm)
  // Its process may take longer to start than `coldStartMs` on a busy machine.
  const isServed = await until('a caller who does nothing wrong is served', async () => {
    const { json } = await calm.request('tools/call', { name: 'calm__echo', arguments: {} })
    return json?.result !== undefined
  }).catch(() => false)
  const { code } = await running.stop()
  const isFault = (line: Record<string, unknown> | undefined): boolean =>
    line?.['msg'] === faultText || Number(line?.['level'] ?? 0) >= 60
  faults.push(...running.stderr.filter((line) => isFault(logLine(line))))
  return {
    conversations,
    results,
    faults: faults.slice(0, 10),
    stallMs,
    growthBytes: Math.max(0, last.heapBytes - first.heapBytes),
    isAlive: isServed && code === 0
  }
}
