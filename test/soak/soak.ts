// A soak: replicas on a real Redis under a steady, low load of both eras for hours, with sessions that are ended, left
// and broken off. What they hold is measured at intervals: memory after a collection, descriptors, child processes.

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { descendants, type Ended } from '../e2e/kit/process.ts'
import { random, type Random } from '../fuzz/random.ts'
import { canaryServer } from '../kit/canary-server.ts'
import { legacyClient, type Answer } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { descriptors, type Served } from '../kit/process.ts'
import { replicas, type Replicas } from '../kit/replicas.ts'
import { until, type Teardown } from '../kit/until.ts'
import { slope } from './slope.ts'

export interface SoakOptions {
  readonly seed: number
  readonly ms: number
  /** Operations per second, each of which is one request or the life of a session. As many as are due are begun. */
  readonly rate: number
  readonly sampleMs: number
  readonly nodes: number
  /** After which a session that nobody ended expires. */
  readonly sessionIdleMs: number
  readonly onSample?: (sample: Sample) => void
}

/** Of all replicas, each figure in their order. */
export interface Sample {
  /** Since the load began. */
  readonly ms: number
  readonly operations: number
  /** In use after a collection, in bytes. */
  readonly heap: readonly number[]
  /** Resident set, in bytes. */
  readonly resident: readonly number[]
  readonly descriptors: readonly number[]
  /** The guard, which ends what servers leave when the gateway is killed, is one of them from the first start on. */
  readonly children: readonly number[]
}

export interface Soaked {
  readonly operations: number
  /** What was not answered as it should be; at most twenty, and how many in all. */
  readonly failures: readonly string[]
  readonly failed: number
  /** Calls that a child process has answered. */
  readonly ofProcesses: number
  readonly samples: readonly Sample[]
  /** Before the load, and when all its sessions have expired. */
  readonly before: Sample
  readonly after: Sample
  /** Of each replica, in bytes per hour, over the last two thirds of the time. */
  readonly heapPerHour: readonly number[]
  readonly residentPerHour: readonly number[]
  readonly ends: readonly Ended[]
}

const maxListed = 20
/** An operation that takes so long is a failure. */
const longestMs = 60_000

// On USR2 a process collects its garbage and tells what is left.
const measured = {
  NODE_OPTIONS: `--expose-gc --import=data:text/javascript,${encodeURIComponent(
    'process.on("SIGUSR2", () => { gc(); gc(); const { heapUsed, rss } = process.memoryUsage(); console.error(JSON.stringify({ heapUsed, rss })) })'
  )}`
}

export async function soak(t: Teardown, options: SoakOptions): Promise<Soaked> {
  const { seed, ms, rate, sampleMs, sessionIdleMs, onSample } = options
  const [web, modern] = await Promise.all([canaryServer(t), startModern()])
  t.teardown(() => modern.close())
  const small = new URL('../kit/small-server.sh', import.meta.url).pathname
  const rig = await replicas(
    t,
    {
      upstreams: {
        web: { url: web.url, idleMs: 5_000 },
        local: { command: small, idleMs: 5_000 },
        modern: { url: modern.url }
      },
      limits: { sessionIdleMs },
      top: { logLevel: 'warn' }
    },
    Array.from({ length: options.nodes }, () => ({ env: measured }))
  )
  const url = `${rig.origin}/t/acme/mcp`
  const failures: string[] = []
  let [operations, failed] = [0, 0]
  const counts = { ofProcesses: 0 }
  const began = performance.now()
  const sampled = async (): Promise<Sample> => {
    // What the servers of the soak remember is no part of it.
    for (const seen of [web.seen, modern.seen]) seen.length = 0
    const sizes = await Promise.all(rig.nodes.map(memoryOf))
    return {
      ms: performance.now() - began,
      operations,
      heap: sizes.map(({ heapUsed }) => heapUsed),
      resident: sizes.map(({ rss }) => rss),
      descriptors: await Promise.all(rig.nodes.map(({ pid }) => descriptors(pid))),
      children: rig.nodes.map(({ pid }) => descendants(pid).length)
    }
  }

  const before = await sampled()
  const samples: Sample[] = []
  const open = new Set<Promise<void>>()
  for (let nextSample = began + sampleMs; operations < (ms * rate) / 1_000;) {
    const n = operations++
    const one: Promise<void> = visit(url, random(seed, n), n, { sessionIdleMs, counts })
      .catch((error: unknown) => {
        failed++
        if (failures.length < maxListed) failures.push(`operation ${n}: ${String(error)}`)
      })
      .finally(() => open.delete(one))
    open.add(one)
    if (performance.now() >= nextSample) {
      const sample = await sampled()
      samples.push(sample)
      onSample?.(sample)
      nextSample = performance.now() + sampleMs
    }
    await wait(Math.max(0, began + (operations * 1_000) / rate - performance.now()))
  }
  await Promise.all(open)
  await settled(rig, sessionIdleMs)
  const after = await sampled()
  const late = samples.slice(Math.floor(samples.length / 3))
  const perHour = (figure: 'heap' | 'resident'): number[] =>
    rig.nodes.map((_, at) => slope(late.map((sample) => [sample.ms, sample[figure][at] ?? 0])) * 3_600_000)
  const [heapPerHour, residentPerHour] = [perHour('heap'), perHour('resident')]
  const ends = await Promise.all(rig.nodes.map(({ stop }) => stop()))
  return { operations, failures, failed, ...counts, samples, before, after, heapPerHour, residentPerHour, ends }
}

async function memoryOf({ signal, log }: Served): Promise<{ heapUsed: number; rss: number }> {
  const told = () =>
    log().flatMap(({ heapUsed, rss }) => (typeof heapUsed === 'number' ? [{ heapUsed, rss: Number(rss) }] : []))
  const before = told().length
  signal('SIGUSR2')
  return await until('the size of the memory', () => told()[before])
}

/** All sessions have expired, and what they had is gone. */
async function settled({ nodes }: Replicas, sessionIdleMs: number): Promise<void> {
  // Expired sessions are looked for once in every idle time.
  await wait(2 * sessionIdleMs)
  const isQuiet = (): boolean => nodes.every(({ pid }) => descendants(pid).length <= 1)
  await until('no child process is left', isQuiet).catch(() => {})
}

interface Visits {
  readonly sessionIdleMs: number
  readonly counts: { ofProcesses: number }
}

/** @throws Error where an answer is not the right one */
async function visit(url: string, chance: Random, n: number, { sessionIdleMs, counts }: Visits): Promise<void> {
  const canary = `${n} ${randomUUID()}`
  const signal = AbortSignal.timeout(longestMs)
  const ask = (name: string, args: object): Promise<Answer> =>
    modernRequest(url, 'tools/call', { name, arguments: args }, { id: canary, token: key, signal })
  switch (chance.below(8)) {
    case 0:
    case 1:
      return expectText(await ask('web__mirror', { canary, steps: chance.below(3) }), canary)
    case 2:
      return expectText(await ask('modern__echo', { text: canary }), canary)
    case 3:
      return expectText(await modernRequest(url, 'tools/list', {}, { token: key, signal }), 'web__mirror')
    case 4: {
      const stop = new AbortController()
      const call = modernRequest(
        url,
        'tools/call',
        { name: 'web__mirror', arguments: { canary, delayMs: 200 } },
        { id: canary, token: key, signal: stop.signal }
      )
      setTimeout(() => stop.abort(), chance.below(150))
      return await call.then(
        () => {},
        () => {}
      )
    }
    default: {
      const began = performance.now()
      return await live(url, chance, canary, counts).catch((error: unknown) => {
        // Where the machine stood still for so long, the session has expired meanwhile.
        const mayHaveExpired = performance.now() - began > sessionIdleMs
        if (!mayHaveExpired || !/\b404\b/.test(String(error))) throw error
      })
    }
  }
}

/** The life of a session; half of them are never ended. */
async function live(url: string, chance: Random, canary: string, counts: Visits['counts']): Promise<void> {
  const client = await legacyClient(url, key)
  const stream = chance.chance(0.3) ? await client.listen() : undefined
  const call = (name: string, args: object): Promise<Answer> =>
    client.request(
      'tools/call',
      { name, arguments: args, _meta: { progressToken: 1 } },
      { id: canary, signal: AbortSignal.timeout(longestMs) }
    )
  expectText(await call('web__mirror', { canary, steps: chance.below(3) }), canary)
  if (chance.chance(0.3)) {
    expectText(await call('local__pid', {}), '"text"')
    counts.ofProcesses++
  }
  stream?.close()
  if (chance.chance(0.5)) await client.end()
}

function expectText({ status, text }: Answer, part: string): void {
  if (status !== 200 || !text.includes(part) || text.includes('"error"'))
    throw new Error(`not the answer: ${status} ${text.slice(0, 300)}`)
}
