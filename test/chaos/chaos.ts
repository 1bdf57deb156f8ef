// Chaos: three replicas on a real Redis under load of both eras and of HTTP+SSE while parts of the whole fail, one
// after the other, as the seed says. What clients saw is recorded, and judged when the run is over.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { random } from '../fuzz/random.ts'
import { canaryServer, stdioCanaryServer } from '../kit/canary-server.ts'
import { send } from '../kit/client.ts'
import { failOver, sentinelGroup } from '../kit/redis-groups.ts'
import { redis } from '../kit/redis.ts'
import { key } from '../kit/gateway.ts'
import { replicas, type Replicas } from '../kit/replicas.ts'
import { tcpLink } from '../kit/tcp-link.ts'
import { until, type Teardown } from '../kit/until.ts'
import { modernClient, sessionClient } from './clients.ts'
import { faults, type FaultName, type Scene } from './faults.ts'
import { type Heard, type Span, streamViolations } from './heard.ts'
import { violations, reasonsOf, type Call, type Outcome } from './history.ts'
import { listeningClient } from './listening-client.ts'
import { createLoad } from './load.ts'
import { serversOf } from './servers.ts'
import { httpSseLoad } from './sse-client.ts'

export interface ChaosOptions {
  readonly seed: number
  /** How many parts fail, one after the other. */
  readonly faults: number
  /** Default: all of them, in an order of chance. */
  readonly only?: readonly FaultName[]
  readonly clients: number
  /**
   * Replicas beyond the three that have to be ready before the next part fails: what a killed one leaves is taken at
   * once, so that nothing waits for a process to start. Default: none.
   */
  readonly spares?: number
  /** The store is a primary and a replica with a Sentinel, where others have one server. */
  readonly sentinel?: boolean
  /** From when on nothing fails any more, and what there is is judged. */
  readonly enough?: AbortSignal
  readonly onFault?: (name: FaultName, at: number, calls: number) => void
}

export interface ChaosReport {
  readonly seed: number
  readonly seconds: number
  readonly faults: Readonly<Record<string, number>>
  readonly calls: number
  readonly sessions: number
  readonly outcomes: Readonly<Record<Outcome['kind'], number>>
  /** Calls whose client was asked something. */
  readonly asked: number
  /** Streams of calls, and of sessions. */
  readonly resumed: number
  readonly resumedListening: number
  /** Notifications that were heard on the streams of sessions. */
  readonly heard: number
  /** Of the broken streams, all that their clients saw. */
  readonly broken: readonly Heard[]
  /** The five that took longest. */
  readonly longest: readonly Call[]
  /** What calls were refused with, and what left them unknown: the beginning of each text, and how often. */
  readonly reasons: Readonly<Record<string, number>>
  /** What went wrong, a sentence each. */
  readonly violations: readonly string[]
}

/** Weights: what is likelier in a deployment comes more often. */
const mix = (sentinel: boolean): readonly FaultName[] => [
  ...(['kill', 'kill', 'kill', 'pause', 'pause', 'roll', 'roll', 'break upstream', 'kill children'] as const),
  // A primary that hangs is deposed, and takes writes until it hears of it: these are lost, whoever wrote them.
  ...(sentinel ? (['fail over Redis', 'fail over Redis'] as const) : (['restart Redis', 'pause Redis'] as const))
]
/** Each write is on disk before it is answered, so that what a restart loses was not acknowledged. */
const durable = ['--appendonly', 'yes', '--appendfsync', 'always']
const probeMs = 150
const serving = 3
/** Of the load between two faults. */
const restMs = 400

/** As a load balancer does it: what is not ready gets nothing. */
async function probe({ targets }: Replicas, nodes: () => readonly { readonly url: string }[], over: () => boolean) {
  while (!over()) {
    await Promise.all(
      nodes().map(async ({ url }) => {
        const signal = AbortSignal.timeout(1_000)
        const { status } = await send(`${url}/health/ready`, { method: 'GET', signal }).catch(() => ({ status: 0 }))
        const at = targets.indexOf(url)
        if (status === 200 && at === -1) targets.push(url)
        if (status !== 200 && at !== -1) targets.splice(at, 1)
      })
    )
    const known = new Set(nodes().map(({ url }) => url))
    for (const url of [...targets]) if (!known.has(url)) targets.splice(targets.indexOf(url), 1)
    await wait(probeMs)
  }
}

/** Of what is told on the stream of a session, what is under way may be lost by these. */
const lossyFaults: ReadonlySet<FaultName> = new Set(['kill', 'restart Redis', 'fail over Redis'])
/** From when its server has sent it until it is stored, at most: less than a tenth of a second, on a busy machine more. */
const underWayMs = 1_000
/** A replica that was killed counts as gone after two seconds; what comes later goes another way. */
const goneMs = 2_000

export async function chaos(t: Teardown, options: ChaosOptions): Promise<ChaosReport> {
  const { seed, spares = 0, sentinel = false, enough, onFault } = options
  const only = options.only ?? mix(sentinel)
  const chance = random(seed)
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-chaos-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const journal = join(folder, 'journal')
  const [server, web] = await Promise.all([canaryServer(t), tcpLink(t)])
  const group = sentinel ? await sentinelGroup(t, durable, 3_000) : undefined
  const rig = await replicas(
    t,
    {
      upstreams: {
        web: { url: web.to(server.url) },
        local: { ...stdioCanaryServer, env: { MIRROR_JOURNAL: journal } }
      },
      limits: { readyDelayMs: 1_000, drainMs: 15_000 },
      top: { logLevel: 'warn' }
    },
    Array.from({ length: serving + spares }, () => ({})),
    group === undefined ? await redis(t, durable) : { ...group.primary, url: group.url }
  )
  const scene: Scene = {
    nodes: [...rig.nodes],
    start: () => rig.start(),
    starting: [],
    async ready() {
      const failed = Promise.all(scene.starting)
      const isReady = ({ url }: { readonly url: string }): boolean => rig.targets.includes(url)
      const isServed = until(`${serving} replicas are ready`, () => scene.nodes.filter(isReady).length >= serving)
      await Promise.race([isServed, failed.then(() => isServed)])
    },
    store: rig.store,
    ...(group === undefined ? {} : { failOver: () => failOver(group) }),
    web,
    ends: []
  }
  const load = createLoad(`${rig.origin}/t/acme/mcp`, key)
  let isOver = false as boolean
  const probing = probe(
    rig,
    () => scene.nodes,
    () => isOver
  )
  const kinds = [sessionClient, listeningClient, modernClient, httpSseLoad, sessionClient, modernClient]
  const clients = Array.from({ length: options.clients }, async (_, n) => {
    await kinds[n % kinds.length]?.(load, random(seed, n + 1))
  })
  const answered = (): number => load.history.filter(({ outcome }) => outcome.kind === 'answered').length
  const counts: Record<string, number> = {}
  const lossy: Span[] = []
  for (let n = 0; n < options.faults; n++) {
    if (enough?.aborted === true) break
    const before = answered()
    await until('calls are answered', () => answered() >= before + options.clients)
    await wait(restMs)
    const name = n < only.length && options.only !== undefined ? (only[n] as FaultName) : chance.pick(only)
    counts[name] = (counts[name] ?? 0) + 1
    onFault?.(name, load.now(), load.history.length)
    const began = load.now()
    await faults[name](scene, chance)
    // A call that was answered just before may have caused what was under way.
    if (name === 'kill') lossy.push([began - underWayMs, began + goneMs])
    else if (lossyFaults.has(name)) lossy.push([began - underWayMs, load.now() + underWayMs])
  }
  load.over = true
  await Promise.all([...clients, ...scene.starting])
  isOver = true
  await probing

  const servers = await serversOf(server, journal)
  const { history, heard, revived, sessions } = load
  const outcomes = { answered: 0, unknown: 0, refused: 0, 'session lost': 0 }
  for (const { outcome } of history) outcomes[outcome.kind]++
  return {
    seed,
    seconds: Math.round(load.now() / 1_000),
    faults: counts,
    calls: history.length,
    sessions,
    outcomes,
    asked: history.filter(({ asked }) => asked !== undefined && asked.questions > 0).length,
    resumed: history.reduce((sum, call) => sum + call.resumed, 0),
    resumedListening: heard.reduce((sum, { resumed }) => sum + resumed, 0),
    heard: heard.reduce((sum, { canaries }) => sum + canaries.length, 0),
    broken: heard.filter((each) => streamViolations([each], lossy).length > 0),
    longest: history.toSorted((a, b) => b.ended - b.begun - (a.ended - a.begun)).slice(0, 5),
    reasons: reasonsOf(history),
    violations: [
      ...violations(history, servers),
      ...streamViolations(heard, lossy),
      ...revived.map((id) => `a session that was ended is known again: ${id.slice(0, 8)}`),
      ...scene.ends.filter(({ code }) => code !== 0).map((end) => `a replica ended with ${JSON.stringify(end)}`)
    ]
  }
}
