// Measures one workload: its ways take turns, round after round, so that whatever else the machine does falls on all of
// them alike.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { freePort } from '../test/kit/free-port.ts'
import { findRedis } from '../scripts/programs.ts'
import { findCores } from './cpu.ts'
import { median, quantile } from './figures.ts'
import type { Job, Load } from './load/load.ts'
import { startOtherGateway, wayThrough, type OtherGateway } from './peers/other-gateway.ts'
import { apiKey, createStage, pinned, untilListening, type Peer, type Stage } from './stage.ts'
import { usual, type Way, type Workload } from './workloads.ts'

export interface RoundsOptions {
  readonly rounds: number
  /** Where gateways write a CPU profile when they end. Figures of such a run are not comparable. */
  readonly profile?: string | undefined
  /** Measured in turn with ours, where the reference is the bare proxy. */
  readonly others?: readonly OtherGateway[]
}

export interface Measured {
  readonly workload: Workload
  readonly rounds: number
  /** In the order of the workload. */
  readonly ways: readonly MeasuredWay[]
}

export interface MeasuredWay {
  readonly way: Way
  /** Medians. */
  readonly middleUs: number
  readonly endsUs: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** CPU time in relation to the reference in the same round: median and quartiles. */
  readonly ratio: number
  readonly quartiles: readonly [number, number]
}

const bareBus = ['bare-a', 'bare-b'] as const
const warmMs = 200
const roundMs = 800
/**
 * Of each process: after some ten thousand operations little is compiled any more, so many, which a busy machine takes
 * longer for.
 */
const firstWarm = { operations: 10_000, leastMs: 2_500, mostMs: 8_000 }

/** @throws Error that says what this machine lacks */
export async function measureWorkload(given: Workload, options: RoundsOptions): Promise<Measured> {
  const stage = await createStage()
  try {
    const workload = withOthers(given, options.others ?? [])
    const peers = await startPeers(stage, workload, options)
    const jobs: Job[] = []
    for (const way of workload.ways) jobs.push(await jobOf(stage, workload, way, peers))
    let rate: number | undefined
    for (const job of jobs) {
      await warm(stage, job)
      if (workload.open === true) rate = Math.round((await stage.measure(job)).perSecond / 2)
    }
    const loads: Load[][] = jobs.map(() => [])
    for (let round = 0; round < options.rounds; round++) {
      for (const [at, job] of jobs.entries()) loads[at]?.push(await stage.measure({ ...job, rate }))
    }
    return { workload, rounds: options.rounds, ways: workload.ways.map((way, at) => summary(way, loads, at)) }
  } finally {
    await stage.close()
  }
}

/** Ours stays the last. */
function withOthers(workload: Workload, others: readonly OtherGateway[]): Workload {
  const [first, last] = [workload.ways[0], workload.ways.at(-1)]
  if (first?.via !== 'bare' || last === undefined) return workload
  const ways = others.flatMap((other) => wayThrough(other, last) ?? [])
  return { ...workload, ways: [...workload.ways.slice(0, -1), ...ways, last] }
}

async function warm(stage: Stage, job: Job): Promise<void> {
  const startedAt = performance.now()
  const processes = Math.max(1, job.middle.length)
  for (let operations = 0; ;) {
    operations += (await stage.measure({ ...job, warmMs: 0, ms: 1_000 })).operations
    const elapsedMs = performance.now() - startedAt
    const isHot = operations >= firstWarm.operations * processes && elapsedMs >= firstWarm.leastMs
    if (isHot || elapsedMs >= firstWarm.mostMs * processes) return
  }
}

function summary(way: Way, loads: readonly Load[][], at: number): MeasuredWay {
  const [own = [], reference = []] = [loads[at], loads[0]]
  const middle = (pick: (load: Load) => number): number => median(own.map(pick))
  const ratios = own.map(({ middleUs }, round) => middleUs / (reference[round]?.middleUs ?? Number.NaN))
  return {
    way,
    middleUs: middle(({ middleUs }) => middleUs),
    endsUs: middle(({ endsUs }) => endsUs),
    perSecond: middle(({ perSecond }) => perSecond),
    p50Ms: middle(({ p50Ms }) => p50Ms),
    p99Ms: middle(({ p99Ms }) => p99Ms),
    ratio: median(ratios),
    quartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)]
  }
}

async function startPeers(
  stage: Stage,
  workload: Workload,
  { profile, others = [] }: RoundsOptions
): Promise<ReadonlyMap<string, Peer>> {
  const upstream = await stage.peer('peers/upstream.ts', 'ends')
  const peers = new Map([['direct', upstream]])
  if (workload.name === 'traces') stage.collector = (await stage.peer('peers/collector.ts', 'ends')).origin
  for (const name of ['bare', 'fastify']) {
    if (workload.ways.some(({ via }) => via === name))
      peers.set(name, await stage.peer(`peers/${name}-proxy.ts`, 'middle', [upstream.origin]))
  }
  for (const other of others)
    if (workload.ways.some(({ via }) => via === other.name))
      peers.set(other.name, await startOtherGateway(stage, other, upstream.origin))
  const store = workload.redis === true ? { store: await startRedis(stage) } : {}
  for (const [name, other] of [bareBus, bareBus.toReversed()] as const) {
    if (name !== undefined && workload.ways.some(({ via, owner }) => via === name || owner === name))
      peers.set(
        name,
        await stage.peer('peers/bare-bus.ts', 'middle', [upstream.origin, store.store ?? '', name, other ?? ''])
      )
  }
  const configs = workload.gateways?.(stage, upstream.origin) ?? { gateway: usual(stage, upstream.origin) }
  for (const [name, config] of Object.entries(configs)) {
    const file = `${workload.name}-${name}.cpuprofile`
    const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`, `--cpu-prof-name=${file}`]
    peers.set(name, await stage.gateway(name, { ...config, ...store }, { flags }))
  }
  return peers
}

async function jobOf(
  stage: Stage,
  { connections, times }: Workload,
  { via, path, client, token = 'jwt', sessions = connections, owner }: Way,
  peers: ReadonlyMap<string, Peer>
): Promise<Job> {
  const [peer, server, other] = [peers.get(via), peers.get('direct'), peers.get(owner ?? '')]
  if (peer === undefined || server === undefined) throw new Error(`nothing is called ${via}`)
  const to = async ({ origin }: Peer): Promise<{ url: string; token: string }> => ({
    url: origin + path,
    token:
      token === 'key'
        ? apiKey
        : token === 'jwt'
          ? await stage.issuer.token(origin + path)
          : stage.issuer.opaque(origin + path)
  })
  const target = {
    ...(await to(peer)),
    ...client,
    sessions,
    ...(other === undefined ? {} : { owner: await to(other) })
  }
  const middle = via === 'direct' ? [] : [...peer.pids, ...(other?.pids ?? [])]
  return { target, connections, middle, servers: [server.pid], warmMs, ms: roundMs, ...times }
}

/** @returns its URL */
async function startRedis(stage: Stage): Promise<string> {
  const program = findRedis()
  if (program === undefined) throw new Error('needs redis-server or valkey-server on the PATH')
  const port = await freePort()
  const serve = [program, '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', stage.folder]
  const [command, ...args] = pinned(findCores(), 'ends', serve)
  stage.own(spawn(command, args, { stdio: 'ignore' }))
  await untilListening(port)
  return `redis://127.0.0.1:${port}`
}

export const profileOf = (folder: string, { name }: Workload, { via }: Way): string =>
  join(folder, `${name}-${via}.cpuprofile`)
