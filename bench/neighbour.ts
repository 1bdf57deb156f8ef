// What a noisy tenant takes from its neighbour: the latency of the neighbour's calls, at a fixed rate and counted from
// when each should have begun, quiet and noisy in turn. The gateway has the limits that everybody has, and a core of its
// own. The same calls go to the neighbour's server directly, too: what these lose is the machine's, and not the
// gateway's. Then the noise goes to a gateway of its own on the same core: what the neighbour loses there is what the
// system's scheduler takes from one who shares a core with somebody else. Last it goes to a gateway at which the noisy
// tenant has limits as a platform team sets them. `npm run bench -- --only neighbour`.

import { once } from 'node:events'
import { setPriority } from 'node:os'
import { median, quantile } from './figures.ts'
import type { Job, Load } from './load/load.ts'
import type { Section } from './report.ts'
import { apiKey, createStage, type Peer, type Stage } from './stage.ts'

const noises = {
  calls: 'small calls, 64 at a time',
  long: 'calls with half a MiB of arguments, 64 at a time',
  sessions: 'sessions opened and ended, 64 at a time'
} as const
type Kind = keyof typeof noises

const noisyKey = 'gh_noisy_key_0123456789abcdef'
const connections = 16
const load = { connections, rate: 200, warmMs: 1_000, ms: 4_000 }

interface Told {
  readonly answered: number
  readonly refused: number
}

interface Round {
  readonly quiet: Load
  readonly noisy: Load
  readonly directQuiet: Load
  readonly directNoisy: Load
  readonly told: Told
  /** Beside the same noise at another gateway of the same core. */
  readonly apart: Load
  /** Beside the same noise where its tenant has limits. */
  readonly limited: Load
}

/** Of the noisy tenant. */
const tenantLimits = {
  limits: { everybody: { perSecond: 100, burst: 20, concurrent: 8 } },
  resources: { sessions: 64, calls: 16 }
}
/** A second, of each tenant. */
const processLimits = {
  requestsPerSecondPerPrincipal: 250,
  requestsPerSecondPerTenant: 250,
  bodyBytesPerSecondPerPrincipal: 4_194_304,
  bodyBytesPerSecondPerTenant: 4_194_304,
  sessionsPerSecondPerPrincipal: 20,
  sessionsPerSecondPerTenant: 20
}

export async function neighbour(rounds: number): Promise<{ section: Section; figures: Record<string, unknown> }> {
  const stage = await createStage()
  try {
    const own = await stage.peer('peers/upstream.ts', 'ends')
    const foreign = await stage.peer('peers/upstream.ts', 'ends')
    setPriority(foreign.pid, 19)
    const tenant = (key: string, { origin }: Peer) => ({
      auth: { keys: [{ name: 'bench', key }] },
      upstreams: { up: { type: 'http', url: `${origin}/legacy/4` } },
      endpoints: { default: { upstreams: ['up'], prefix: '' } }
    })
    const tenants = { calm: tenant(apiKey, own), noisy: tenant(noisyKey, foreign) }
    const gateway = await stage.gateway('neighbour', { tenants }, { asShipped: true })
    const apart = await stage.gateway('apart', { tenants }, { asShipped: true })
    const withLimits = { tenants: { ...tenants, noisy: { ...tenants.noisy, ...tenantLimits } }, limits: processLimits }
    const limited = await stage.gateway('limited', withLimits, { asShipped: true })
    const job = (url: string, { pid }: Peer): Job => ({
      ...load,
      target: { url, token: apiKey, kind: 'call', tool: 'echo', sessions: connections },
      middle: [pid],
      servers: [own.pid]
    })
    const jobs = {
      through: job(`${gateway.origin}/t/calm/mcp`, gateway),
      direct: job(`${own.origin}/legacy/4`, gateway),
      limited: job(`${limited.origin}/t/calm/mcp`, limited)
    }
    const rows: string[][] = []
    const figures: Record<string, unknown> = {}
    for (const kind of Object.keys(noises) as Kind[]) {
      const noiseAt = async ({ origin }: Peer) =>
        await stage.peer('peers/noise.ts', 'ends', [`${origin}/t/noisy/mcp`, noisyKey, kind])
      const talkers = {
        here: await noiseAt(gateway),
        apart: await noiseAt(apart),
        limited: await noiseAt(limited)
      }
      const measured: Round[] = []
      for (let round = 0; round < rounds; round++) measured.push(await roundOf(stage, talkers, jobs, round % 2 === 0))
      for (const { child } of Object.values(talkers)) await stage.stop(child)
      rows.push(rowOf(kind, measured))
      figures[kind] = figuresOf(measured)
    }
    return { section: { head, rows, notes }, figures }
  } finally {
    await stage.close()
  }
}

async function roundOf(
  stage: Stage,
  talkers: Readonly<Record<'here' | 'apart' | 'limited', Peer>>,
  jobs: Readonly<Record<'through' | 'direct' | 'limited', Job>>,
  quietFirst: boolean
): Promise<Round> {
  const pair = async () => [await stage.measure(jobs.through), await stage.measure(jobs.direct)] as const
  const beside = async <T>({ child }: Peer, run: () => Promise<T>) => {
    child.send('go')
    const loads = await run()
    const told = once(child, 'message')
    child.send('rest')
    return { loads, told: (await told)[0] as Told }
  }
  const first = quietFirst ? await pair() : undefined
  const { loads, told } = await beside(talkers.here, pair)
  const apart = await beside(talkers.apart, () => stage.measure(jobs.through))
  const limited = await beside(talkers.limited, () => stage.measure(jobs.limited))
  const [quiet, directQuiet] = first ?? (await pair())
  return {
    quiet,
    directQuiet,
    noisy: loads[0],
    directNoisy: loads[1],
    told,
    apart: apart.loads,
    limited: limited.loads
  }
}

const head = [
  'noise of another tenant',
  'p99 ms quiet',
  'p99 ms noisy',
  'ratio',
  'quartiles',
  'p50 ms quiet',
  'p50 ms noisy',
  'direct p99 quiet',
  'direct p99 noisy',
  'p99 beside another gateway',
  'p50 beside another gateway',
  'p99 where it has limits',
  'ratio there',
  'requests of the noise',
  'refused'
]
const notes = [
  `${load.rate} calls a second of the neighbour, counted from when each was due; the noise and its server have the lowest ` +
    'priority. Beside another gateway: the noise goes to a second gateway on the same core. Where it has limits: 250 requests ' +
    'a second, 4 MiB a second in long bodies, 20 sessions a second, 100 calls a second, 8 at once, 64 sessions. Medians of the rounds, ratios of each round.'
]

const ratiosOf = (rounds: readonly Round[]): number[] => rounds.map(({ quiet, noisy }) => noisy.p99Ms / quiet.p99Ms)

function rowOf(kind: Kind, rounds: readonly Round[]): string[] {
  const middle = (value: (round: Round) => number): number => median(rounds.map(value))
  const ratios = ratiosOf(rounds)
  const sum = (value: (told: Told) => number): number => rounds.reduce((all, { told }) => all + value(told), 0)
  return [
    noises[kind],
    middle(({ quiet }) => quiet.p99Ms).toFixed(2),
    middle(({ noisy }) => noisy.p99Ms).toFixed(2),
    median(ratios).toFixed(2),
    `${quantile(ratios, 0.25).toFixed(2)}-${quantile(ratios, 0.75).toFixed(2)}`,
    middle(({ quiet }) => quiet.p50Ms).toFixed(2),
    middle(({ noisy }) => noisy.p50Ms).toFixed(2),
    middle(({ directQuiet }) => directQuiet.p99Ms).toFixed(2),
    middle(({ directNoisy }) => directNoisy.p99Ms).toFixed(2),
    middle(({ apart }) => apart.p99Ms).toFixed(2),
    middle(({ apart }) => apart.p50Ms).toFixed(2),
    middle(({ limited }) => limited.p99Ms).toFixed(2),
    middle(({ quiet, limited }) => limited.p99Ms / quiet.p99Ms).toFixed(2),
    String(sum(({ answered, refused }) => answered + refused)),
    String(sum(({ refused }) => refused))
  ]
}

const figuresOf = (rounds: readonly Round[]): Record<string, unknown> => ({
  ratio: median(ratiosOf(rounds)),
  quartiles: [0.25, 0.75].map((share) => quantile(ratiosOf(rounds), share)),
  rounds: rounds.map(({ quiet, noisy, directQuiet, directNoisy, told, apart, limited }) => ({
    p99Ms: [quiet.p99Ms, noisy.p99Ms],
    p50Ms: [quiet.p50Ms, noisy.p50Ms],
    direct: [directQuiet.p99Ms, directNoisy.p99Ms],
    apart: [apart.p99Ms, apart.p50Ms],
    limited: [limited.p99Ms, limited.p50Ms],
    ...told
  }))
})
